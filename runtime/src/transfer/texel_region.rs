//! A box of texels of an image, and how its rows lie in a buffer.

use ash::vk;
use spelter_driver::ImageInfo;

use super::target::extent;
use crate::error::{Error, rule};
use crate::image::Image;
use crate::view::Subresources;

/// The texels of an image that a copy from or to a buffer has ([`Context::copy_buffer_to_image`],
/// [`Context::copy_image_to_buffer`]), and how they lie in the buffer: `(&image, level, layer)` are all texels of a
/// level of a layer, packed; [`Image::texels`] begins a choice.
///
/// [`Context::copy_buffer_to_image`]: crate::Context::copy_buffer_to_image
/// [`Context::copy_image_to_buffer`]: crate::Context::copy_image_to_buffer
///
/// ```
/// use spelter::vk;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let atlas = context.image(vk::Format::R8_UINT, [8, 8, 1]).build()?;
/// context.write_image(&atlas, 0, 0, &[0u8; 64])?;
/// // A glyph of 3x2 texels from a picture whose rows are 5 bytes apart.
/// let picture = context.buffer_from(&[1u8, 2, 3, 9, 9, 4, 5, 6, 9, 9])?;
/// let glyph = atlas.texels(0, 0).origin([4, 2, 0]).extent([3, 2, 1]).row_bytes(5);
/// context.copy_buffer_to_image(&picture, 0, glyph)?;
/// let texels = context.read_image::<u8>(&atlas, 0, 0)?;
/// assert_eq!((&texels[20..23], &texels[28..31]), (&[1, 2, 3][..], &[4, 5, 6][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "it says what a copy has; nothing is copied until then"]
pub struct TexelRegion<'a> {
    pub(crate) image: &'a Image,
    pub(crate) area: TexelArea,
}

/// The same of an image that is known otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TexelArea {
    pub(crate) level: u32,
    layer: u32,
    layers: u32,
    origin: [u32; 3],
    /// All from the origin on, if nothing else was said.
    extent: Option<[u32; 3]>,
    /// Bytes from a row to the next, if they are not packed.
    row_bytes: Option<u32>,
    /// Rows from a slice or layer to the next, if they are not packed.
    slice_rows: Option<u32>,
}

impl Image {
    /// All texels of one level of one layer, as a start for a choice of a box, of more layers and of the rows in the
    /// buffer.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 2, 1]).build()?;
    /// context.write_image(&image, 0, 0, &[1u32, 2, 3, 4])?;
    /// let to = context.buffer_zeroed(8)?;
    /// context.copy_image_to_buffer(image.texels(0, 0).origin([1, 0, 0]), &to, 0)?; // the second column
    /// assert_eq!(context.read::<u32>(&to)?, [2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn texels(&self, level: u32, layer: u32) -> TexelRegion<'_> {
        TexelRegion { image: self, area: TexelArea::all(level, layer) }
    }
}

impl<'a> From<(&'a Image, u32, u32)> for TexelRegion<'a> {
    fn from((image, level, layer): (&'a Image, u32, u32)) -> Self {
        image.texels(level, layer)
    }
}

impl TexelRegion<'_> {
    /// The first texel, as x, y and z; `[0; 3]` by default. z is 0 for images that are not 3D.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [4, 1, 1]).build()?;
    /// context.write_image(&image, 0, 0, &[1u32, 2, 3, 4])?;
    /// let to = context.buffer_zeroed(8)?;
    /// context.copy_image_to_buffer(image.texels(0, 0).origin([2, 0, 0]), &to, 0)?;
    /// assert_eq!(context.read::<u32>(&to)?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn origin(mut self, origin: [u32; 3]) -> Self {
        self.area.origin = origin;
        self
    }

    /// The number of texels as width, height and depth; by default all from the origin to the end of the level.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).build()?;
    /// context.write_image(&image, 0, 0, &[1u32, 2, 3, 4, 5, 6, 7, 8])?;
    /// let to = context.buffer_zeroed(16)?;
    /// context.copy_image_to_buffer(image.texels(0, 0).extent([2, 2, 1]), &to, 0)?;
    /// assert_eq!(context.read::<u32>(&to)?, [1, 2, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn extent(mut self, extent: [u32; 3]) -> Self {
        self.area.extent = Some(extent);
        self
    }

    /// The box in this many layers, from that of [`Image::texels`] on; 1 by default. In the buffer one layer follows
    /// the other.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [1, 1, 1]).layers(4).build()?;
    /// let texels = context.buffer_from(&[7u32, 8])?;
    /// context.copy_buffer_to_image(&texels, 0, image.texels(0, 2).layers(2))?;
    /// assert_eq!(image.valid_subresources(), [(0, 2), (0, 3)]);
    /// assert_eq!(context.read_image::<u32>(&image, 0, 3)?, [8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn layers(mut self, layers: u32) -> Self {
        self.area.layers = layers;
        self
    }

    /// Bytes in the buffer from one row of texels to the next: whole texels, at least those of a row of the box. By
    /// default rows follow each other.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [1, 2, 1]).build()?;
    /// context.write_image(&image, 0, 0, &[1u32, 2])?;
    /// let to = context.buffer_zeroed(16)?;
    /// context.copy_image_to_buffer(image.texels(0, 0).row_bytes(12), &to, 0)?;
    /// assert_eq!(context.read::<u32>(&to)?, [1, 0, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn row_bytes(mut self, bytes: u32) -> Self {
        self.area.row_bytes = Some(bytes);
        self
    }

    /// Rows in the buffer from one slice of a 3D image, or one layer, to the next: at least the height of the box. By
    /// default slices and layers follow each other.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [1, 1, 2]).build()?; // 3D
    /// context.write_image(&image, 0, 0, &[1u32, 2])?;
    /// let to = context.buffer_zeroed(16)?;
    /// context.copy_image_to_buffer(image.texels(0, 0).slice_rows(3), &to, 0)?;
    /// assert_eq!(context.read::<u32>(&to)?, [1, 0, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn slice_rows(mut self, rows: u32) -> Self {
        self.area.slice_rows = Some(rows);
        self
    }
}

impl TexelArea {
    fn all(level: u32, layer: u32) -> Self {
        let (row_bytes, slice_rows) = (None, None);
        Self { level, layer, layers: 1, origin: [0; 3], extent: None, row_bytes, slice_rows }
    }

    /// Whether the number of texels depends on the size of the image.
    pub(crate) fn follows_the_size(&self) -> bool {
        self.extent.is_none()
    }

    /// The subresources.
    pub(crate) fn part(&self, image: &Image) -> Subresources {
        let levels = self.level..self.level.saturating_add(1);
        image.all().levels(levels).layers(self.layer..self.layer.saturating_add(self.layers)).part
    }

    /// The region of a copy, and the bytes of the buffer from the first texel to the last; the subresources exist.
    /// [`Error::Range`] if the box is not in the level, or its rows or slices overlap in the buffer.
    pub(crate) fn placed(
        &self,
        what: &str,
        described: impl Fn() -> String,
        (info, texel): (&ImageInfo, u64),
        offset: u64,
    ) -> Result<(vk::BufferImageCopy, u64), Error> {
        let vk::Extent3D { width, height, depth } = extent(info, self.level);
        let size = [width, height, depth];
        let rest = || std::array::from_fn(|i| size[i].saturating_sub(self.origin[i]));
        let wanted: [u32; 3] = self.extent.unwrap_or_else(rest);
        for (axis, i) in ["x", "y", "z"].into_iter().zip(0..3) {
            let (first, count, size) = (self.origin[i], wanted[i], size[i]);
            if count == 0 || u64::from(first) + u64::from(count) > size.into() {
                let (level, of) = (self.level, described());
                let problem =
                    format!("{what}: {count} texels from {first} of {size} in {axis} of level {level} of {of}");
                return Err(Error::range(problem, rule::BOX));
            }
        }
        let row = u64::from(wanted[0]) * texel;
        let pitch = self.row_bytes.map_or(row, u64::from);
        if pitch < row || !pitch.is_multiple_of(texel) {
            let problem = format!("{what}: rows of {row} bytes, {pitch} bytes apart, with texels of {texel} bytes");
            return Err(Error::range(format!("{problem}, for {}", described()), rule::ROW_BYTES));
        }
        let slice = self.slice_rows.unwrap_or(wanted[1]);
        if slice < wanted[1] {
            let problem = format!("{what}: slices of {} rows, {slice} rows apart, for {}", wanted[1], described());
            return Err(Error::range(problem, rule::SLICE_ROWS));
        }
        let slices = u64::from(wanted[2]) * u64::from(self.layers);
        let last_slice = (pitch * u64::from(slice)).saturating_mul(slices - 1);
        let last_row = pitch * u64::from(wanted[1] - 1);
        let bytes = last_slice.saturating_add(last_row).saturating_add(row);
        let [x, y, z] = self.origin.map(u32::cast_signed);
        let [width, height, depth] = wanted;
        let region = vk::BufferImageCopy {
            buffer_offset: offset,
            // Fits: the bytes did.
            buffer_row_length: u32::try_from(pitch / texel).unwrap_or(0),
            buffer_image_height: slice,
            image_subresource: vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                mip_level: self.level,
                base_array_layer: self.layer,
                layer_count: self.layers,
            },
            image_offset: vk::Offset3D { x, y, z },
            image_extent: vk::Extent3D { width, height, depth },
        };
        Ok((region, bytes))
    }
}

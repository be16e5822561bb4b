//! The target of a host write: bytes of a buffer or a level of an image, and the layout of the latter.

use std::ops::Range;

use ash::vk;
use spelter_driver::ImageInfo;

use crate::error::{Error, rule};
use crate::image::Image;
use crate::object::ResourceObject;
use crate::resource::Resource;

/// The part of a resource that bytes are written to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    /// Bytes of a buffer, from this offset on.
    Bytes(u64),
    /// The texels of one level (the first number) of one layer (the second).
    Level(&'a Image, u32, u32),
}

impl Target<'_> {
    /// The bytes of the buffer, or the number of the subresource.
    pub(super) fn range(&self, len: u64) -> Range<u64> {
        match self {
            Self::Bytes(offset) => *offset..*offset + len,
            Self::Level(image, level, layer) => {
                let number = u64::from(*layer) * u64::from(image.info().levels) + u64::from(*level);
                number..number + 1
            }
        }
    }

    /// Checks that `len` bytes fit this object, which is current while its resource is locked: another thread may have
    /// respecified the resource with another size since the call's own check.
    pub(super) fn check(
        &self,
        what: &str,
        resource: &Resource,
        object: &ResourceObject,
        len: u64,
    ) -> Result<(), Error> {
        match self {
            Self::Bytes(_) => check_inside(what, resource, object, &self.range(len)),
            Self::Level(_, level, layer) => {
                let wanted = Rows::of(object, (*level, *layer))?.total();
                if wanted == len {
                    return Ok(());
                }
                let of = resource.described();
                let problem = format!("{what}: {len} bytes for the {wanted} of level {level} of {of}");
                Err(Error::range(problem, rule::LEVEL))
            }
        }
    }

    pub(super) fn write(&self, object: &ResourceObject, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Bytes(offset) => object.storage().write(*offset, bytes),
            Self::Level(_, level, layer) => write_level(object, (*level, *layer), bytes),
        }
    }
}

pub(super) fn layers(level: u32, layer: u32) -> vk::ImageSubresourceLayers {
    let aspect_mask = vk::ImageAspectFlags::COLOR;
    vk::ImageSubresourceLayers { aspect_mask, mip_level: level, base_array_layer: layer, layer_count: 1 }
}

/// The size of a level in texels.
pub(crate) fn extent(info: &ImageInfo, level: u32) -> vk::Extent3D {
    let half = |size: u32| size.checked_shr(level).unwrap_or(0).max(1);
    let vk::Extent3D { width, height, depth } = info.extent;
    vk::Extent3D { width: half(width), height: half(height), depth: half(depth) }
}

pub(super) fn region(info: &ImageInfo, level: u32, layer: u32) -> vk::BufferImageCopy {
    let (image_subresource, image_extent) = (layers(level, layer), extent(info, level));
    vk::BufferImageCopy { image_subresource, image_extent, ..Default::default() }
}

/// Checks that bytes lie in this object of a buffer.
pub(crate) fn check_inside(
    what: &str,
    resource: &Resource,
    object: &ResourceObject,
    range: &Range<u64>,
) -> Result<(), Error> {
    let Range { start, end } = *range;
    if start <= end && end <= object.size() {
        return Ok(());
    }
    Err(Error::range(format!("{what}: bytes {start}..{end} of {}", resource.described()), rule::INSIDE))
}

/// Bytes of the packed texels of a level of a layer.
pub(super) fn level_bytes(object: &ResourceObject, at: (u32, u32)) -> Result<u64, Error> {
    Ok(Rows::of(object, at)?.total())
}

/// Writes all texels of a level of a layer in place. `texels` has the size of the level.
fn write_level(object: &ResourceObject, at: (u32, u32), texels: &[u8]) -> Result<(), Error> {
    let rows = Rows::of(object, at)?;
    let mut texels = texels.chunks_exact(rows.bytes);
    rows.offsets().zip(&mut texels).try_for_each(|(offset, row)| object.storage().write(offset, row))
}

/// Reads packed texels of a level of a layer, from byte `first` on: a part of the level, which may begin and end within
/// rows.
pub(super) fn read_level(
    object: &ResourceObject,
    at: (u32, u32),
    first: u64,
    mut texels: &mut [u8],
) -> Result<(), Error> {
    let rows = Rows::of(object, at)?;
    let each = rows.bytes as u64;
    let (mut row, mut skipped) = (first / each, first % each);
    while !texels.is_empty() {
        let (part, rest) = texels.split_at_mut(texels.len().min((each - skipped) as usize));
        object.storage().read(rows.offset(row) + skipped, part)?;
        (texels, row, skipped) = (rest, row + 1, 0);
    }
    Ok(())
}

/// The layout of the rows of texels of a level of a layer in the storage of an image.
struct Rows {
    /// Bytes of a row.
    bytes: usize,
    layout: vk::SubresourceLayout,
    height: u64,
    depth: u64,
}

impl Rows {
    fn of(object: &ResourceObject, (level, layer): (u32, u32)) -> Result<Self, Error> {
        let image = object.image()?;
        let vk::Extent3D { width, height, depth } = extent(image.info(), level);
        let [width, height, depth] = [width, height, depth].map(u64::from);
        let bytes = (width * image.texel_bytes()) as usize;
        Ok(Self { bytes, layout: image.subresource_layout(level, layer), height, depth })
    }

    /// Bytes of all rows.
    fn total(&self) -> u64 {
        self.bytes as u64 * self.height * self.depth
    }

    /// The offset of each row, slice by slice.
    fn offsets(&self) -> impl Iterator<Item = u64> {
        (0..self.depth * self.height).map(|row| self.offset(row))
    }

    /// The offset of a row; rows are numbered slice by slice.
    fn offset(&self, row: u64) -> u64 {
        let vk::SubresourceLayout { offset, row_pitch, depth_pitch, .. } = self.layout;
        offset + row / self.height * depth_pitch + row % self.height * row_pitch
    }
}

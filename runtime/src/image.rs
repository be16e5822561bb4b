//! Handles of images and of their levels and layers, and the builder of images.

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use ash::vk;
use spelter_driver::ImageInfo;

use crate::error::Error;
use crate::memory::Template;
use crate::object::InitialContents;
use crate::resource::Resource;
use crate::share::Share;
use crate::valid::Valid;
use crate::view::Subresources;

/// An image in device memory. Like [`Buffer`](crate::Buffer) it is a handle, and its storage may be replaced. Valid
/// data is tracked for each level of each layer.
///
/// ```
/// use spelter::vk;
///
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::new()?;
/// let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).label("heights").build()?;
/// context.write_image(&image, 0, 0, &[1u32, 2, 3, 4, 5, 6, 7, 8])?;
/// assert_eq!(context.read_image::<u32>(&image, 0, 0)?[5], 6);
/// assert_eq!(image.valid_subresources(), [(0, 0)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Image {
    resource: Arc<Resource>,
}

impl Image {
    /// A handle of a resource that is an image.
    pub(crate) fn of(resource: &Arc<Resource>) -> Self {
        Self { resource: Arc::clone(resource) }
    }

    /// Format, size, levels and layers.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// assert_eq!((image.info().format, image.info().levels, image.info().layers), (vk::Format::R32_UINT, 2, 3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn info(&self) -> ImageInfo {
        match self.resource.template() {
            Template::Image(info) => info,
            Template::Buffer(_) => unreachable!("the handle of an image has the description of an image"),
        }
    }

    /// The label of the image, for messages and traces.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// assert_eq!(image.label(), Some("heights"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(&self) -> Option<&str> {
        self.resource.label()
    }

    /// Size of a level in texels: width, height, depth.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// assert_eq!((image.level_size(0), image.level_size(1)), ([4, 2, 1], [2, 1, 1]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn level_size(&self, level: u32) -> [u32; 3] {
        let vk::Extent3D { width, height, depth } = self.info().extent;
        [width, height, depth].map(|size| size.checked_shr(level).unwrap_or(0).max(1))
    }

    /// The subresources, as `(level, layer)`, that may hold defined data.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.write_image(&image, 1, 2, &[7u32, 8])?;
    /// assert_eq!(image.valid_subresources(), [(1, 2)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn valid_subresources(&self) -> Vec<(u32, u32)> {
        self.subresources(self.resource.state().valid())
    }

    /// The number of times that the image's storage was replaced.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.clear_image(&image, spelter::ClearColor::Uint([1; 4]))?; // recorded: the image is in use
    /// context.invalidate_image(&image)?;
    /// assert_eq!(image.generation(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn generation(&self) -> u64 {
        self.resource.state().generation()
    }

    /// Frees the memory: see [`Buffer::destroy`](crate::Buffer::destroy).
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// image.destroy();
    /// assert!(context.read_image::<u32>(&image, 0, 0).unwrap_err().to_string().contains("`heights` of 4x2x1"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn destroy(&self) {
        self.resource.destroy();
    }

    /// All levels and layers of the image, as a start for a choice of levels, layers, view type and format.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.clear_image(image.all().levels(1..).layers(..2), spelter::ClearColor::Uint([1; 4]))?;
    /// assert_eq!(image.valid_subresources(), [(1, 0), (1, 1)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(&self) -> ImagePart<'_> {
        let ImageInfo { ty, levels, layers, format, .. } = self.info();
        let (volume, array) = (ty == vk::ImageType::TYPE_3D, layers > 1);
        let ty = match ty {
            vk::ImageType::TYPE_1D if array => vk::ImageViewType::TYPE_1D_ARRAY,
            vk::ImageType::TYPE_1D => vk::ImageViewType::TYPE_1D,
            _ if volume => vk::ImageViewType::TYPE_3D,
            _ if array => vk::ImageViewType::TYPE_2D_ARRAY,
            _ => vk::ImageViewType::TYPE_2D,
        };
        ImagePart { image: self, part: Subresources { levels: 0..levels, layers: 0..layers, ty, format } }
    }

    /// One level of all layers.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.clear_image(image.level(1), spelter::ClearColor::Uint([1; 4]))?;
    /// assert_eq!(image.valid_subresources(), [(1, 0), (1, 1), (1, 2)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn level(&self, level: u32) -> ImagePart<'_> {
        self.all().levels(level..level.saturating_add(1))
    }

    pub(crate) fn subresources(&self, valid: &Valid) -> Vec<(u32, u32)> {
        let levels = u64::from(self.info().levels);
        valid.iter().flatten().map(|at| ((at % levels) as u32, (at / levels) as u32)).collect()
    }

    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }
}

/// The description of an image with another size. Square images with enough layers can be viewed as cubes.
pub(crate) fn with_size(info: ImageInfo, extent: vk::Extent3D) -> ImageInfo {
    let is_cube = info.ty == vk::ImageType::TYPE_2D && extent.width == extent.height && info.layers >= 6;
    let cube = if is_cube { vk::ImageCreateFlags::CUBE_COMPATIBLE } else { vk::ImageCreateFlags::empty() };
    let flags = info.flags & !vk::ImageCreateFlags::CUBE_COMPATIBLE | cube;
    ImageInfo { flags, extent, ..info }
}

/// Levels and layers of an image, with view type and format: `&image`, [`Image::all`], [`Image::level`]. The ranges are
/// checked when they are used.
///
/// ```
/// use spelter::vk;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
/// let one = image.all().levels(0..1).layers(2..3).as_type(vk::ImageViewType::TYPE_2D);
/// context.bind((0, 0), spelter::Bind::sampled(one))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ImagePart<'a> {
    pub(crate) image: &'a Image,
    pub(crate) part: Subresources,
}

fn bounds(range: &impl RangeBounds<u32>, all: &Range<u32>) -> Range<u32> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => all.start,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => all.end,
    };
    start..end
}

impl ImagePart<'_> {
    /// Only these levels.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.clear_image(image.all().levels(..1), spelter::ClearColor::Uint([1; 4]))?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 2)?, [1; 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn levels(mut self, levels: impl RangeBounds<u32>) -> Self {
        self.part.levels = bounds(&levels, &self.part.levels);
        self
    }

    /// Only these layers.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.clear_image(image.all().layers(2..), spelter::ClearColor::Uint([1; 4]))?;
    /// assert_eq!(image.valid_subresources(), [(0, 2), (1, 2)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn layers(mut self, layers: impl RangeBounds<u32>) -> Self {
        self.part.layers = bounds(&layers, &self.part.layers);
        self
    }

    /// With another view type: a cube, say, or `TYPE_2D` for one layer.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let sky = context.image(vk::Format::R8G8B8A8_UNORM, [8, 8, 1]).layers(6).build()?;
    /// context.bind((0, 0), spelter::Bind::sampled(sky.all().as_type(vk::ImageViewType::CUBE)))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_type(mut self, ty: vk::ImageViewType) -> Self {
        self.part.ty = ty;
        self
    }

    /// With another format, of the same texel size.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.bind((0, 0), spelter::Bind::sampled(image.all().as_format(vk::Format::R32_SFLOAT)))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_format(mut self, format: vk::Format) -> Self {
        self.part.format = format;
        self
    }
}

impl<'a> From<&'a Image> for ImagePart<'a> {
    fn from(image: &'a Image) -> Self {
        image.all()
    }
}

/// Builds an [`Image`]: see [`Context::image`](crate::Context::image).
///
/// ```
/// use spelter::vk;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let atlas = context.image(vk::Format::R8_UNORM, [64, 64, 1]).levels(7).label("atlas").build()?;
/// assert_eq!(atlas.level_size(6), [1, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ImageBuilder<'a> {
    share: &'a Arc<Share>,
    label: Option<Box<str>>,
    info: ImageInfo,
}

impl<'a> ImageBuilder<'a> {
    pub(crate) fn new(share: &'a Arc<Share>, format: vk::Format, [width, height, depth]: [u32; 3]) -> Self {
        let has = share.device().format_properties(format).optimal;
        let mut usage =
            vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
        if has.contains(vk::FormatFeatureFlags::STORAGE_IMAGE) {
            usage |= vk::ImageUsageFlags::STORAGE;
        }
        let info = ImageInfo {
            flags: vk::ImageCreateFlags::MUTABLE_FORMAT,
            ty: if depth > 1 { vk::ImageType::TYPE_3D } else { vk::ImageType::TYPE_2D },
            format,
            extent: vk::Extent3D { width, height, depth },
            levels: 1,
            layers: 1,
            tiling: vk::ImageTiling::OPTIMAL,
            usage,
        };
        Self { share, label: None, info }
    }

    /// Names the image in messages and traces.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [1, 1, 1]).label("probe").build()?;
    /// assert_eq!(image.label(), Some("probe"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into().into_boxed_str());
        self
    }

    /// The number of mip levels; 1 by default.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [8, 8, 1]).levels(4).build()?;
    /// assert_eq!(image.level_size(3), [1, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn levels(mut self, levels: u32) -> Self {
        self.info.levels = levels;
        self
    }

    /// The number of array layers; 1 by default. A square image of 6 or more layers can be viewed as a cube.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [8, 8, 1]).layers(2).build()?;
    /// context.write_image(&image, 0, 1, &[3u32; 64])?;
    /// assert_eq!(image.valid_subresources(), [(0, 1)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn layers(mut self, layers: u32) -> Self {
        self.info.layers = layers;
        self
    }

    /// The dimensions; by default 3D if the depth is more than 1, else 2D.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let line = context.image(vk::Format::R32_UINT, [16, 1, 1]).dimensions(vk::ImageType::TYPE_1D).build()?;
    /// assert_eq!(line.info().ty, vk::ImageType::TYPE_1D);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dimensions(mut self, ty: vk::ImageType) -> Self {
        self.info.ty = ty;
        self
    }

    /// An image with undefined contents. [`Error::Misuse`] if the device does not support such an image,
    /// [`Error::OutOfMemory`].
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// assert!(context.image(vk::Format::R32_UINT, [4, 4, 1]).build()?.valid_subresources().is_empty());
    /// assert!(matches!(context.image(vk::Format::R32_UINT, [0, 4, 1]).build(), Err(spelter::Error::Misuse(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<Image, Error> {
        let template = Template::Image(with_size(self.info, self.info.extent));
        let resource = Arc::new(Resource::new(self.share, template, self.label, InitialContents::Undefined)?);
        Ok(Image { resource })
    }
}

//! Image views: ranges of levels and layers of an image, for descriptors.

use std::sync::Arc;

use ash::vk;
use spelter_shaders::image::{Swizzle, TexelView};

use super::Image;
use super::format::format_of;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::memory::Allocation;

const AT: &str = "vkCreateImageView";

/// Parameters of an image view (`VkImageViewCreateInfo`).
#[derive(Clone, Copy, Debug)]
pub struct ImageViewInfo<'a> {
    /// The image, with memory bound.
    pub image: &'a Image,
    /// Type of the view in shaders.
    pub ty: vk::ImageViewType,
    /// The image's format, or one with texels of the same size for images with `MUTABLE_FORMAT`.
    pub format: vk::Format,
    /// Source of each component that shaders read.
    pub components: vk::ComponentMapping,
    /// Levels and layers.
    pub range: vk::ImageSubresourceRange,
}

/// An image view (`VkImageView`). A handle; it keeps the image alive.
#[derive(Clone, Debug)]
pub struct ImageView {
    inner: Arc<ImageViewInner>,
}

#[derive(Debug)]
struct ImageViewInner {
    image: Image,
    ty: vk::ImageViewType,
    view: TexelView,
    allocation: Arc<Allocation>,
}

impl Device {
    /// `vkCreateImageView`.
    pub fn create_image_view(&self, info: &ImageViewInfo<'_>) -> Result<ImageView, Error> {
        ImageView::new(self, info)
    }
}

impl ImageView {
    fn new(device: &Device, info: &ImageViewInfo<'_>) -> Result<Self, Error> {
        let image = info.image;
        require(image.device().is(device), AT, "VUID-VkImageViewCreateInfo-image-parameter", || {
            "an image of another device".into()
        })?;
        let storage = image.storage().ok_or_else(|| {
            Misuse::new(AT, "the image has no memory bound", "VUID-VkImageViewCreateInfo-image-01020")
        })?;
        let format = check_format(info)?;
        let (levels, layers) = check_range(info)?;
        check_type(info, layers[1])?;
        let volume = image.info().ty == vk::ImageType::TYPE_3D;
        let mut view =
            TexelView::of_image(storage.slice, format, image.extent(), image.layout(), levels, layers, volume);
        view.swizzle = swizzle(&info.components);
        let allocation = Arc::clone(&storage.allocation);
        Ok(Self { inner: Arc::new(ImageViewInner { image: image.clone(), ty: info.ty, view, allocation }) })
    }

    /// The image.
    pub fn image(&self) -> &Image {
        &self.inner.image
    }

    /// Type of the view in shaders.
    pub fn ty(&self) -> vk::ImageViewType {
        self.inner.ty
    }

    pub(crate) fn view(&self) -> &TexelView {
        &self.inner.view
    }

    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.inner.allocation
    }
}

fn check_format(info: &ImageViewInfo<'_>) -> Result<spelter_shaders::image::Format, Misuse> {
    let of = info.image.info();
    let known = format_of(info.format).ok_or_else(|| {
        let problem = format!("images of format {:?} are not supported", info.format);
        Misuse::new(AT, problem, "VUID-VkImageViewCreateInfo-None-02273")
    })?;
    let mutable = of.flags.contains(vk::ImageCreateFlags::MUTABLE_FORMAT);
    require(mutable || info.format == of.format, AT, "VUID-VkImageViewCreateInfo-image-01762", || {
        format!("a view of format {:?} of an image of format {:?}", info.format, of.format)
    })?;
    require(known.bytes() == info.image.format().bytes(), AT, "VUID-VkImageViewCreateInfo-image-01761", || {
        format!("{:?} and {:?} have texels of different sizes", info.format, of.format)
    })?;
    Ok(known)
}

/// First and count of levels, and of layers.
fn check_range(info: &ImageViewInfo<'_>) -> Result<([u32; 2], [u32; 2]), Misuse> {
    let of = info.image.info();
    let range = info.range;
    let (level, layer) = (range.base_mip_level, range.base_array_layer);
    require(level < of.levels, AT, "VUID-VkImageViewCreateInfo-subresourceRange-01478", || {
        format!("baseMipLevel {level} of {}", of.levels)
    })?;
    let levels = if range.level_count == vk::REMAINING_MIP_LEVELS { of.levels - level } else { range.level_count };
    require(levels > 0, AT, "VUID-VkImageSubresourceRange-levelCount-01720", || "levelCount is 0".into())?;
    require(levels <= of.levels - level, AT, "VUID-VkImageViewCreateInfo-subresourceRange-01718", || {
        format!("{levels} levels from {level}, of {}", of.levels)
    })?;
    require(layer < of.layers, AT, "VUID-VkImageViewCreateInfo-image-06724", || {
        format!("baseArrayLayer {layer} of {}", of.layers)
    })?;
    let layers = if range.layer_count == vk::REMAINING_ARRAY_LAYERS { of.layers - layer } else { range.layer_count };
    require(layers > 0, AT, "VUID-VkImageSubresourceRange-layerCount-01721", || "layerCount is 0".into())?;
    require(layers <= of.layers - layer, AT, "VUID-VkImageViewCreateInfo-subresourceRange-06725", || {
        format!("{layers} layers from {layer}, of {}", of.layers)
    })?;
    Ok(([level, levels], [layer, layers]))
}

fn check_type(info: &ImageViewInfo<'_>, layers: u32) -> Result<(), Misuse> {
    use vk::ImageViewType as V;
    let of = info.image.info();
    let wanted = match info.ty {
        V::TYPE_1D | V::TYPE_1D_ARRAY => vk::ImageType::TYPE_1D,
        V::TYPE_3D => vk::ImageType::TYPE_3D,
        _ => vk::ImageType::TYPE_2D,
    };
    require(of.ty == wanted, AT, "VUID-VkImageViewCreateInfo-subResourceRange-01021", || {
        format!("a view of type {:?} of an image of type {:?}", info.ty, of.ty)
    })?;
    if matches!(info.ty, V::CUBE | V::CUBE_ARRAY) {
        let cube = of.flags.contains(vk::ImageCreateFlags::CUBE_COMPATIBLE);
        require(cube, AT, "VUID-VkImageViewCreateInfo-image-01003", || "the image lacks CUBE_COMPATIBLE".into())?;
        require(layers.is_multiple_of(6), AT, "VUID-VkImageViewCreateInfo-viewType-02961", || {
            format!("cubes of {layers} layers")
        })?;
        require(info.ty == V::CUBE_ARRAY || layers == 6, AT, "VUID-VkImageViewCreateInfo-viewType-02960", || {
            format!("a cube of {layers} layers")
        })?;
    }
    let single = matches!(info.ty, V::TYPE_1D | V::TYPE_2D | V::TYPE_3D);
    require(!single || layers == 1, AT, "VUID-VkImageViewCreateInfo-imageViewType-04973", || {
        format!("a view of type {:?} with {layers} layers", info.ty)
    })
}

fn swizzle(components: &vk::ComponentMapping) -> [Swizzle; 4] {
    let one = |component: vk::ComponentSwizzle, same| match component {
        vk::ComponentSwizzle::ZERO => Swizzle::Zero,
        vk::ComponentSwizzle::ONE => Swizzle::One,
        vk::ComponentSwizzle::R => Swizzle::R,
        vk::ComponentSwizzle::G => Swizzle::G,
        vk::ComponentSwizzle::B => Swizzle::B,
        vk::ComponentSwizzle::A => Swizzle::A,
        _ => same,
    };
    [
        one(components.r, Swizzle::R),
        one(components.g, Swizzle::G),
        one(components.b, Swizzle::B),
        one(components.a, Swizzle::A),
    ]
}

//! Images: texels in levels and layers, bound once to a range of a memory object.

use std::sync::{Arc, OnceLock};

use ash::vk;
use spelter_shaders::image::{Class, Extent, Format, Layout, ROW_ALIGNMENT, Rows};

use super::DeviceMemory;
use super::buffer::Storage;
use super::format::{format_of, properties, view_features};
use super::known::Known;
use crate::check::ResourceKind;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;

const CREATE: &str = "vkCreateImage";
const BIND: &str = "vkBindImageMemory";

/// Parameters of an image (`VkImageCreateInfo`); it has one sample per texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    /// `CUBE_COMPATIBLE`, `MUTABLE_FORMAT` and `EXTENDED_USAGE` have an effect, other flags have none.
    pub flags: vk::ImageCreateFlags,
    /// Number of dimensions.
    pub ty: vk::ImageType,
    /// Format of the texels.
    pub format: vk::Format,
    /// Size of level 0.
    pub extent: vk::Extent3D,
    /// Mip levels.
    pub levels: u32,
    /// Array layers.
    pub layers: u32,
    /// Both tilings store texels row by row; optimal tiling may pad rows, so that they do not share cache sets.
    pub tiling: vk::ImageTiling,
    /// Permitted uses.
    pub usage: vk::ImageUsageFlags,
}

/// An image (`VkImage`). A handle; it keeps its memory alive.
#[derive(Clone, Debug)]
pub struct Image {
    inner: Arc<ImageInner>,
}

#[derive(Debug)]
struct ImageInner {
    device: Device,
    info: ImageInfo,
    format: Format,
    extent: Extent,
    layout: Layout,
    storage: OnceLock<Storage>,
    known: Known,
}

impl Drop for ImageInner {
    fn drop(&mut self) {
        self.known.gone(&self.device);
    }
}

/// The rules of a command for an image that it uses.
pub(crate) struct ImageRules {
    pub(crate) at: &'static str,
    pub(crate) usage: vk::ImageUsageFlags,
    pub(crate) usage_vuid: &'static str,
    pub(crate) memory_vuid: &'static str,
    pub(crate) parent_vuid: &'static str,
}

impl Device {
    /// `vkCreateImage`: memory must be bound before use.
    pub fn create_image(&self, info: &ImageInfo) -> Result<Image, Error> {
        Image::new(self, info)
    }
}

impl Image {
    fn new(device: &Device, info: &ImageInfo) -> Result<Self, Error> {
        let format = check_format(info)?;
        check_shape(info)?;
        let vk::Extent3D { width, height, depth } = info.extent;
        let extent = Extent { size: [width, height, depth], levels: info.levels, layers: info.layers };
        let rows = if info.tiling == vk::ImageTiling::LINEAR { Rows::Packed } else { Rows::Spread };
        // An image above `maxResourceSize` breaks no rule: the limit has no VUID.
        let layout = Layout::new(&extent, format.bytes(), rows).ok_or(Error::OutOfMemory)?;
        let known = Known::new(device, ResourceKind::Image, info.usage.as_raw());
        let (device, storage) = (device.clone(), OnceLock::new());
        let inner = ImageInner { device, info: *info, format, extent, layout, storage, known };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The parameters that it was created with.
    pub fn info(&self) -> &ImageInfo {
        &self.inner.info
    }

    /// Size of a level in texels; 1 in each dimension for a level that does not exist.
    pub fn size_of_level(&self, level: u32) -> [u32; 3] {
        self.inner.extent.level(level)
    }

    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> u64 {
        self.inner.format.bytes().into()
    }

    /// `vkGetImageMemoryRequirements`.
    pub fn requirements(&self) -> vk::MemoryRequirements {
        vk::MemoryRequirements {
            size: self.inner.layout.bytes,
            alignment: ROW_ALIGNMENT.into(),
            memory_type_bits: (1 << self.inner.device.memory_types().len()) - 1,
        }
    }

    /// `vkGetImageSubresourceLayout`: the place of a level of a layer; all zero for one that does not exist.
    pub fn subresource_layout(&self, level: u32, layer: u32) -> vk::SubresourceLayout {
        let ImageInner { extent, layout, .. } = &*self.inner;
        if level >= extent.levels || layer >= extent.layers {
            return vk::SubresourceLayout::default();
        }
        let at = layout.levels[level as usize];
        let depth = extent.level(level)[2];
        vk::SubresourceLayout {
            offset: u64::from(layer) * u64::from(layout.layer_pitch) + u64::from(at.offset),
            size: u64::from(at.slice_pitch) * u64::from(depth),
            row_pitch: at.row_pitch.into(),
            array_pitch: layout.layer_pitch.into(),
            depth_pitch: at.slice_pitch.into(),
        }
    }

    /// `vkBindImageMemory`: binds the image to `memory` from byte `offset`. The binding is final.
    pub fn bind_memory(&self, memory: &DeviceMemory, offset: u64) -> Result<(), Error> {
        let needs = self.requirements();
        let size = memory.size();
        require(memory.device().is(self.device()), BIND, "VUID-vkBindImageMemory-memory-parent", || {
            "memory of another device".into()
        })?;
        if self.inner.storage.get().is_some() {
            return Err(already_bound().into());
        }
        require(offset < size, BIND, "VUID-vkBindImageMemory-memoryOffset-01046", || {
            format!("memoryOffset {offset} in memory of {size} bytes")
        })?;
        require(offset.is_multiple_of(needs.alignment), BIND, "VUID-vkBindImageMemory-memoryOffset-01048", || {
            format!("memoryOffset {offset} is not a multiple of {}", needs.alignment)
        })?;
        require(needs.size <= size - offset, BIND, "VUID-vkBindImageMemory-size-01049", || {
            format!("the image needs {} bytes, memory of {size} bytes has {} after {offset}", needs.size, size - offset)
        })?;
        let slice = memory.slice().slice(offset, needs.size);
        let storage = Storage { slice, allocation: Arc::clone(memory.allocation()) };
        self.inner.storage.set(storage).map_err(|_| already_bound())?;
        self.inner.known.bound(self.device(), slice);
        Ok(())
    }

    /// The name of the image in findings of checked mode (`vkSetDebugUtilsObjectNameEXT`).
    pub fn set_debug_name(&self, name: Option<&str>) {
        self.inner.known.set_name(self.device(), name);
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Numeric class of its texels.
    pub fn class(&self) -> Class {
        self.format().class()
    }

    pub(crate) fn format(&self) -> Format {
        self.inner.format
    }

    pub(crate) fn extent(&self) -> &Extent {
        &self.inner.extent
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.inner.layout
    }

    pub(crate) fn storage(&self) -> Option<&Storage> {
        self.inner.storage.get()
    }

    /// The image's storage, if a command of `device` may use the image by these rules.
    pub(crate) fn checked(&self, device: &Device, rules: &ImageRules) -> Result<&Storage, Misuse> {
        let at = rules.at;
        require(self.device().is(device), at, rules.parent_vuid, || "an image of another device".into())?;
        let usage = self.inner.info.usage;
        require(usage.contains(rules.usage), at, rules.usage_vuid, || {
            format!("the image's usage {usage:?} lacks {:?}", rules.usage)
        })?;
        self.storage().ok_or_else(|| Misuse::new(at, "the image has no memory bound", rules.memory_vuid))
    }
}

fn already_bound() -> Misuse {
    Misuse::new(BIND, "the image has memory bound already", "VUID-vkBindImageMemory-image-07460")
}

/// The format, if images of it support the usage.
fn check_format(info: &ImageInfo) -> Result<Format, Misuse> {
    let known = format_of(info.format).ok_or_else(|| {
        let problem = format!("images of format {:?} are not supported", info.format);
        Misuse::new(CREATE, problem, "VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251")
    })?;
    require(!info.usage.is_empty(), CREATE, "VUID-VkImageCreateInfo-usage-requiredbitmask", || "usage is 0".into())?;
    // A view of another format may have a usage that the image's own format does not have.
    let extended = vk::ImageCreateFlags::MUTABLE_FORMAT | vk::ImageCreateFlags::EXTENDED_USAGE;
    let has = if info.flags.contains(extended) { view_features(info.format) } else { properties(info.format).optimal };
    let uses = [
        (vk::ImageUsageFlags::SAMPLED, vk::FormatFeatureFlags::SAMPLED_IMAGE),
        (vk::ImageUsageFlags::STORAGE, vk::FormatFeatureFlags::STORAGE_IMAGE),
        (vk::ImageUsageFlags::TRANSFER_SRC, vk::FormatFeatureFlags::TRANSFER_SRC),
        (vk::ImageUsageFlags::TRANSFER_DST, vk::FormatFeatureFlags::TRANSFER_DST),
        // The host can copy what queues can: the format feature for host copies exists only in `VkFormatFeatureFlags2`.
        (vk::ImageUsageFlags::HOST_TRANSFER_EXT, vk::FormatFeatureFlags::TRANSFER_SRC),
    ];
    let able = uses.iter().filter(|(_, feature)| has.contains(*feature)).map(|(usage, _)| *usage);
    let lacks = able.fold(info.usage, |left, usage| left & !usage);
    require(lacks.is_empty(), CREATE, "VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251", || {
        format!("usage {lacks:?} is not supported with format {:?}", info.format)
    })?;
    Ok(known)
}

fn check_shape(info: &ImageInfo) -> Result<(), Misuse> {
    let limits = Limits::DEVICE;
    let vk::Extent3D { width, height, depth } = info.extent;
    let max = match info.ty {
        vk::ImageType::TYPE_1D => [limits.max_image_dimension_1d, 1, 1],
        vk::ImageType::TYPE_2D => [limits.max_image_dimension_2d, limits.max_image_dimension_2d, 1],
        _ => [limits.max_image_dimension_3d; 3],
    };
    for (name, size, max, zero, above) in [
        ("width", width, max[0], "VUID-VkImageCreateInfo-extent-00944", "VUID-VkImageCreateInfo-extent-02252"),
        ("height", height, max[1], "VUID-VkImageCreateInfo-extent-00945", "VUID-VkImageCreateInfo-extent-02253"),
        ("depth", depth, max[2], "VUID-VkImageCreateInfo-extent-00946", "VUID-VkImageCreateInfo-extent-02254"),
    ] {
        require(size > 0, CREATE, zero, || format!("extent.{name} is 0"))?;
        require(size <= max, CREATE, above, || format!("extent.{name} {size} above the limit {max}"))?;
    }
    let levels = info.levels;
    require(levels > 0, CREATE, "VUID-VkImageCreateInfo-mipLevels-00947", || "mipLevels is 0".into())?;
    require(info.layers > 0, CREATE, "VUID-VkImageCreateInfo-arrayLayers-00948", || "arrayLayers is 0".into())?;
    let extent = Extent { size: [width, height, depth], levels, layers: info.layers };
    let max = extent.max_levels();
    require(levels <= max, CREATE, "VUID-VkImageCreateInfo-mipLevels-00958", || {
        format!("mipLevels {levels} for an image of at most {max}")
    })?;
    let max = if info.ty == vk::ImageType::TYPE_3D { 1 } else { limits.max_image_array_layers };
    require(info.layers <= max, CREATE, "VUID-VkImageCreateInfo-arrayLayers-02256", || {
        format!("arrayLayers {} above the limit {max}", info.layers)
    })?;
    if info.flags.contains(vk::ImageCreateFlags::CUBE_COMPATIBLE) {
        let two = info.ty == vk::ImageType::TYPE_2D;
        require(two, CREATE, "VUID-VkImageCreateInfo-flags-00949", || {
            "CUBE_COMPATIBLE for an image that is not 2D".into()
        })?;
        require(width == height, CREATE, "VUID-VkImageCreateInfo-flags-08865", || {
            format!("a cube with faces of {width} by {height} texels")
        })?;
        require(info.layers >= 6, CREATE, "VUID-VkImageCreateInfo-flags-08866", || {
            format!("a cube of {} layers", info.layers)
        })?;
    }
    Ok(())
}

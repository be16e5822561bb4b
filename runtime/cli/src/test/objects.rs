//! Device objects for the buffers and images that one run of a pipeline uses.

use spelter_driver::vk::{self, BufferUsageFlags, FormatFeatureFlags as F, ImageUsageFlags};
use spelter_driver::{Buffer, BufferView, Device, DeviceMemory, Error, Image, ImageInfo, ImageView, ImageViewInfo};

use crate::amber::Stop;
use crate::amber::script::{Buffer as Declared, Item};

/// A script's buffer on the device.
pub(super) struct OnDevice {
    pub(super) buffer: Buffer,
    memory: DeviceMemory,
}

/// A script's image on the device, and the buffer from and to which its texels are copied.
pub(super) struct ImageOnDevice {
    pub(super) image: Image,
    pub(super) texels: OnDevice,
    format: vk::Format,
    _memory: DeviceMemory,
}

/// An error of the driver: the script or the driver is wrong.
pub(super) fn refused(error: Error) -> Stop {
    Stop::Fail(error.to_string())
}

impl OnDevice {
    pub(super) fn new(device: &Device, bytes: &[u8]) -> Result<Self, Stop> {
        let any = BufferUsageFlags::TRANSFER_SRC
            | BufferUsageFlags::TRANSFER_DST
            | BufferUsageFlags::STORAGE_BUFFER
            | BufferUsageFlags::UNIFORM_BUFFER
            | BufferUsageFlags::UNIFORM_TEXEL_BUFFER
            | BufferUsageFlags::STORAGE_TEXEL_BUFFER;
        let buffer = device.create_buffer(bytes.len() as u64, any).map_err(refused)?;
        let memory = device.allocate_memory(buffer.requirements().size, 0).map_err(refused)?;
        buffer.bind_memory(&memory, 0).map_err(refused)?;
        memory.write(0, bytes).map_err(refused)?;
        Ok(Self { buffer, memory })
    }

    pub(super) fn read(&self, into: &mut [u8]) -> Result<(), Stop> {
        self.memory.read(0, into).map_err(refused)
    }

    /// The buffer's elements as texels.
    pub(super) fn view(&self, device: &Device, declared: &Declared, storage: bool) -> Result<BufferView, Stop> {
        let format = format(declared)?;
        let (feature, what) = if storage {
            (F::STORAGE_TEXEL_BUFFER, "storage texel buffers")
        } else {
            (F::UNIFORM_TEXEL_BUFFER, "uniform texel buffers")
        };
        offered(device.format_properties(format).buffer, feature, what, format)?;
        device.create_buffer_view(&self.buffer, format, 0, vk::WHOLE_SIZE).map_err(refused)
    }
}

impl ImageOnDevice {
    pub(super) fn new(device: &Device, declared: &Declared, bytes: &[u8]) -> Result<Self, Stop> {
        if declared.image.samples > 1 {
            return Err(Stop::Skip(format!("needs images of {} samples", declared.image.samples)));
        }
        let format = format(declared)?;
        let [width, height, depth] = declared.image.size;
        let has = device.format_properties(format).optimal;
        if has.is_empty() {
            return Err(Stop::Skip(format!("needs images of format {format:?}")));
        }
        let mut usage = ImageUsageFlags::TRANSFER_SRC | ImageUsageFlags::TRANSFER_DST;
        if has.contains(F::STORAGE_IMAGE) {
            usage |= ImageUsageFlags::STORAGE;
        }
        if has.contains(F::SAMPLED_IMAGE) {
            usage |= ImageUsageFlags::SAMPLED;
        }
        let info = ImageInfo {
            flags: vk::ImageCreateFlags::empty(),
            ty: declared.image.ty,
            format,
            extent: vk::Extent3D { width, height, depth },
            levels: declared.image.levels,
            layers: 1,
            tiling: vk::ImageTiling::OPTIMAL,
            usage,
        };
        let image = device.create_image(&info).map_err(refused)?;
        let memory = device.allocate_memory(image.requirements().size, 0).map_err(refused)?;
        image.bind_memory(&memory, 0).map_err(refused)?;
        Ok(Self { image, texels: OnDevice::new(device, bytes)?, format, _memory: memory })
    }

    /// The view of a descriptor: levels from the item's on; only one for a storage image.
    pub(super) fn view(&self, device: &Device, item: &Item, storage: bool) -> Result<ImageView, Stop> {
        let (feature, what) =
            if storage { (F::STORAGE_IMAGE, "storage images") } else { (F::SAMPLED_IMAGE, "sampled images") };
        offered(device.format_properties(self.format).optimal, feature, what, self.format)?;
        let info = ImageViewInfo {
            image: &self.image,
            ty: match self.image.info().ty {
                vk::ImageType::TYPE_1D => vk::ImageViewType::TYPE_1D,
                vk::ImageType::TYPE_3D => vk::ImageViewType::TYPE_3D,
                _ => vk::ImageViewType::TYPE_2D,
            },
            format: self.format,
            components: vk::ComponentMapping::default(),
            range: vk::ImageSubresourceRange {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                base_mip_level: item.level,
                level_count: if storage { 1 } else { vk::REMAINING_MIP_LEVELS },
                base_array_layer: 0,
                layer_count: 1,
            },
        };
        device.create_image_view(&info).map_err(refused)
    }

    /// The copy between the buffer and level 0, the only level that scripts fill.
    pub(super) fn region(&self) -> vk::BufferImageCopy {
        vk::BufferImageCopy {
            image_subresource: vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                mip_level: 0,
                base_array_layer: 0,
                layer_count: 1,
            },
            image_extent: self.image.info().extent,
            ..Default::default()
        }
    }
}

/// The format of a buffer's elements, each of which must be one texel.
fn format(declared: &Declared) -> Result<vk::Format, Stop> {
    let name = &declared.name;
    let texel = declared.ty.texel().filter(|texel| texel.bytes() == declared.layout.stride);
    let texel = texel.ok_or_else(|| Stop::Fail(format!("`{name}` has elements that are not texels")))?;
    texel.vk().ok_or_else(|| Stop::Skip(format!("needs images of format {}, which Vulkan does not have", texel.name)))
}

fn offered(has: F, needed: F, what: &str, format: vk::Format) -> Result<(), Stop> {
    if has.contains(needed) { Ok(()) } else { Err(Stop::Skip(format!("needs {what} of format {format:?}"))) }
}

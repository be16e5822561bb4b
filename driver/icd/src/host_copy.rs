//! Copies between images and host memory that the host executes without a queue (`VK_EXT_host_image_copy`).

use ash::vk::{self, HostImageCopyFlagsEXT as Flags, ImageLayout as L};
use spelter_driver::{self as driver, host_memory};

use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::command::plain_copy;
use crate::device::Device;
use crate::error::{Error, require};
use crate::image::Image;
use crate::physical_device::limits::HOST_COPY_LAYOUTS;
use crate::table::Ref;

entry_points! {
    PFN_vkCopyMemoryToImageEXT(
        device: vk::Device, p_copy_memory_to_image_info: *const vk::CopyMemoryToImageInfoEXT<'_>,
    ) -> vk::Result => upload;
    PFN_vkCopyImageToMemoryEXT(
        device: vk::Device, p_copy_image_to_memory_info: *const vk::CopyImageToMemoryInfoEXT<'_>,
    ) -> vk::Result => download;
    PFN_vkCopyImageToImageEXT(
        device: vk::Device, p_copy_image_to_image_info: *const vk::CopyImageToImageInfoEXT<'_>,
    ) -> vk::Result => copy;
    PFN_vkTransitionImageLayoutEXT(
        device: vk::Device, transition_count: u32, p_transitions: *const vk::HostImageLayoutTransitionInfoEXT<'_>,
    ) -> vk::Result => transition;
}

fn check_layout(call: &str, layout: L, vuid: &'static str) -> Result<(), Error> {
    require(HOST_COPY_LAYOUTS.contains(&layout), call, vuid, || {
        format!("{layout:?} is not one of the layouts for host copies")
    })
}

/// Valid-usage IDs of a copy with `VK_HOST_IMAGE_COPY_MEMCPY`, which must be of a whole level and tightly packed. The
/// texels in host memory are the same as without the flag.
struct Memcpy {
    call: &'static str,
    rows: &'static str,
    offset: &'static str,
    extent: &'static str,
}

const UPLOAD: Memcpy = Memcpy {
    call: "vkCopyMemoryToImageEXT",
    rows: "VUID-VkCopyMemoryToImageInfo-flags-09393",
    offset: "VUID-VkCopyMemoryToImageInfo-imageOffset-09114",
    extent: "VUID-VkCopyMemoryToImageInfo-dstImage-09115",
};

const DOWNLOAD: Memcpy = Memcpy {
    call: "vkCopyImageToMemoryEXT",
    rows: "VUID-VkCopyImageToMemoryInfo-flags-09394",
    offset: "VUID-VkCopyImageToMemoryInfo-imageOffset-09114",
    extent: "VUID-VkCopyImageToMemoryInfo-srcImage-09115",
};

impl Memcpy {
    fn check(&self, flags: Flags, image: &driver::Image, region: &driver::HostRegion) -> Result<(), Error> {
        // An invalid level is reported with the region.
        if !flags.contains(Flags::MEMCPY) || region.subresource.mip_level >= image.info().levels {
            return Ok(());
        }
        let lengths = [region.row_length, region.image_height];
        require(lengths == [0, 0], self.call, self.rows, || {
            format!("memoryRowLength and memoryImageHeight are {lengths:?} with MEMCPY")
        })?;
        require(region.offset == vk::Offset3D::default(), self.call, self.offset, || {
            format!("imageOffset {:?} with MEMCPY", region.offset)
        })?;
        let [width, height, depth] = image.size_of_level(region.subresource.mip_level);
        require(region.extent == vk::Extent3D { width, height, depth }, self.call, self.extent, || {
            format!("imageExtent {:?} with MEMCPY, the level has {width} by {height} by {depth} texels", region.extent)
        })
    }
}

fn upload(device: Ref<Device>, info: In<'_, vk::CopyMemoryToImageInfoEXT<'_>>) -> Result<(), Error> {
    let image = Image::of_host(info.dst_image, "VkCopyMemoryToImageInfo-dstImage")?;
    check_layout(UPLOAD.call, info.dst_image_layout, "VUID-VkCopyMemoryToImageInfo-dstImageLayout-09060")?;
    let regions = info.copies().each().map(|from| {
        let region = driver::HostRegion {
            row_length: from.memory_row_length,
            image_height: from.memory_image_height,
            subresource: from.image_subresource,
            offset: from.image_offset,
            extent: from.image_extent,
        };
        UPLOAD.check(info.flags, &image.driver, &region)?;
        let rows = image.driver.rows_from_host(&device.driver, &region)?;
        let bytes = from.bytes(rows.bytes()).ok_or_else(|| {
            Error::misuse(UPLOAD.call, "pHostPointer is null", "VUID-VkMemoryToImageCopy-pHostPointer-parameter")
        })?;
        Ok::<_, Error>((rows, bytes))
    });
    // All regions are checked before any is copied.
    let regions = host_memory::try_collect(regions)?;
    regions.iter().for_each(|(rows, bytes)| rows.write(bytes));
    Ok(())
}

fn download(device: Ref<Device>, info: In<'_, vk::CopyImageToMemoryInfoEXT<'_>>) -> Result<(), Error> {
    let image = Image::of_host(info.src_image, "VkCopyImageToMemoryInfo-srcImage")?;
    check_layout(DOWNLOAD.call, info.src_image_layout, "VUID-VkCopyImageToMemoryInfo-srcImageLayout-09065")?;
    let regions = info.copies().each().map(|to| {
        let region = driver::HostRegion {
            row_length: to.memory_row_length,
            image_height: to.memory_image_height,
            subresource: to.image_subresource,
            offset: to.image_offset,
            extent: to.image_extent,
        };
        DOWNLOAD.check(info.flags, &image.driver, &region)?;
        let vuid = "VUID-VkImageToMemoryCopy-pHostPointer-parameter";
        require(to.has_memory(), DOWNLOAD.call, vuid, || "pHostPointer is null".into())?;
        Ok::<_, Error>((image.driver.rows_to_host(&device.driver, &region)?, to))
    });
    let regions = host_memory::try_collect(regions)?;
    regions.iter().for_each(|(rows, to)| rows.read(|at, bytes| to.put(at, bytes)));
    Ok(())
}

fn copy(device: Ref<Device>, info: In<'_, vk::CopyImageToImageInfoEXT<'_>>) -> Result<(), Error> {
    let call = "vkCopyImageToImageEXT";
    let from = Image::of_host(info.src_image, "VkCopyImageToImageInfo-srcImage")?;
    let to = Image::of_host(info.dst_image, "VkCopyImageToImageInfo-dstImage")?;
    check_layout(call, info.src_image_layout, "VUID-VkCopyImageToImageInfo-srcImageLayout-09072")?;
    check_layout(call, info.dst_image_layout, "VUID-VkCopyImageToImageInfo-dstImageLayout-09073")?;
    let regions = host_memory::collect(info.copies().iter().map(plain_copy))?;
    Ok(from.driver.copy_on_host(&device.driver, &to.driver, &regions)?)
}

/// A transition checks valid usage, and is an access for checked mode: layouts do not change where texels are stored.
fn transition(
    device: Ref<Device>,
    count: u32,
    transitions: Many<'_, vk::HostImageLayoutTransitionInfoEXT<'_>>,
) -> Result<(), Error> {
    let call = "vkTransitionImageLayoutEXT";
    for transition in transitions.of(count as usize).iter() {
        let image = Image::of_host(transition.image, "VkHostImageLayoutTransitionInfo-image")?;
        let info = image.driver.info();
        let usage = info.usage.contains(vk::ImageUsageFlags::HOST_TRANSFER_EXT);
        require(usage, call, "VUID-VkHostImageLayoutTransitionInfo-image-09055", || {
            format!("the image's usage {:?} lacks HOST_TRANSFER", info.usage)
        })?;
        if transition.old_layout != L::UNDEFINED {
            check_layout(call, transition.old_layout, "VUID-VkHostImageLayoutTransitionInfo-oldLayout-09230")?;
        }
        check_layout(call, transition.new_layout, "VUID-VkHostImageLayoutTransitionInfo-newLayout-09057")?;
        let range = transition.subresource_range;
        require(
            range.base_mip_level < info.levels,
            call,
            "VUID-VkHostImageLayoutTransitionInfo-subresourceRange-01486",
            || format!("baseMipLevel {} of {}", range.base_mip_level, info.levels),
        )?;
        require(
            range.base_array_layer < info.layers,
            call,
            "VUID-VkHostImageLayoutTransitionInfo-subresourceRange-01488",
            || format!("baseArrayLayer {} of {}", range.base_array_layer, info.layers),
        )?;
        // Equal layouts request no transition.
        if transition.old_layout != transition.new_layout {
            image.driver.transition_on_host(&device.driver, &range);
        }
    }
    Ok(())
}

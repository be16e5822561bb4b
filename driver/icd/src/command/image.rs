//! Copies and clears of images.

use ash::vk;
use spelter_driver::{self as driver, host_memory};

use super::CommandBuffer;
use crate::buffer::Buffer;
use crate::c::entry::entry_points;
use crate::c::{In, Many, Plain};
use crate::error::Error;
use crate::image::Image;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdCopyImage(
        command_buffer: vk::CommandBuffer, src_image: vk::Image, src_image_layout: vk::ImageLayout,
        dst_image: vk::Image, dst_image_layout: vk::ImageLayout, region_count: u32, p_regions: *const vk::ImageCopy,
    ) => copy;
    PFN_vkCmdCopyImage2(command_buffer: vk::CommandBuffer, p_copy_image_info: *const vk::CopyImageInfo2<'_>) => copy2;
    PFN_vkCmdCopyBufferToImage(
        command_buffer: vk::CommandBuffer, src_buffer: vk::Buffer, dst_image: vk::Image,
        dst_image_layout: vk::ImageLayout, region_count: u32, p_regions: *const vk::BufferImageCopy,
    ) => upload;
    PFN_vkCmdCopyBufferToImage2(
        command_buffer: vk::CommandBuffer, p_copy_buffer_to_image_info: *const vk::CopyBufferToImageInfo2<'_>,
    ) => upload2;
    PFN_vkCmdCopyImageToBuffer(
        command_buffer: vk::CommandBuffer, src_image: vk::Image, src_image_layout: vk::ImageLayout,
        dst_buffer: vk::Buffer, region_count: u32, p_regions: *const vk::BufferImageCopy,
    ) => download;
    PFN_vkCmdCopyImageToBuffer2(
        command_buffer: vk::CommandBuffer, p_copy_image_to_buffer_info: *const vk::CopyImageToBufferInfo2<'_>,
    ) => download2;
    PFN_vkCmdClearColorImage(
        command_buffer: vk::CommandBuffer, image: vk::Image, image_layout: vk::ImageLayout,
        p_color: *const vk::ClearColorValue, range_count: u32, p_ranges: *const vk::ImageSubresourceRange,
    ) => clear;
}

fn record_copy(
    commands: &CommandBuffer,
    from: vk::Image,
    to: vk::Image,
    regions: &[vk::ImageCopy],
) -> Result<(), Error> {
    commands.add(|into| {
        let from = Image::get(from, "vkCmdCopyImage-srcImage")?;
        let to = Image::get(to, "vkCmdCopyImage-dstImage")?;
        Ok(into.copy_image(&from.driver, &to.driver, regions)?)
    })
}

fn record_upload(
    commands: &CommandBuffer,
    from: vk::Buffer,
    to: vk::Image,
    regions: &[vk::BufferImageCopy],
) -> Result<(), Error> {
    commands.add(|into| {
        let from = Buffer::get(from, "vkCmdCopyBufferToImage-srcBuffer")?;
        let to = Image::get(to, "vkCmdCopyBufferToImage-dstImage")?;
        Ok(into.copy_buffer_to_image(&from.driver, &to.driver, regions)?)
    })
}

fn record_download(
    commands: &CommandBuffer,
    from: vk::Image,
    to: vk::Buffer,
    regions: &[vk::BufferImageCopy],
) -> Result<(), Error> {
    commands.add(|into| {
        let from = Image::get(from, "vkCmdCopyImageToBuffer-srcImage")?;
        let to = Buffer::get(to, "vkCmdCopyImageToBuffer-dstBuffer")?;
        Ok(into.copy_image_to_buffer(&from.driver, &to.driver, regions)?)
    })
}

fn copy(
    commands: Ref<CommandBuffer>,
    from: vk::Image,
    _: vk::ImageLayout,
    to: vk::Image,
    _: vk::ImageLayout,
    count: u32,
    regions: Many<'_, vk::ImageCopy>,
) -> Result<(), Error> {
    record_copy(&commands, from, to, &regions.of(count as usize))
}

fn copy2(commands: Ref<CommandBuffer>, info: In<'_, vk::CopyImageInfo2<'_>>) -> Result<(), Error> {
    let regions = host_memory::collect(info.copies().iter().map(plain_copy))?;
    record_copy(&commands, info.src_image, info.dst_image, &regions)
}

fn upload(
    commands: Ref<CommandBuffer>,
    from: vk::Buffer,
    to: vk::Image,
    _: vk::ImageLayout,
    count: u32,
    regions: Many<'_, vk::BufferImageCopy>,
) -> Result<(), Error> {
    record_upload(&commands, from, to, &regions.of(count as usize))
}

fn download(
    commands: Ref<CommandBuffer>,
    from: vk::Image,
    _: vk::ImageLayout,
    to: vk::Buffer,
    count: u32,
    regions: Many<'_, vk::BufferImageCopy>,
) -> Result<(), Error> {
    record_download(&commands, from, to, &regions.of(count as usize))
}

/// A `2` region as the region structure of Vulkan 1.0.
pub(crate) fn plain_copy(region: &vk::ImageCopy2<'_>) -> vk::ImageCopy {
    vk::ImageCopy {
        src_subresource: region.src_subresource,
        src_offset: region.src_offset,
        dst_subresource: region.dst_subresource,
        dst_offset: region.dst_offset,
        extent: region.extent,
    }
}

fn plain(region: &vk::BufferImageCopy2<'_>) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        buffer_offset: region.buffer_offset,
        buffer_row_length: region.buffer_row_length,
        buffer_image_height: region.buffer_image_height,
        image_subresource: region.image_subresource,
        image_offset: region.image_offset,
        image_extent: region.image_extent,
    }
}

fn upload2(commands: Ref<CommandBuffer>, info: In<'_, vk::CopyBufferToImageInfo2<'_>>) -> Result<(), Error> {
    let regions = host_memory::collect(info.copies().iter().map(plain))?;
    record_upload(&commands, info.src_buffer, info.dst_image, &regions)
}

fn download2(commands: Ref<CommandBuffer>, info: In<'_, vk::CopyImageToBufferInfo2<'_>>) -> Result<(), Error> {
    let regions = host_memory::collect(info.copies().iter().map(plain))?;
    record_download(&commands, info.src_image, info.dst_buffer, &regions)
}

fn clear(
    commands: Ref<CommandBuffer>,
    image: vk::Image,
    _: vk::ImageLayout,
    color: Plain<'_, vk::ClearColorValue>,
    count: u32,
    ranges: Many<'_, vk::ImageSubresourceRange>,
) -> Result<(), Error> {
    commands.add(|into| {
        let image = Image::get(image, "vkCmdClearColorImage-image")?;
        // All members of the union have the same bits; the driver interprets them by the image's format.
        let color = driver::ClearColor::Uint(color.0.bits());
        Ok(into.clear_color_image(&image.driver, color, &ranges.of(count as usize))?)
    })
}

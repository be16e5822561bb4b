//! Barriers. Whatever stages and accesses one names, everything before it ends before anything after it begins: so the names,
//! of which newer versions have more, need no translation.

use ash::vk::{self, AccessFlags, PipelineStageFlags};
use spelter_driver as driver;

use super::CommandBuffer;
use crate::buffer::Buffer;
use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::error::Error;
use crate::image::Image;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdPipelineBarrier(
        command_buffer: vk::CommandBuffer, src_stage_mask: PipelineStageFlags,
        dst_stage_mask: PipelineStageFlags, dependency_flags: vk::DependencyFlags, memory_barrier_count: u32,
        p_memory_barriers: *const vk::MemoryBarrier<'_>, buffer_memory_barrier_count: u32,
        p_buffer_memory_barriers: *const vk::BufferMemoryBarrier<'_>, image_memory_barrier_count: u32,
        p_image_memory_barriers: *const vk::ImageMemoryBarrier<'_>,
    ) => barrier;
    PFN_vkCmdPipelineBarrier2(
        command_buffer: vk::CommandBuffer, p_dependency_info: *const vk::DependencyInfo<'_>,
    ) => barrier2;
}

/// What all barriers are to the driver.
const BEFORE: AccessFlags = AccessFlags::MEMORY_WRITE;
const AFTER: AccessFlags =
    AccessFlags::from_raw(AccessFlags::MEMORY_READ.as_raw() | AccessFlags::MEMORY_WRITE.as_raw());

/// A range of a buffer.
pub(super) struct BufferRange {
    pub(super) buffer: vk::Buffer,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// Levels and layers of an image.
pub(super) struct ImageRange {
    pub(super) image: vk::Image,
    pub(super) layouts: [vk::ImageLayout; 2],
    pub(super) range: vk::ImageSubresourceRange,
}

/// A barrier, with what it names checked.
fn record(
    into: &driver::CommandBuffer,
    buffers: impl Iterator<Item = BufferRange>,
    images: impl Iterator<Item = ImageRange>,
) -> Result<(), Error> {
    let find = |range: BufferRange| Ok((Buffer::get(range.buffer, "VkBufferMemoryBarrier-buffer")?, range));
    let buffers = buffers.map(find).collect::<Result<Vec<_>, Error>>()?;
    let buffers = buffers.iter().map(|(buffer, range)| driver::BufferMemoryBarrier {
        src_access: BEFORE,
        dst_access: AFTER,
        buffer: &buffer.driver,
        offset: range.offset,
        size: range.size,
    });
    let find = |range: ImageRange| Ok((Image::get(range.image, "VkImageMemoryBarrier-image")?, range));
    let images = images.map(find).collect::<Result<Vec<_>, Error>>()?;
    let images = images.iter().map(|(image, range)| driver::ImageMemoryBarrier {
        src_access: BEFORE,
        dst_access: AFTER,
        old_layout: range.layouts[0],
        new_layout: range.layouts[1],
        image: &image.driver,
        range: range.range,
    });
    let (buffers, images): (Vec<_>, Vec<_>) = (buffers.collect(), images.collect());
    let all = PipelineStageFlags::ALL_COMMANDS;
    Ok(into.pipeline_barrier_with_images(all, all, &[], &buffers, &images)?)
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn barrier(
    commands: Ref<CommandBuffer>,
    _: PipelineStageFlags,
    _: PipelineStageFlags,
    _: vk::DependencyFlags,
    _: u32,
    _: Many<'_, vk::MemoryBarrier<'_>>,
    buffer_count: u32,
    buffers: Many<'_, vk::BufferMemoryBarrier<'_>>,
    image_count: u32,
    images: Many<'_, vk::ImageMemoryBarrier<'_>>,
) -> Result<(), Error> {
    let (buffers, images) = (buffers.of(buffer_count as usize), images.of(image_count as usize));
    let buffers = buffers.get().iter().map(|b| BufferRange { buffer: b.buffer, offset: b.offset, size: b.size });
    let images = images.get().iter().map(|i| ImageRange {
        image: i.image,
        layouts: [i.old_layout, i.new_layout],
        range: i.subresource_range,
    });
    commands.add(|into| record(into, buffers, images))
}

fn barrier2(commands: Ref<CommandBuffer>, info: In<'_, vk::DependencyInfo<'_>>) -> Result<(), Error> {
    let (buffers, images) = (info.buffers(), info.images());
    let buffers = buffers.get().iter().map(|b| BufferRange { buffer: b.buffer, offset: b.offset, size: b.size });
    let images = images.get().iter().map(|i| ImageRange {
        image: i.image,
        layouts: [i.old_layout, i.new_layout],
        range: i.subresource_range,
    });
    commands.add(|into| record(into, buffers, images))
}

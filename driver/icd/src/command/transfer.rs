//! Copies, fills and updates of buffers.

use ash::vk;
use spelter_driver::host_memory;
use std::ffi::c_void;

use super::CommandBuffer;
use crate::buffer::Buffer;
use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::error::{Error, require};
use crate::table::{Object, Ref};

/// The limit of `vkCmdUpdateBuffer`.
const MAX_UPDATED: vk::DeviceSize = 65_536;

entry_points! {
    PFN_vkCmdCopyBuffer(
        command_buffer: vk::CommandBuffer, src_buffer: vk::Buffer, dst_buffer: vk::Buffer, region_count: u32,
        p_regions: *const vk::BufferCopy,
    ) => copy;
    PFN_vkCmdCopyBuffer2(
        command_buffer: vk::CommandBuffer, p_copy_buffer_info: *const vk::CopyBufferInfo2<'_>,
    ) => copy2;
    PFN_vkCmdFillBuffer(
        command_buffer: vk::CommandBuffer, dst_buffer: vk::Buffer, dst_offset: vk::DeviceSize, size: vk::DeviceSize,
        data: u32,
    ) => fill;
    PFN_vkCmdUpdateBuffer(
        command_buffer: vk::CommandBuffer, dst_buffer: vk::Buffer, dst_offset: vk::DeviceSize,
        data_size: vk::DeviceSize, p_data: *const c_void,
    ) => update;
}

fn record(commands: &CommandBuffer, from: vk::Buffer, to: vk::Buffer, regions: &[vk::BufferCopy]) -> Result<(), Error> {
    commands.add(|into| {
        let from = Buffer::get(from, "vkCmdCopyBuffer-srcBuffer")?;
        let to = Buffer::get(to, "vkCmdCopyBuffer-dstBuffer")?;
        Ok(into.copy_buffer(&from.driver, &to.driver, regions)?)
    })
}

fn copy(
    commands: Ref<CommandBuffer>,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: Many<'_, vk::BufferCopy>,
) -> Result<(), Error> {
    record(&commands, from, to, &regions.of(count as usize))
}

fn copy2(commands: Ref<CommandBuffer>, info: In<'_, vk::CopyBufferInfo2<'_>>) -> Result<(), Error> {
    let plain = |region: &vk::BufferCopy2<'_>| vk::BufferCopy {
        src_offset: region.src_offset,
        dst_offset: region.dst_offset,
        size: region.size,
    };
    let regions = host_memory::collect(info.copies().iter().map(plain))?;
    record(&commands, info.src_buffer, info.dst_buffer, &regions)
}

fn fill(commands: Ref<CommandBuffer>, to: vk::Buffer, offset: u64, size: u64, word: u32) -> Result<(), Error> {
    commands
        .add(|into| Ok(into.fill_buffer(&Buffer::get(to, "vkCmdFillBuffer-dstBuffer")?.driver, offset, size, word)?))
}

fn update(
    commands: Ref<CommandBuffer>,
    to: vk::Buffer,
    offset: u64,
    size: u64,
    data: Many<'_, c_void>,
) -> Result<(), Error> {
    commands.add(|into| {
        let to = Buffer::get(to, "vkCmdUpdateBuffer-dstBuffer")?;
        // Before the bytes are read: the program may have fewer.
        require(size <= MAX_UPDATED, "vkCmdUpdateBuffer", "VUID-vkCmdUpdateBuffer-dataSize-00037", || {
            format!("dataSize {size} above {MAX_UPDATED}")
        })?;
        let bytes = data.bytes(size as usize);
        Ok(into.update_buffer(&to.driver, offset, bytes)?)
    })
}

//! Dispatches.

use ash::vk;

use super::CommandBuffer;
use crate::buffer::Buffer;
use crate::c::In;
use crate::c::entry::entry_points;
use crate::error::Error;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdDispatch(
        command_buffer: vk::CommandBuffer, group_count_x: u32, group_count_y: u32, group_count_z: u32,
    ) => dispatch;
    PFN_vkCmdDispatchBase(
        command_buffer: vk::CommandBuffer, base_group_x: u32, base_group_y: u32, base_group_z: u32,
        group_count_x: u32, group_count_y: u32, group_count_z: u32,
    ) => dispatch_base;
    PFN_vkCmdDispatchIndirect(
        command_buffer: vk::CommandBuffer, buffer: vk::Buffer, offset: vk::DeviceSize,
    ) => dispatch_indirect;
    PFN_vkCmdSetDeviceMask(command_buffer: vk::CommandBuffer, device_mask: u32) => set_device_mask;
    PFN_vkCmdBeginConditionalRenderingEXT(
        command_buffer: vk::CommandBuffer,
        p_conditional_rendering_begin: *const vk::ConditionalRenderingBeginInfoEXT<'_>,
    ) => begin_conditional;
    PFN_vkCmdEndConditionalRenderingEXT(command_buffer: vk::CommandBuffer) => end_conditional;
}

fn dispatch(commands: Ref<CommandBuffer>, x: u32, y: u32, z: u32) -> Result<(), Error> {
    commands.add(|into| Ok(into.dispatch(x, y, z)?))
}

fn dispatch_base(
    commands: Ref<CommandBuffer>,
    base_x: u32,
    base_y: u32,
    base_z: u32,
    x: u32,
    y: u32,
    z: u32,
) -> Result<(), Error> {
    commands.add(|into| Ok(into.dispatch_base([base_x, base_y, base_z], [x, y, z])?))
}

fn dispatch_indirect(commands: Ref<CommandBuffer>, buffer: vk::Buffer, offset: u64) -> Result<(), Error> {
    commands.add(|into| {
        let buffer = Buffer::get(buffer, "vkCmdDispatchIndirect-buffer")?;
        Ok(into.dispatch_indirect(&buffer.driver, offset)?)
    })
}

/// A device group of one device has one valid mask.
fn set_device_mask(commands: Ref<CommandBuffer>, mask: u32) -> Result<(), Error> {
    commands.add(|_| {
        if mask == 1 {
            return Ok(());
        }
        let vuid = "VUID-vkCmdSetDeviceMask-deviceMask-00108";
        Err(Error::misuse("vkCmdSetDeviceMask", format!("deviceMask {mask} in a group of 1 device"), vuid))
    })
}

/// Dispatches until the end of the condition run only if a word of a buffer is not 0, or is 0 if inverted.
fn begin_conditional(
    commands: Ref<CommandBuffer>,
    info: In<'_, vk::ConditionalRenderingBeginInfoEXT<'_>>,
) -> Result<(), Error> {
    commands.add(|into| {
        let buffer = Buffer::get(info.buffer, "VkConditionalRenderingBeginInfoEXT-buffer")?;
        let inverted = info.flags.contains(vk::ConditionalRenderingFlagsEXT::INVERTED);
        Ok(into.begin_conditional(&buffer.driver, info.offset, inverted)?)
    })
}

fn end_conditional(commands: Ref<CommandBuffer>) -> Result<(), Error> {
    commands.add(|into| Ok(into.end_conditional()?))
}

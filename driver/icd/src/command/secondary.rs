//! Secondary command buffers.

use ash::vk;
use spelter_driver::host_memory;

use super::CommandBuffer;
use crate::c::Many;
use crate::c::entry::entry_points;
use crate::error::Error;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdExecuteCommands(
        command_buffer: vk::CommandBuffer, command_buffer_count: u32, p_command_buffers: *const vk::CommandBuffer,
    ) => execute;
}

fn execute(commands: Ref<CommandBuffer>, count: u32, buffers: Many<'_, vk::CommandBuffer>) -> Result<(), Error> {
    commands.add(|into| {
        let at = "vkCmdExecuteCommands-pCommandBuffers";
        let find = |&buffer: &vk::CommandBuffer| CommandBuffer::get(buffer, at);
        let buffers = host_memory::try_collect(buffers.of(count as usize).iter().map(find))?;
        let buffers = host_memory::collect(buffers.iter().map(|buffer| &buffer.driver))?;
        // Push descriptors become undefined, as all other state does.
        *commands.pushed() = None;
        Ok(into.execute_commands(&buffers)?)
    })
}

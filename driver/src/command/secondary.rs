//! Secondary command buffers: recorded separately, executed by primary ones.

use std::sync::Arc;

use ash::vk::CommandBufferUsageFlags as Flags;

use super::CommandBuffer;
use super::buffer::LifecycleState;
use crate::error::{Error, Misuse, require};
use crate::exec::Recording;
use crate::host_memory;

const AT: &str = "vkCmdExecuteCommands";

impl CommandBuffer {
    /// `vkCmdExecuteCommands`: adds the commands of the secondary command buffers, in order. Pipeline, sets and push
    /// constants are neither inherited nor kept.
    pub fn execute_commands(&self, secondaries: &[&CommandBuffer]) -> Result<(), Error> {
        let primary = !self.is_secondary();
        require(primary, AT, "VUID-vkCmdExecuteCommands-commandBuffer-09375", || {
            "the command buffer is secondary".into()
        })?;
        require(!secondaries.is_empty(), AT, "VUID-vkCmdExecuteCommands-commandBufferCount-arraylength", || {
            "commandBufferCount is 0".into()
        })?;
        let checked = |(index, secondary): (usize, &&Self)| Ok::<_, Error>(self.checked_recording(index, secondary)?);
        let recordings = host_memory::try_collect(secondaries.iter().enumerate().map(checked))?;
        let mut recorder = self.recorder(AT, "VUID-vkCmdExecuteCommands-commandBuffer-recording")?;
        for (secondary, recording) in secondaries.iter().zip(recordings) {
            recorder.execute(secondary, &recording)?;
        }
        recorder.forget_state();
        Ok(())
    }

    /// The recording of a secondary command buffer that may be executed here.
    fn checked_recording(&self, index: usize, secondary: &CommandBuffer) -> Result<Arc<Recording>, Misuse> {
        let at = format!("pCommandBuffers[{index}]");
        require(secondary.device().is(self.device()), &at, "VUID-vkCmdExecuteCommands-commonparent", || {
            "a command buffer of another device".into()
        })?;
        require(secondary.is_secondary(), &at, "VUID-vkCmdExecuteCommands-pCommandBuffers-00088", || {
            "the command buffer is primary".into()
        })?;
        let mut lifecycle = secondary.lifecycle();
        let pending = lifecycle.is_pending(secondary.device());
        let LifecycleState::Executable(executable) = &lifecycle.state else {
            let problem = format!("the command buffer is not executable: its state is {}", lifecycle.state.name());
            return Err(Misuse::new(at, problem, "VUID-vkCmdExecuteCommands-pCommandBuffers-00089"));
        };
        let free = !pending || executable.flags.contains(Flags::SIMULTANEOUS_USE);
        require(free, &at, "VUID-vkCmdExecuteCommands-pCommandBuffers-00091", || {
            "the command buffer is pending and was begun without SIMULTANEOUS_USE".into()
        })?;
        Ok(Arc::clone(&executable.recording))
    }
}

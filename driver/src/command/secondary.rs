//! Secondary command buffers: recorded alone, run as a part of primary ones.

use std::sync::Arc;

use ash::vk::CommandBufferUsageFlags as Flags;

use super::CommandBuffer;
use super::buffer::Stage;
use crate::error::{Error, Misuse, require};
use crate::exec::Recording;
use crate::host_memory;

const AT: &str = "vkCmdExecuteCommands";

impl CommandBuffer {
    /// `vkCmdExecuteCommands`: what the secondary command buffers recorded, as if it were recorded here, one after the other.
    /// Pipeline, sets and push constants are not handed down, nor kept.
    pub fn execute_commands(&self, secondaries: &[&CommandBuffer]) -> Result<(), Error> {
        let primary = !self.is_secondary();
        require(primary, AT, "VUID-vkCmdExecuteCommands-commandBuffer-09375", || {
            "the command buffer is secondary".into()
        })?;
        require(!secondaries.is_empty(), AT, "VUID-vkCmdExecuteCommands-commandBufferCount-arraylength", || {
            "commandBufferCount is 0".into()
        })?;
        let part = |(index, secondary): (usize, &&Self)| Ok::<_, Error>(self.part(index, secondary)?);
        let parts = host_memory::try_collect(secondaries.iter().enumerate().map(part))?;
        let mut recorder = self.recorder(AT, "VUID-vkCmdExecuteCommands-commandBuffer-recording")?;
        for (secondary, recording) in secondaries.iter().zip(parts) {
            recorder.execute(secondary, &recording)?;
        }
        recorder.forget_state();
        Ok(())
    }

    /// The recording of a secondary command buffer that may be executed here.
    fn part(&self, index: usize, secondary: &CommandBuffer) -> Result<Arc<Recording>, Misuse> {
        let at = format!("pCommandBuffers[{index}]");
        require(secondary.device().is(self.device()), &at, "VUID-vkCmdExecuteCommands-commonparent", || {
            "a command buffer of another device".into()
        })?;
        require(secondary.is_secondary(), &at, "VUID-vkCmdExecuteCommands-pCommandBuffers-00088", || {
            "the command buffer is primary".into()
        })?;
        let mut life = secondary.life();
        let pending = life.is_pending(secondary.device());
        let Stage::Executable(executable) = &life.stage else {
            let problem = format!("the command buffer is not executable: its state is {}", life.stage.name());
            return Err(Misuse::new(at, problem, "VUID-vkCmdExecuteCommands-pCommandBuffers-00089"));
        };
        let free = !pending || executable.flags.contains(Flags::SIMULTANEOUS_USE);
        require(free, &at, "VUID-vkCmdExecuteCommands-pCommandBuffers-00091", || {
            "the command buffer is pending and was begun without SIMULTANEOUS_USE".into()
        })?;
        Ok(Arc::clone(&executable.recording))
    }
}

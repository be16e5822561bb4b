//! The moment of submission: who may enter, and what they leave behind.
//!
//! No command buffer stays locked while the executor works: two threads may submit the same ones in any order. Between
//! `begin` and `finish` a command buffer counts as pending by its `entering`.

use std::sync::Arc;

use ash::vk::CommandBufferUsageFlags as Flags;

use super::CommandBuffer;
use super::buffer::{Life, Stage};
use crate::device::Device;
use crate::error::{Misuse, require};
use crate::exec::{QueueState, Recording};

/// Command buffers on their way into a queue. If it is dropped before [`Submission::finish`] they are as before.
pub(crate) struct Submission {
    entered: Vec<(CommandBuffer, Arc<Recording>)>,
}

impl Submission {
    pub(crate) fn begin(commands: &[&CommandBuffer]) -> Result<Self, Misuse> {
        let mut submission = Self { entered: Vec::with_capacity(commands.len()) };
        for (index, &command) in commands.iter().enumerate() {
            let mut life = command.life();
            let recording = enter(index, command.device(), &mut life)?;
            life.entering += 1;
            drop(life);
            submission.entered.push((command.clone(), recording));
        }
        Ok(submission)
    }

    pub(crate) fn recordings(&self) -> Vec<Arc<Recording>> {
        self.entered.iter().map(|(_, recording)| Arc::clone(recording)).collect()
    }

    /// The queue has taken them.
    pub(crate) fn finish(mut self, queue: &Arc<QueueState>, serial: u64) {
        for (command, _) in self.entered.drain(..) {
            let mut life = command.life();
            life.entering -= 1;
            life.submitted.retain(|(queue, serial)| queue.retired() < *serial);
            life.submitted.push((Arc::clone(queue), serial));
            if let Stage::Executable(executable) = &life.stage
                && executable.flags.contains(Flags::ONE_TIME_SUBMIT)
            {
                life.stage = Stage::Invalid;
            }
        }
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        for (command, _) in self.entered.drain(..) {
            command.life().entering -= 1;
        }
    }
}

/// The recording of a command buffer that may be submitted now.
fn enter(index: usize, device: &Device, life: &mut Life) -> Result<Arc<Recording>, Misuse> {
    let at = format!("pCommandBuffers[{index}]");
    let pending = life.is_pending(device);
    let Stage::Executable(executable) = &life.stage else {
        let problem = format!("the command buffer is not executable: its state is {}", life.stage.name());
        return Err(Misuse::new(at, problem, "VUID-vkQueueSubmit-pCommandBuffers-00070"));
    };
    let free = !pending || executable.flags.contains(Flags::SIMULTANEOUS_USE);
    require(free, &at, "VUID-vkQueueSubmit-pCommandBuffers-00071", || {
        "the command buffer is pending and was begun without SIMULTANEOUS_USE".into()
    })?;
    require(!executable.is_stale(), &at, "VUID-vkQueueSubmit-pCommandBuffers-00070", || {
        "the command buffer is invalid: a descriptor set that it uses was written after it was bound".into()
    })?;
    Ok(Arc::clone(&executable.recording))
}

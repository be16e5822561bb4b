//! Submission of command buffers: which may be submitted, and their state afterwards.
//!
//! No command buffer stays locked while the executor works: two threads may submit the same ones in any order. Between
//! `begin` and `finish` a command buffer counts as pending by its `entering`.

use std::fmt;
use std::sync::Arc;

use ash::vk::CommandBufferUsageFlags as Flags;

use super::CommandBuffer;
use super::buffer::{Lifecycle, LifecycleState};
use super::dispatch_state::resolve_late;
use super::recorder::ExecutedSecondary;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::exec::{QueueState, Recording};
use crate::host_memory::{self, OutOfHostMemory};

/// Command buffers that are being submitted. A drop before [`Submission::finish`] restores their state.
pub(crate) struct Submission {
    entered: Vec<(CommandBuffer, Arc<Recording>)>,
}

impl Submission {
    pub(crate) fn begin(commands: &[&CommandBuffer]) -> Result<Self, Error> {
        let mut submission = Self { entered: host_memory::list(commands.len())? };
        for (index, &command) in commands.iter().enumerate() {
            let at = format_args!("pCommandBuffers[{index}]");
            require(!command.is_secondary(), at, "VUID-VkSubmitInfo-pCommandBuffers-00075", || {
                "the command buffer is secondary".into()
            })?;
            let secondaries = submission.enter(at, command, None)?;
            host_memory::reserve(&mut submission.entered, secondaries.len())?;
            for (secondary, recorded) in &secondaries {
                submission.enter(at, secondary, Some(recorded))?;
            }
        }
        Ok(submission)
    }

    /// Adds one command buffer; its secondary ones follow it. `recorded` is the recording that a secondary one must
    /// still have.
    fn enter(
        &mut self,
        at: fmt::Arguments<'_>,
        command: &CommandBuffer,
        recorded: Option<&Arc<Recording>>,
    ) -> Result<Vec<ExecutedSecondary>, Misuse> {
        let mut lifecycle = command.lifecycle();
        let (recording, secondaries) = enter(at, command.device(), &mut lifecycle, recorded)?;
        lifecycle.entering += 1;
        drop(lifecycle);
        self.entered.push((command.clone(), recording));
        Ok(secondaries)
    }

    /// The recordings for the queue, in order.
    pub(crate) fn recordings(&self) -> Result<Vec<Arc<Recording>>, OutOfHostMemory> {
        let primary = self.entered.iter().filter(|(command, _)| !command.is_secondary());
        host_memory::try_collect(primary.map(|(_, recording)| resolve_late(recording)))
    }

    /// The queue has accepted them.
    pub(crate) fn finish(mut self, queue: &Arc<QueueState>, serial: u64) {
        for (command, _) in self.entered.drain(..) {
            let mut lifecycle = command.lifecycle();
            lifecycle.entering -= 1;
            lifecycle.submitted.retain(|(queue, serial)| queue.retired() < *serial);
            lifecycle.submitted.push((Arc::clone(queue), serial));
            if let LifecycleState::Executable(executable) = &lifecycle.state
                && executable.flags.contains(Flags::ONE_TIME_SUBMIT)
            {
                lifecycle.state = LifecycleState::Invalid;
            }
        }
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        for (command, _) in self.entered.drain(..) {
            command.lifecycle().entering -= 1;
        }
    }
}

/// The recording of a command buffer that may be submitted now, and the secondary ones that it executes.
fn enter(
    at: fmt::Arguments<'_>,
    device: &Device,
    lifecycle: &mut Lifecycle,
    recorded: Option<&Arc<Recording>>,
) -> Result<(Arc<Recording>, Vec<ExecutedSecondary>), Misuse> {
    let kind = if recorded.is_some() { "a secondary command buffer" } else { "the command buffer" };
    let pending = lifecycle.is_pending(device);
    let (executable, pending_vuid) = match (&lifecycle.state, recorded) {
        (LifecycleState::Executable(executable), None) => (executable, "VUID-vkQueueSubmit-pCommandBuffers-00071"),
        // A primary command buffer has the recording that its secondary had then: another one since makes it invalid.
        (LifecycleState::Executable(executable), Some(recorded)) if Arc::ptr_eq(&executable.recording, recorded) => {
            (executable, "VUID-vkQueueSubmit-pCommandBuffers-00073")
        }
        (state, recorded) => {
            let state = if recorded.is_some() { "recorded again since" } else { state.name() };
            let problem = format!("{kind} is not executable: its state is {state}");
            return Err(Misuse::new(at.to_string(), problem, "VUID-vkQueueSubmit-pCommandBuffers-00070"));
        }
    };
    let free = !pending || executable.flags.contains(Flags::SIMULTANEOUS_USE);
    require(free, at, pending_vuid, || format!("{kind} is pending and was begun without SIMULTANEOUS_USE"))?;
    require(!executable.is_stale(), at, "VUID-vkQueueSubmit-pCommandBuffers-00070", || {
        format!("{kind} is invalid: a descriptor set that it uses was written after it was bound")
    })?;
    Ok((Arc::clone(&executable.recording), executable.secondaries.clone()))
}

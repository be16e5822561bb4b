//! Queues and fences as callers see them: the rules around what the executor does.

mod fence;

pub use fence::Fence;

use std::fmt;
use std::sync::Arc;

use crate::command::{CommandBuffer, Submission};
use crate::device::Device;
use crate::error::{Error, require};
use crate::exec::QueueState;
use crate::exec::work::Batch;

/// A queue (`VkQueue`): runs what is submitted to it in order. A handle.
#[derive(Clone)]
pub struct Queue {
    device: Device,
    state: Arc<QueueState>,
}

impl Queue {
    pub(crate) fn new(device: Device, state: Arc<QueueState>) -> Self {
        Self { device, state }
    }

    /// `vkQueueSubmit`: runs the command buffers one after the other, then signals the fence. The result is the serial of
    /// the submission; [`Queue::retired`] reaches it when all of it is done.
    ///
    /// On a lost device nothing runs, and a fence that belongs to no other submission is told so.
    pub fn submit(&self, commands: &[&CommandBuffer], fence: Option<&Fence>) -> Result<u64, Error> {
        if let Err(lost) = self.device.loss().check() {
            fence.filter(|fence| fence.device().is(&self.device)).inspect(|fence| fence.lose(&lost));
            return Err(lost.into());
        }
        let at = "vkQueueSubmit";
        let same = commands.iter().all(|c| c.device().is(&self.device));
        require(same, at, "VUID-vkQueueSubmit-pCommandBuffers-00074", || "a command buffer of another device".into())?;
        let same = fence.is_none_or(|fence| fence.device().is(&self.device));
        require(same, at, "VUID-vkQueueSubmit-commonparent", || "a fence of another device".into())?;
        let submission = Submission::begin(commands)?;
        let guard = fence.map(Fence::associate).transpose()?;
        let batch = Batch { recordings: submission.recordings(), fence: guard.as_ref().map(|guard| guard.state()) };
        let serial = self.state.submit(batch)?;
        if let Some(guard) = guard {
            guard.keep();
        }
        submission.finish(&self.state, serial);
        Ok(serial)
    }

    /// `vkQueueWaitIdle`: returns when all that was submitted to this queue is done.
    pub fn wait_idle(&self) -> Result<(), Error> {
        self.device.check_alive()?;
        Ok(self.state.wait_idle()?)
    }

    /// The serial up to which all submissions of this queue are done.
    pub fn retired(&self) -> u64 {
        self.state.retired()
    }

    /// The device that the queue belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?}, retired {})", self.device, self.retired())
    }
}

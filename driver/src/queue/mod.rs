//! Queues, and what orders their work, as callers see them: the rules around what the executor does.

mod event;
mod fence;
mod semaphore;

pub use event::Event;
pub use fence::Fence;
pub use semaphore::{Semaphore, SemaphoreSubmit};

use std::fmt;
use std::sync::Arc;

use crate::command::{CommandBuffer, Submission};
use crate::device::Device;
use crate::error::{Error, require};
use crate::exec::work::Batch;
use crate::exec::{QueueState, Recording};
use crate::host_memory;
use crate::sync::Target;
use semaphore::Operations;

/// A queue (`VkQueue`): runs what is submitted to it in order. A handle.
#[derive(Clone)]
pub struct Queue {
    device: Device,
    state: Arc<QueueState>,
}

/// One submission of several (`VkSubmitInfo2`).
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitInfo<'a> {
    /// What has to be signalled before any of the commands starts.
    pub waits: &'a [SemaphoreSubmit<'a>],
    /// Run one after the other.
    pub commands: &'a [&'a CommandBuffer],
    /// Signalled when all of the commands are done.
    pub signals: &'a [SemaphoreSubmit<'a>],
}

/// A submission whose rules were checked.
struct Ready {
    waits: Vec<Target>,
    commands: Submission,
    recordings: Vec<Arc<Recording>>,
    signals: Vec<Target>,
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
        self.submit_all(&[SubmitInfo { commands, ..SubmitInfo::default() }], fence)
    }

    /// `vkQueueSubmit2`: the submissions begin in order, each when what it waits for is signalled; those behind it wait, too.
    /// The fence is signalled after the last. The result is the serial of the last.
    ///
    /// If a rule is broken nothing is submitted.
    pub fn submit_all(&self, submits: &[SubmitInfo<'_>], fence: Option<&Fence>) -> Result<u64, Error> {
        if let Err(lost) = self.device.loss().check() {
            fence.filter(|fence| fence.device().is(&self.device)).inspect(|fence| fence.lose(&lost));
            return Err(lost.into());
        }
        let same = fence.is_none_or(|fence| fence.device().is(&self.device));
        require(same, AT, "VUID-vkQueueSubmit-commonparent", || "a fence of another device".into())?;
        // A fence alone is a submission, too.
        let submits = if submits.is_empty() { &[SubmitInfo::default()] } else { submits };
        let mut operations = Operations::default();
        let ready = host_memory::try_collect(submits.iter().map(|submit| self.check(submit, &mut operations)))?;
        let guard = fence.map(Fence::associate).transpose()?;
        operations.keep();
        let (mut serial, last) = (0, ready.len() - 1);
        for (index, ready) in ready.into_iter().enumerate() {
            let fence = guard.as_ref().filter(|_| index == last).map(|guard| guard.state());
            let Ready { waits, commands, recordings, signals } = ready;
            let submitted = self.state.submit(Batch { waits, recordings, signals, fence });
            if let (Err(lost), Some(guard)) = (&submitted, &guard) {
                guard.state().settle(Err(lost.clone()));
            }
            serial = submitted?;
            commands.finish(&self.state, serial);
        }
        if let Some(guard) = guard {
            guard.keep();
        }
        Ok(serial)
    }

    fn check(&self, submit: &SubmitInfo<'_>, operations: &mut Operations) -> Result<Ready, Error> {
        let same = submit.commands.iter().all(|c| c.device().is(&self.device));
        require(same, AT, "VUID-vkQueueSubmit-pCommandBuffers-00074", || "a command buffer of another device".into())?;
        let same = submit.waits.iter().chain(submit.signals).all(|s| s.semaphore.device().is(&self.device));
        require(same, AT, "VUID-VkSubmitInfo-commonparent", || "a semaphore of another device".into())?;
        let commands = Submission::begin(submit.commands)?;
        let recordings = commands.recordings()?;
        let waits = operations.waits(submit.waits)?;
        Ok(Ready { waits, commands, recordings, signals: operations.signals(submit.signals)? })
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

const AT: &str = "vkQueueSubmit";

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?}, retired {})", self.device, self.retired())
    }
}

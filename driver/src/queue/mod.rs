//! Queues, fences, semaphores and events as the API has them: the rules of Vulkan, on top of the executor.

mod fence;
mod semaphore;

pub use fence::{Fence, FenceTask};
pub use semaphore::{Semaphore, SemaphoreSubmit};

use std::fmt;
use std::sync::Arc;

use crate::command::{CommandBuffer, Submission};
use crate::device::Device;
use crate::error::{Error, require};
use crate::exec::{Batch, QueueState, SemaphoreStages};
use crate::host_memory;
use semaphore::Operations;

/// A queue (`VkQueue`): runs its submissions in order. A handle.
#[derive(Clone)]
pub struct Queue {
    device: Device,
    state: Arc<QueueState>,
}

/// One of the submissions of a call (`VkSubmitInfo2`).
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitInfo<'a> {
    /// Semaphores that must be signalled before any of the commands starts.
    pub waits: &'a [SemaphoreSubmit<'a>],
    /// Command buffers, run one after the other.
    pub commands: &'a [&'a CommandBuffer],
    /// Semaphores to signal when all of the commands are done.
    pub signals: &'a [SemaphoreSubmit<'a>],
}

/// A submission that has passed all checks.
struct CheckedSubmit {
    commands: Submission,
    /// For the executor, without the fence.
    batch: Batch,
}

impl Device {
    /// The first queue (`vkGetDeviceQueue` with index 0).
    pub fn queue(&self) -> Queue {
        Queue::new(self.clone(), Arc::clone(&self.queue_states()[0]))
    }

    /// All queues. They belong to one family, which supports compute and transfer.
    pub fn queues(&self) -> Vec<Queue> {
        self.queue_states().iter().map(|state| Queue::new(self.clone(), Arc::clone(state))).collect()
    }
}

impl Queue {
    fn new(device: Device, state: Arc<QueueState>) -> Self {
        Self { device, state }
    }

    /// `vkQueueSubmit`: runs the command buffers one after the other, then signals the fence. Returns the serial of the
    /// submission; [`Queue::retired`] reaches it when the submission is done.
    ///
    /// On a lost device nothing runs, and a fence that belongs to no other submission gets the error.
    pub fn submit(&self, commands: &[&CommandBuffer], fence: Option<&Fence>) -> Result<u64, Error> {
        self.submit_all(&[SubmitInfo { commands, ..SubmitInfo::default() }], fence)
    }

    /// `vkQueueSubmit2`: the submissions start in order, each when the semaphores that it waits for are signalled;
    /// later ones wait for it, too. The fence is signalled after the last. Returns the serial of the last.
    ///
    /// If a rule is broken, nothing is submitted.
    pub fn submit_all(&self, submits: &[SubmitInfo<'_>], fence: Option<&Fence>) -> Result<u64, Error> {
        if let Err(lost) = self.device.loss().check() {
            fence.filter(|fence| fence.device().is(&self.device)).inspect(|fence| fence.lose(&lost));
            return Err(lost.into());
        }
        let same = fence.is_none_or(|fence| fence.device().is(&self.device));
        require(same, AT, "VUID-vkQueueSubmit-commonparent", || "a fence of another device".into())?;
        // A call with a fence and no submissions signals the fence after all earlier work of the queue.
        let submits = if submits.is_empty() { &[SubmitInfo::default()] } else { submits };
        let mut operations = Operations::default();
        let ready = host_memory::try_collect(submits.iter().map(|submit| self.check(submit, &mut operations)))?;
        // Last of the checks: an error before it leaves the fence alone, an error in it undoes `operations`.
        let guard = fence.map(Fence::associate).transpose()?;
        operations.keep();
        let (mut serial, last) = (0, ready.len() - 1);
        for (index, ready) in ready.into_iter().enumerate() {
            let fence = guard.as_ref().filter(|_| index == last).map(|guard| guard.state());
            let CheckedSubmit { commands, mut batch } = ready;
            batch.fence = fence;
            let submitted = self.state.submit(batch);
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

    fn check(&self, submit: &SubmitInfo<'_>, operations: &mut Operations) -> Result<CheckedSubmit, Error> {
        let same = submit.commands.iter().all(|c| c.device().is(&self.device));
        require(same, AT, "VUID-vkQueueSubmit-pCommandBuffers-00074", || "a command buffer of another device".into())?;
        let same = submit.waits.iter().chain(submit.signals).all(|s| s.semaphore.device().is(&self.device));
        require(same, AT, "VUID-VkSubmitInfo-commonparent", || "a semaphore of another device".into())?;
        let commands = Submission::begin(submit.commands)?;
        let recordings = commands.recordings()?;
        let waits = operations.waits(submit.waits)?;
        let signals = operations.signals(submit.signals)?;
        let stages = |of: &[SemaphoreSubmit<'_>]| of.iter().map(|submit| submit.stages).collect();
        let semaphore_stages = self.device.is_checked().then(|| {
            let value = |of: &SemaphoreSubmit<'_>| of.semaphore.is_timeline().then_some(of.value);
            let timeline_values = submit.waits.iter().map(value).collect();
            let (waits, signals) = (stages(submit.waits), stages(submit.signals));
            Box::new(SemaphoreStages { waits, timeline_values, signals })
        });
        Ok(CheckedSubmit { commands, batch: Batch { waits, recordings, signals, semaphore_stages, fence: None } })
    }

    /// `vkQueueWaitIdle`: returns when all submissions to this queue so far are done.
    pub fn wait_idle(&self) -> Result<(), Error> {
        self.device.check_alive()?;
        self.state.wait_idle()?;
        self.device.checker().inspect(|checker| checker.commands().waited_for_queue(checker, self.state.number()));
        Ok(())
    }

    /// The serial up to which all submissions of this queue are done. As a fence does, it makes what they wrote
    /// available.
    pub fn retired(&self) -> u64 {
        let serial = self.state.retired();
        let checker = self.device.checker().filter(|_| serial > 0);
        checker.inspect(|checker| checker.commands().waited_for_submission(checker, self.state.number(), serial));
        serial
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

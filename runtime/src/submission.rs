//! Submissions: a submitted batch, its completion test and its fence.

use std::sync::Arc;
use std::task::{Poll, Waker};

use spelter_driver::{Fence, FenceTask, Queue, Semaphore, SubmissionId};

use crate::error::Error;
use crate::holds::{HeldBatches, OpenedBy};
use crate::serial;

/// The clock of a context whose batches go through a queue.
pub(crate) type Clock = serial::Clock<Submission>;
/// A point of a context's timeline: one of its batches.
pub(crate) type TimelinePoint = serial::TimelinePoint<Submission>;
/// A batch of another context that must come first.
pub(crate) type MustPrecede = serial::MustPrecede<Submission>;

/// The queue of a context.
#[derive(Debug)]
pub(crate) struct ContextQueue {
    /// Its index in the device.
    pub(crate) index: usize,
    /// A timeline semaphore: counts up to the serial of the last completed batch. Contexts on other queues wait for it.
    pub(crate) done: Semaphore,
}

/// A batch as the driver identifies it.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    queue: Queue,
    /// The index of the queue in its device.
    queue_index: usize,
    /// The driver's number of the submission; 0 if it failed, so that it counts as complete.
    serial: u64,
    fence: Option<Fence>,
    /// The holds of tests that keep it back.
    holds: Vec<Arc<HeldBatches>>,
}

impl Submission {
    pub(crate) fn new(queue: &Queue, queue_index: usize, serial: u64, fence: Option<Fence>) -> Self {
        Self { queue: queue.clone(), queue_index, serial, fence, holds: Vec::new() }
    }

    /// The same, kept back by holds.
    pub(crate) fn held_by(self, holds: Vec<Arc<HeldBatches>>) -> Self {
        Self { holds, ..self }
    }

    /// The holds that keep it back.
    pub(crate) fn holds(&self) -> &[Arc<HeldBatches>] {
        &self.holds
    }

    /// Opens the holds that keep it back.
    pub(crate) fn open_holds(&self) {
        self.holds.iter().for_each(|hold| hold.open(OpenedBy::TimeLimit));
    }

    /// The driver's id.
    pub(crate) fn id(&self) -> SubmissionId {
        SubmissionId { queue: self.queue_index, serial: self.serial }
    }

    /// Returns when it is complete; executes work of the queue meanwhile.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        if let Some(fence) = &self.fence {
            self.holds.iter().try_for_each(|hold| hold.wait(|limit| fence.wait(Some(limit))))?;
            fence.wait(None)?;
        }
        Ok(())
    }

    /// Waits for at most `limit` and returns whether it is complete.
    pub(crate) fn wait_for(&self, limit: std::time::Duration) -> Result<bool, Error> {
        match &self.fence {
            Some(fence) => Ok(fence.wait(Some(limit))?),
            None => Ok(true),
        }
    }

    /// For a future: whether it is complete; `waker` is woken when it may be.
    pub(crate) fn poll(&self, task: &mut FenceTask, waker: &Waker) -> Poll<Result<(), Error>> {
        match &self.fence {
            Some(fence) => fence.poll(task, waker).map(|result| Ok(result?)),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl serial::SubmittedBatch for Submission {
    type Queue = ContextQueue;

    fn is_over(&self) -> bool {
        self.queue.retired() >= self.serial
    }

    fn precedes(&self, queue: &ContextQueue) -> bool {
        self.queue_index == queue.index
    }
}

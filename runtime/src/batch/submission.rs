//! A batch that a queue has: when it is over, and how to wait for that.

use spelter_driver::{Fence, Queue, Semaphore};

use crate::error::Error;
use crate::serial;

/// The clock of a context whose batches go through a queue.
pub(crate) type Clock = serial::Clock<Flight>;
/// A batch of a context.
pub(crate) type Moment = serial::Moment<Flight>;
/// A batch of another context that must come first.
pub(crate) type First = serial::First<Flight>;

/// The queue of a context.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its index in the device.
    pub(crate) queue: usize,
    /// A timeline: the serials of the context's batches, as they are done. For contexts on other queues.
    pub(crate) done: Semaphore,
}

/// What the driver knows a batch by.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    queue: Queue,
    /// The index of the queue in its device.
    line: usize,
    /// The driver's number of the submission; 0 if it failed, so that it counts as over.
    serial: u64,
    fence: Option<Fence>,
}

impl Flight {
    pub(super) fn new(queue: &Queue, line: usize, serial: u64, fence: Option<Fence>) -> Self {
        Self { queue: queue.clone(), line, serial, fence }
    }

    /// Returns when it is over; works on the queue meanwhile.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        if let Some(fence) = &self.fence {
            fence.wait(None)?;
        }
        Ok(())
    }

    /// Waits no longer than `limit`; whether it is over.
    pub(crate) fn wait_for(&self, limit: std::time::Duration) -> Result<bool, Error> {
        match &self.fence {
            Some(fence) => Ok(fence.wait(Some(limit))?),
            None => Ok(true),
        }
    }
}

impl serial::Flight for Flight {
    type Line = Line;

    fn is_over(&self) -> bool {
        self.queue.retired() >= self.serial
    }

    fn precedes(&self, line: &Line) -> bool {
        self.line == line.queue
    }
}

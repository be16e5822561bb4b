//! The executor: runs the batches of queues on worker threads. `README.md` has the protocol.

mod board;
mod cost;
mod cpu_time;
mod crew;
mod dependency;
mod line;
#[cfg(test)]
mod loom_tests;
mod observe;
mod phase;
mod phases;
mod plan;
mod progress;
mod queue;
mod recording;
mod run;
mod shared;
#[cfg(test)]
mod tests;
mod visit;
mod watchdog;
mod work;

use std::sync::Arc;
use std::time::Duration;

pub use dependency::OwnershipTransfer;
pub(crate) use dependency::{CommandLog, Dependency, MemoryDependency, Scope};
pub use observe::{
    Chunk, CommandId, DispatchInfo, Observer, Observers, SemaphoreSignal, SemaphoreWait, SubmissionId, SubmissionSize,
};
pub(crate) use phases::Phases;
pub(crate) use queue::QueueState;
pub(crate) use recording::{Batch, Recording, SemaphoreStages};
pub(crate) use work::{
    ClearWork, Condition, DispatchState, DispatchWork, Grid, Groups, LateDescriptors, RowsWork, SourceLocations, Work,
};

use shared::Shared;
use spelter_shaders::host::Printer;
use spelter_shaders::schedule::Schedule;

use crate::sync::Loss;

/// Options of an executor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExecutorOptions {
    /// Threads that run kernels at once; at least 1.
    pub(crate) workers: usize,
    /// A command that runs longer loses the device.
    pub(crate) time_limit: TimeLimit,
    /// The order of workgroups, subgroups and lanes.
    pub(crate) schedule: Schedule,
}

/// The time limit of commands, and the name of the setting that controls it, for the reason of a loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    pub(crate) limit: Duration,
    pub(crate) set_by: &'static str,
}

/// The workers of one device. Threads start when there is work for them.
///
/// Dropping it waits for batches that run or are in line, and for the threads, except on a thread that is itself
/// running a batch of any device: there the threads end later without being joined.
#[derive(Debug)]
pub(crate) struct Executor {
    shared: Arc<Shared>,
}

impl Executor {
    /// An executor without work and without threads.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn new(options: ExecutorOptions) -> Arc<Self> {
        Self::observed(options, None, None, None)
    }

    /// An executor with an observer of its work, a log of commands for checked mode, which requires one worker, and a
    /// printer for the output of kernels.
    pub(crate) fn observed(
        options: ExecutorOptions,
        observer: Option<Arc<dyn Observer>>,
        log: Option<Arc<dyn CommandLog>>,
        printer: Option<Printer>,
    ) -> Arc<Self> {
        Arc::new(Self { shared: Arc::new(Shared::new(&options, observer, log, printer)) })
    }

    /// A new queue. It should not outlive the executor: its batches then fail.
    pub(crate) fn queue(&self) -> Arc<QueueState> {
        QueueState::new(&self.shared, self.shared.queues().len())
    }

    /// The observer that receives reports.
    pub(crate) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.shared.observer.as_ref()
    }

    /// Whether the device is lost, and why. Fences need it.
    pub(crate) fn loss(&self) -> &Arc<Loss> {
        &self.shared.loss
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.shared.shut();
    }
}

//! What an onlooker is told of the executor's work: for timelines.

use std::fmt::Debug;
use std::time::Instant;

/// Is told what workers and queues did, on the threads that did it: it should be quick, and must not call the device.
/// Nothing is measured, and nothing called, where there is no observer.
pub trait Observer: Debug + Send + Sync {
    /// A worker, numbered from 0 on, ran units of one command: workgroups of the kernel `what`, or pieces of the
    /// transfer `what`.
    fn worked(&self, worker: usize, what: &str, units: u64, start: Instant, end: Instant);

    /// A queue, numbered from 0 on, ran a submission.
    fn ran(&self, queue: usize, serial: u64, start: Instant, end: Instant);
}

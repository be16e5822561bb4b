//! Reports of the executor's work to an observer: for timelines.

use std::fmt::Debug;
use std::time::Instant;

/// Receives reports of what workers and queues did, on the threads that did it: it should be quick, and must not call
/// the device. Without an observer nothing is measured and nothing called.
pub trait Observer: Debug + Send + Sync {
    /// A worker, numbered from 0, ran units of one command: workgroups of the kernel `what`, or 256 KiB units of the
    /// transfer `what`.
    fn worked(&self, worker: usize, what: &str, units: u64, start: Instant, end: Instant);

    /// A queue, numbered from 0, ran a submission.
    fn ran(&self, queue: usize, serial: u64, start: Instant, end: Instant);
}

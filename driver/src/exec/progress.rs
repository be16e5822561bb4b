//! Progress of a queue: written by the threads that run its commands, compared by the watchdog.

use crossbeam_utils::CachePadded;

use super::cpu_time::{ThreadNumber, this_thread};
use crate::sync::primitives::{AtomicU64, Ordering};

/// Counts that the watchdog compares between checks. All accesses are relaxed: the counts publish no other data.
#[derive(Debug)]
pub(super) struct QueueProgress {
    /// Number of phase starts and ends: odd while one runs. Only the conductor writes it.
    tick: AtomicU64,
    /// Indices of the running recording and phase, 32 bits each. Only the conductor writes it.
    running: AtomicU64,
    /// 1 after a command of the queue ran too long: its threads then report where it was.
    blamed: AtomicU64,
    /// Commands whose first unit was started, by slot. Only the thread that has the slot writes its count.
    commands: Box<[CachePadded<Count>]>,
}

/// A slot's count, alone in its cache line and in the one that the processor prefetches with it.
#[derive(Debug)]
struct Count {
    commands: AtomicU64,
    /// One more than the number of the thread that works for the queue with the slot; 0 if none does.
    thread: AtomicU64,
}

/// A thread that works for a queue, as conductor or member.
#[must_use]
pub(super) struct Running<'a> {
    thread: &'a AtomicU64,
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.thread.store(0, Ordering::Relaxed);
    }
}

/// Increments a count that one thread writes at a time, which needs no read-modify-write.
fn step(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Progress as the watchdog saw it in one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgressSnapshot {
    tick: u64,
    commands: u64,
}

impl ProgressSnapshot {
    /// Whether a phase ran.
    pub(super) fn is_running(self) -> bool {
        self.tick % 2 == 1
    }
}

impl QueueProgress {
    /// Progress for this many slots.
    pub(super) fn new(slots: usize) -> Self {
        let count = || Count { commands: AtomicU64::new(0), thread: AtomicU64::new(0) };
        let commands = (0..slots).map(|_| CachePadded::new(count())).collect();
        Self { tick: AtomicU64::new(0), running: AtomicU64::new(0), blamed: AtomicU64::new(0), commands }
    }

    /// A phase starts.
    pub(super) fn begin(&self, recording: usize, phase: usize) {
        // The watchdog reads this only after the mark has stood still for the time limit, so the two
        // need no order.
        self.running.store((recording as u64) << 32 | phase as u64, Ordering::Relaxed);
        self.end();
    }

    /// A phase starts or ends. Only the conductor writes.
    pub(super) fn end(&self) {
        step(&self.tick);
    }

    /// The first unit of a command starts, on the thread that has this slot.
    pub(super) fn enter_command(&self, slot: usize) {
        step(&self.commands[slot].commands);
    }

    /// The calling thread works for the queue with this slot, until the result is dropped.
    #[inline]
    pub(super) fn enter(&self, slot: usize) -> Running<'_> {
        let thread = &self.commands[slot].thread;
        thread.store(this_thread() + 1, Ordering::Relaxed);
        Running { thread }
    }

    /// A command ran too long. To be called before the stop flag is set.
    pub(super) fn blame(&self) {
        // Release: pairs with the Acquire in `is_blamed`. A thread that saw the stop flag sees this, through the lock
        // around the reason.
        self.blamed.store(1, Ordering::Release);
    }

    /// Whether a command ran too long.
    pub(super) fn is_blamed(&self) -> bool {
        self.blamed.load(Ordering::Acquire) != 0
    }

    /// The threads that work for the queue now.
    pub(super) fn threads(&self) -> Vec<ThreadNumber> {
        let threads = self.commands.iter().map(|count| count.thread.load(Ordering::Relaxed));
        threads.filter_map(|thread| thread.checked_sub(1)).collect()
    }

    /// The progress of the queue now.
    pub(super) fn mark(&self) -> ProgressSnapshot {
        // Each count only grows, so the sum changes if one of them does.
        let commands =
            self.commands.iter().fold(0u64, |sum, count| sum.wrapping_add(count.commands.load(Ordering::Relaxed)));
        ProgressSnapshot { tick: self.tick.load(Ordering::Relaxed), commands }
    }

    /// Indices of the running recording and phase.
    pub(super) fn running(&self) -> (usize, usize) {
        let running = self.running.load(Ordering::Relaxed);
        ((running >> 32) as usize, running as u32 as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_moves_with_every_slot_and_with_phases() {
        let progress = QueueProgress::new(3);
        let mut marks = vec![progress.mark()];
        let mut looked = |progress: &QueueProgress| {
            let mark = progress.mark();
            assert!(!marks.contains(&mark), "{mark:?}");
            marks.push(mark);
        };
        progress.begin(4, 5);
        looked(&progress);
        assert!(progress.mark().is_running());
        for slot in [0, 2, 1, 2] {
            progress.enter_command(slot);
            looked(&progress);
        }
        progress.end();
        looked(&progress);
        assert!(!progress.mark().is_running());
        assert_eq!(progress.running(), (4, 5));
    }
}

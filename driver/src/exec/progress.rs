//! How far a queue is: what its watchdog compares, written by whoever runs its commands.

use super::cpu_time::{Thread, this_thread};
use super::sync::{AtomicU64, Ordering};

/// Counts for the watchdog, which only looks whether they move. All of it is relaxed: nothing is published by it.
#[derive(Debug)]
pub(super) struct Progress {
    /// Phases started and ended: odd while one runs. Written by the conductor alone.
    tick: AtomicU64,
    /// Recording and phase that run, in 32 bits each. Written by the conductor alone.
    place: AtomicU64,
    /// Whether a command of the queue ran too long: its threads tell where it was.
    blamed: AtomicU64,
    /// Commands whose first unit was started, by slot. Only the thread that has the slot writes its count.
    commands: Box<[Count]>,
}

/// A slot's count, on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Count {
    commands: AtomicU64,
    /// One more than the number of the thread that runs units with the slot; 0 while none does.
    thread: AtomicU64,
}

/// For counts that one thread writes at a time: that needs no read-modify-write.
fn step(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// What the watchdog saw at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    tick: u64,
    commands: u64,
}

impl Mark {
    /// Whether a phase ran.
    pub(super) fn is_running(self) -> bool {
        self.tick % 2 == 1
    }
}

impl Progress {
    /// For so many slots.
    pub(super) fn new(slots: usize) -> Self {
        let commands = (0..slots).map(|_| Count { commands: AtomicU64::new(0), thread: AtomicU64::new(0) }).collect();
        Self { tick: AtomicU64::new(0), place: AtomicU64::new(0), blamed: AtomicU64::new(0), commands }
    }

    /// A phase starts.
    pub(super) fn begin(&self, recording: usize, phase: usize) {
        // The watchdog reads the place only of a mark that has stood still for the time limit.
        self.place.store((recording as u64) << 32 | phase as u64, Ordering::Relaxed);
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

    /// This thread runs units, with this slot, from now to [`Progress::leave`].
    pub(super) fn enter(&self, slot: usize) {
        self.commands[slot].thread.store(this_thread() + 1, Ordering::Relaxed);
    }

    /// It does not any more.
    pub(super) fn leave(&self, slot: usize) {
        self.commands[slot].thread.store(0, Ordering::Relaxed);
    }

    /// A command ran too long. To be called before the stop flag is set.
    pub(super) fn blame(&self) {
        // Release: pairs with the Acquire in `is_blamed`. Who saw the stop flag sees this, through the lock around the reason.
        self.blamed.store(1, Ordering::Release);
    }

    /// Whether one did.
    pub(super) fn is_blamed(&self) -> bool {
        self.blamed.load(Ordering::Acquire) != 0
    }

    /// The threads that run units now.
    pub(super) fn threads(&self) -> Vec<Thread> {
        let threads = self.commands.iter().map(|count| count.thread.load(Ordering::Relaxed));
        threads.filter_map(|thread| thread.checked_sub(1)).collect()
    }

    /// How far the queue is now.
    pub(super) fn mark(&self) -> Mark {
        // Each count only grows, so the sum moves if one of them does.
        let commands =
            self.commands.iter().fold(0u64, |sum, count| sum.wrapping_add(count.commands.load(Ordering::Relaxed)));
        Mark { tick: self.tick.load(Ordering::Relaxed), commands }
    }

    /// Recording and phase that run.
    pub(super) fn place(&self) -> (usize, usize) {
        let place = self.place.load(Ordering::Relaxed);
        ((place >> 32) as usize, place as u32 as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_moves_with_every_slot_and_with_phases() {
        let progress = Progress::new(3);
        let mut marks = vec![progress.mark()];
        let mut looked = |progress: &Progress| {
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
        assert_eq!(progress.place(), (4, 5));
    }
}

//! How far a queue is: what its watchdog compares, written by whoever runs its commands.

use super::sync::{AtomicU64, Ordering};

/// Counts for the watchdog, which only looks whether they move. All of it is relaxed: nothing is published by it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Phases started and ended: odd while one runs. Written by the conductor alone.
    tick: AtomicU64,
    /// Commands whose first unit was started, by any thread.
    commands: AtomicU64,
    /// Recording and phase that run, in 32 bits each.
    place: AtomicU64,
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
    /// A phase starts.
    pub(super) fn begin(&self, recording: usize, phase: usize) {
        // The watchdog reads the place only of a mark that has stood still for the time limit.
        self.place.store((recording as u64) << 32 | phase as u64, Ordering::Relaxed);
        self.end();
    }

    /// A phase starts or ends. Only the conductor writes, so this needs no read-modify-write.
    pub(super) fn end(&self) {
        self.tick.store(self.tick.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The first unit of a command starts.
    pub(super) fn enter_command(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    /// How far the queue is now.
    pub(super) fn mark(&self) -> Mark {
        Mark { tick: self.tick.load(Ordering::Relaxed), commands: self.commands.load(Ordering::Relaxed) }
    }

    /// Recording and phase that run.
    pub(super) fn place(&self) -> (usize, usize) {
        let place = self.place.load(Ordering::Relaxed);
        ((place >> 32) as usize, place as u32 as usize)
    }
}

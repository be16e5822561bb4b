//! The bound of what trials of repairs do: a report must not take far longer than the run, and a change may make a
//! kernel wait forever.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::check::bounded::WorkLimit;

/// The work of the trials of a kernel, at most: what they observe, and 64 for each instruction that is compiled.
const MAX_WORK: u64 = 1 << 24;

/// What each dispatch may add to it, so that the races that a long process finds late have repairs, too.
const WORK_OF_A_DISPATCH: u64 = 1 << 20;

/// What is left of the work of a kernel's trials.
#[derive(Debug)]
pub(in crate::check) struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Self::new(MAX_WORK)
    }
}

impl Budget {
    /// So much work.
    pub(in crate::check) fn new(work: u64) -> Self {
        Self(AtomicU64::new(work))
    }

    /// Adds the work of the trials for another dispatch, up to the limit of a kernel.
    pub(in crate::check) fn refill(&self) {
        self.0.store((self.left() + WORK_OF_A_DISPATCH).min(MAX_WORK), Ordering::Relaxed);
    }

    /// What is left.
    pub(in crate::check) fn left(&self) -> u64 {
        // Relaxed: one thread runs dispatches.
        self.0.load(Ordering::Relaxed)
    }

    /// Takes some work; false if too little is left.
    fn take(&self, work: u64) -> bool {
        // Relaxed: one thread runs dispatches.
        let left = self.0.load(Ordering::Relaxed).checked_sub(work);
        left.inspect(|left| self.0.store(*left, Ordering::Relaxed)).is_some()
    }

    /// Takes some work that was done.
    pub(super) fn spend(&self, work: u64) {
        // Relaxed: one thread runs dispatches.
        self.0.store(self.left().saturating_sub(work), Ordering::Relaxed);
    }

    /// The work of compiling this many instructions.
    pub(super) fn of_compiling(instructions: usize) -> u64 {
        1024 + 64 * instructions as u64
    }

    /// Whether this many instructions may be compiled.
    pub(super) fn can_compile(&self, instructions: usize) -> bool {
        self.left() >= Self::of_compiling(instructions)
    }

    /// Takes the work of compiling this many instructions; false if too little is left.
    pub(super) fn compile(&self, instructions: usize) -> bool {
        self.take(Self::of_compiling(instructions))
    }
}

impl WorkLimit for &Budget {
    #[inline]
    fn observe(&mut self, _: u64) -> bool {
        // A detector's work for a barrier does not depend on the number of its invocations.
        self.take(1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use spelter_shaders::check::observer::{Invocation, NoObserver, Observer};

    use super::*;
    use crate::check::bounded::Bounded;

    #[test]
    fn each_dispatch_has_work_for_trials_up_to_the_limit_of_a_kernel() {
        let budget = Budget::default();
        budget.refill();
        assert_eq!(budget.left(), MAX_WORK);
        assert!(budget.take(MAX_WORK) && !budget.compile(1));
        budget.refill();
        assert!(budget.left() == WORK_OF_A_DISPATCH && budget.compile(1));
    }

    #[test]
    fn the_kernel_is_stopped_when_the_work_is_done_or_the_device_stops() {
        let flags = [0, 0].map(AtomicU32::new);
        let [stop, device] = &flags;
        let budget = Budget(AtomicU64::new(2));
        let by = Invocation { workgroup: 0, local: 0 };
        let mut nothing = NoObserver;
        let mut bounded = Bounded { observer: &mut nothing, limit: &budget, stop, device };
        let mut stopped = || {
            bounded.end(by);
            stop.swap(0, Ordering::Relaxed) != 0
        };
        assert_eq!([stopped(), stopped(), stopped()], [false, false, true]);
        budget.0.store(100, Ordering::Relaxed);
        device.store(1, Ordering::Relaxed);
        assert!(stopped());
        assert!(!budget.compile(1));
    }
}

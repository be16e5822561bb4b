//! The bound of what trials of repairs do: a report must not take far longer than the run, and a change may make a
//! kernel wait forever.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Lanes, Observer, Target};
use spelter_shaders::ir::{Scope, Site};

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

    /// Takes the work of compiling so many instructions; false if too little is left.
    pub(super) fn compile(&self, instructions: usize) -> bool {
        self.take(1024 + 64 * instructions as u64)
    }
}

/// An observer that stops the kernel when the work is done, or when the device stops.
pub(in crate::check) struct Bounded<'a> {
    pub(in crate::check) observer: &'a mut dyn Observer,
    pub(in crate::check) budget: &'a Budget,
    /// The flag of the trial, at which the kernel looks.
    pub(in crate::check) stop: &'a AtomicU32,
    /// The device's flag.
    pub(in crate::check) device: &'a AtomicU32,
}

impl Bounded<'_> {
    #[inline]
    fn count(&self) {
        // Relaxed: the flags order no other memory.
        if !self.budget.take(1) || self.device.load(Ordering::Relaxed) != 0 {
            self.stop.store(1, Ordering::Relaxed);
        }
    }
}

impl Observer for Bounded<'_> {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.count();
        self.observer.access(by, site, target);
    }

    fn accesses(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16]) {
        self.count();
        self.observer.accesses(by, site, target, offsets);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.count();
        self.observer.atomic(by, site, target, wrote);
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.count();
        self.observer.fence(by, site);
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.count();
        self.observer.arrive(by, site);
    }

    fn meet(&mut self, workgroup: u64, site: Site, invocations: u32) {
        self.count();
        self.observer.meet(workgroup, site, invocations);
    }

    fn divergent_barrier(&mut self, barrier: DivergentBarrier<'_>) {
        self.observer.divergent_barrier(barrier);
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        self.observer.release(workgroup, execution, subgroup);
    }

    fn end(&mut self, by: Invocation) {
        self.count();
        self.observer.end(by);
    }

    fn ends(&mut self, workgroup: u64, invocations: u32) {
        self.count();
        self.observer.ends(workgroup, invocations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Observer for Nothing {
        fn access(&mut self, _: Invocation, _: Site, _: Target) {}
        fn atomic(&mut self, _: Invocation, _: Site, _: Target, _: bool) {}
        fn fence(&mut self, _: Invocation, _: Site) {}
        fn arrive(&mut self, _: Invocation, _: Site) {}
        fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}
        fn end(&mut self, _: Invocation) {}
    }

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
        let mut nothing = Nothing;
        let mut bounded = Bounded { observer: &mut nothing, budget: &budget, stop, device };
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

//! An observer that stops the kernel when the work of a replay or of a trial is done, or when the device stops.

use std::sync::atomic::{AtomicU32, Ordering};

use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Lanes, Observer, Target};
use spelter_shaders::check::{InlineChecks, InlineMemory};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Scope, Site};

/// Work of which so much may be observed.
pub(super) trait WorkLimit {
    /// Counts a call with the work that it reports; false if the kernel has to stop.
    fn observe(&mut self, work: u64) -> bool;
}

/// See this file's head.
pub(super) struct Bounded<'o, L> {
    pub(super) observer: &'o mut dyn Observer,
    pub(super) limit: L,
    /// The flag at which the kernel looks.
    pub(super) stop: &'o AtomicU32,
    /// The flag of the device.
    pub(super) device: &'o AtomicU32,
}

impl<L: WorkLimit> Bounded<'_, L> {
    #[inline]
    fn count(&mut self, work: u64) {
        // Relaxed: the flags order no other memory.
        if !self.limit.observe(work) || self.device.load(Ordering::Relaxed) != 0 {
            self.stop.store(1, Ordering::Relaxed);
        }
    }
}

impl<L: WorkLimit> Observer for Bounded<'_, L> {
    fn begin(&mut self, workgroup: u64) {
        self.count(1);
        self.observer.begin(workgroup);
    }

    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.count(1);
        self.observer.access(by, site, target);
    }

    fn accesses(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16]) {
        self.count(1);
        self.observer.accesses(by, site, target, offsets);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.count(1);
        self.observer.atomic(by, site, target, wrote);
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.count(1);
        self.observer.fence(by, site);
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.count(1);
        self.observer.arrive(by, site);
    }

    fn meet(&mut self, workgroup: u64, site: Site, invocations: u32) {
        self.count(invocations.into());
        self.observer.meet(workgroup, site, invocations);
    }

    fn end(&mut self, by: Invocation) {
        self.count(1);
        self.observer.end(by);
    }

    fn ends(&mut self, workgroup: u64, invocations: u32) {
        self.count(1);
        self.observer.ends(workgroup, invocations);
    }

    spelter_shaders::forward_observer! {
        observer:
        fn inline(checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<InlineMemory>;
        fn divergent_barrier(barrier: DivergentBarrier<'_>);
        fn release(workgroup: u64, execution: Scope, subgroup: Option<u32>);
    }
}

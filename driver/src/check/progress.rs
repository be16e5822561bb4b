//! How far the dispatch is that is being checked, for programs that show it.

use std::sync::atomic::{AtomicU64, Ordering};

use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Lanes, Observer, Target};
use spelter_shaders::check::{InlineChecks, InlineMemory};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Scope, Site};

/// How far a dispatch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckProgress {
    /// Workgroups that have begun.
    pub begun: u64,
    /// All of the dispatch.
    pub workgroups: u64,
    /// Kinds of suspicions that are being confirmed; 0 while it runs for the first time.
    pub suspicions: u64,
}

/// The counts, written by the thread that runs the dispatch. Each is right by itself: all accesses are relaxed.
#[derive(Debug, Default)]
pub(super) struct ProgressCounts {
    begun: AtomicU64,
    workgroups: AtomicU64,
    suspicions: AtomicU64,
}

impl ProgressCounts {
    /// A dispatch begins.
    pub(super) fn begin(&self, workgroups: u64) {
        self.begun.store(0, Ordering::Relaxed);
        self.suspicions.store(0, Ordering::Relaxed);
        self.workgroups.store(workgroups, Ordering::Relaxed);
    }

    /// The dispatch has run, and is repeated for these suspicions.
    pub(super) fn confirm(&self, suspicions: usize) {
        self.suspicions.store(suspicions as u64, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> CheckProgress {
        CheckProgress {
            begun: self.begun.load(Ordering::Relaxed),
            workgroups: self.workgroups.load(Ordering::Relaxed),
            suspicions: self.suspicions.load(Ordering::Relaxed),
        }
    }
}

/// An observer that counts the workgroups that begin: those of a dispatch follow each other.
pub(super) struct CountingObserver<'a> {
    observer: &'a mut dyn Observer,
    progress: &'a ProgressCounts,
    workgroup: Option<u64>,
}

impl<'a> CountingObserver<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, progress: &'a ProgressCounts) -> Self {
        Self { observer, progress, workgroup: None }
    }

    fn in_workgroup(&mut self, workgroup: u64) {
        if self.workgroup != Some(workgroup) {
            self.workgroup = Some(workgroup);
            // Only this thread changes it.
            let begun = self.progress.begun.load(Ordering::Relaxed);
            self.progress.begun.store(begun + 1, Ordering::Relaxed);
        }
    }
}

impl Observer for CountingObserver<'_> {
    fn meet(&mut self, workgroup: u64, site: Site, invocations: u32) {
        self.in_workgroup(workgroup);
        self.observer.meet(workgroup, site, invocations);
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        self.in_workgroup(workgroup);
        self.observer.release(workgroup, execution, subgroup);
    }

    fn end(&mut self, by: Invocation) {
        self.in_workgroup(by.workgroup);
        self.observer.end(by);
    }

    fn ends(&mut self, workgroup: u64, invocations: u32) {
        self.in_workgroup(workgroup);
        self.observer.ends(workgroup, invocations);
    }

    spelter_shaders::forward_observer! {
        observer:
        fn inline(checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<InlineMemory>;
        fn begin(workgroup: u64);
        fn access(by: Invocation, site: Site, target: Target);
        fn accesses(by: Lanes, site: Site, target: Target, offsets: &[u32; 16]);
        fn atomic(by: Invocation, site: Site, target: Target, wrote: bool);
        fn fence(by: Invocation, site: Site);
        fn arrive(by: Invocation, site: Site);
        fn divergent_barrier(barrier: DivergentBarrier<'_>);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing(u32);

    impl Observer for Nothing {
        fn access(&mut self, _: Invocation, _: Site, _: Target) {}
        fn atomic(&mut self, _: Invocation, _: Site, _: Target, _: bool) {}
        fn fence(&mut self, _: Invocation, _: Site) {}
        fn arrive(&mut self, _: Invocation, _: Site) {}
        fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}
        fn end(&mut self, _: Invocation) {
            self.0 += 1;
        }
    }

    #[test]
    fn workgroups_are_counted_in_any_order() {
        let progress = ProgressCounts::default();
        progress.begin(3);
        let mut nothing = Nothing(0);
        let mut counted = CountingObserver::new(&mut nothing, &progress);
        for workgroup in [2, 0, 1] {
            counted.release(workgroup, Scope::Workgroup, None);
            (0..4).for_each(|local| counted.end(Invocation { workgroup, local }));
        }
        assert_eq!(nothing.0, 12);
        assert_eq!(progress.get(), CheckProgress { begun: 3, workgroups: 3, suspicions: 0 });
        progress.confirm(7);
        assert_eq!(progress.get().suspicions, 7);
        progress.begin(5);
        assert_eq!(progress.get(), CheckProgress { begun: 0, workgroups: 5, suspicions: 0 });
    }
}

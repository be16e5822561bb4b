//! In which workgroups not all invocations reach a barrier together. A barrier that a change inserts may wait for some
//! of the invocations only where barriers of the kernel as it is do so, too: that is an error of its own.

use std::collections::BTreeSet;

use spelter_shaders::abi::Outcome;
use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Observer, Target};
use spelter_shaders::compile::{Backend, Checked};
use spelter_shaders::ir::{Kernel, Scope, Site};

use super::change::is_inserted;
use super::trial::Trials;

/// Workgroups that are kept, at most.
const MAX_WORKGROUPS: usize = 1 << 16;

/// The workgroups in which barriers are in divergent control flow.
#[derive(Default)]
struct DivergentWorkgroups<'a> {
    /// Of which barriers it is asked.
    counts: Option<&'a dyn Fn(Site) -> bool>,
    found: BTreeSet<u64>,
    /// Whether there are more.
    is_cut: bool,
}

impl Observer for DivergentWorkgroups<'_> {
    fn divergent_barrier(&mut self, barrier: DivergentBarrier<'_>) {
        let counts = |site: Site| self.counts.is_none_or(|counts| counts(site));
        let mut waiting = barrier.waiting.iter();
        let Some((waits, _)) = waiting.find(|(_, site)| counts(*site)) else { return };
        if self.found.len() < MAX_WORKGROUPS {
            self.found.insert(waits.workgroup);
        } else {
            self.is_cut = true;
        }
    }

    fn access(&mut self, _: Invocation, _: Site, _: Target) {}
    fn atomic(&mut self, _: Invocation, _: Site, _: Target, _: bool) {}
    fn fence(&mut self, _: Invocation, _: Site) {}
    fn arrive(&mut self, _: Invocation, _: Site) {}
    fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}
    fn end(&mut self, _: Invocation) {}
}

impl Trials<'_> {
    /// Whether invocations miss the inserted barriers of a changed kernel only in workgroups in which they miss
    /// barriers of the kernel as it is.
    pub(super) fn diverges_as_before(&mut self, changed: &Checked) -> bool {
        let sites = &changed.kernel.sites;
        let is_new = |site: Site| is_inserted(sites[site].word);
        let Some(found) = self.divergent_in(changed, Some(&is_new)) else { return false };
        self.divergent_unchanged(changed.backend).is_some_and(|known| found.is_subset(known))
    }

    /// The workgroups in which barriers of the kernel as it is diverge; `None` if that is not known.
    fn divergent_unchanged(&mut self, backend: Backend) -> Option<&BTreeSet<u64>> {
        if self.divergent_unchanged.as_ref().is_none_or(|(by, _)| *by != backend) {
            let kernel: &Kernel = self.run.code.kernel();
            let checked = self.code_of(kernel, backend)?;
            let found = self.divergent_in(&checked, None)?;
            self.divergent_unchanged = Some((backend, found));
        }
        self.divergent_unchanged.as_ref().map(|(_, found)| found)
    }

    /// The workgroups of a run in which barriers diverge; `None` if it does not end.
    fn divergent_in(&self, checked: &Checked, counts: Option<&dyn Fn(Site) -> bool>) -> Option<BTreeSet<u64>> {
        let mut workgroups = DivergentWorkgroups { counts, ..DivergentWorkgroups::default() };
        let (outcome, _) = self.observe(checked, &mut workgroups)?;
        (outcome == Outcome::Done && !workgroups.is_cut).then_some(workgroups.found)
    }
}

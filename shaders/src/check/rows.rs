//! Plain accesses of a subgroup to consecutive words, or to one word: judged together where all of them are settled, as
//! most are. The outcome is that of one after the other.

use cranelift_entity::EntityRef as _;

use super::attributes::Action;
use super::cells::{Cell, Group};
use super::detector::Detector;
use super::history::Reference;
use super::observer::{Lanes, Memory, Target};
use super::shadow::PAGE_BYTES;
use crate::ir::Site;

/// Lanes of a subgroup.
const LANES: usize = crate::abi::SUBGROUP_SIZE as usize;

/// Which cells are settled for lane 0; for lane `l` the invocation is `l` further.
#[derive(Clone, Copy, Debug)]
struct Settled {
    /// Cells below are.
    base: u32,
    /// The first number of the workgroup.
    first: u32,
    /// From the first number on, how many cells are known to the workgroup.
    known: u32,
    /// The bits of a cell that name its group.
    group: u32,
}

impl Settled {
    /// Whether a cell is settled for an invocation with cell `me`.
    #[inline(always)]
    fn has(self, cell: u32, me: u32) -> bool {
        let since = cell.wrapping_sub(self.first);
        let own = (cell ^ me) & self.group == 0;
        cell < self.base || cell >= self.first && (own | (since < self.known))
    }
}

impl Detector {
    /// Whether the accesses of the lanes, `step` bytes apart, were recorded; otherwise nothing has changed.
    pub(super) fn record_row(&mut self, by: Lanes, site: Site, target: Target, step: u32) -> bool {
        let Some(&Action::Access { class, private, writes }) = self.actions.get(site.index()) else { return false };
        let attribute = self.attribute(target.reference, class, private);
        let is_mixed = self.attributes[usize::from(attribute)].reference == Reference::MIXED;
        if target.bytes != 4 || by.active == 0 || is_mixed {
            return false;
        }
        // Of the first active lane: lane 0 may be before the memory.
        let before = step * by.active.trailing_zeros();
        let (lowest, base, shared) = match target.memory {
            Memory::Device(address) => (address.wrapping_add(before.into()), self.base, false),
            Memory::Workgroup(offset) => (offset.wrapping_add(before).into(), self.workgroup.first, true),
        };
        if !lowest.is_multiple_of(4) {
            return false;
        }
        let layout = self.workgroup.layout;
        let settled = Settled {
            base,
            first: self.workgroup.first,
            // A private access is ordered by no barrier, or by one that a note must tell of.
            known: if private { 0 } else { self.workgroup.known[class].wrapping_sub(self.workgroup.first) },
            group: layout.unit() - 1,
        };
        let limit = self.limits.bytes / 2;
        let shadow = if shared { &mut self.shared } else { &mut self.device };
        // The words of all lanes, active or not, must be on one page.
        let Some(page) = shadow.page(lowest / PAGE_BYTES, attribute, limit) else { return false };
        let Some((written, read)) = page.planes(attribute) else { return false };
        let me = self.workgroup.cell(by.first).0;
        let done = if step == 0 {
            let word = (lowest % PAGE_BYTES / 4) as usize;
            let subgroup = layout.cell(self.workgroup.number, Group::Subgroup(layout.subgroup(by.first)));
            !writes && same_word(settled, (written[word], &mut read[word]), (me, subgroup), by.active)
        } else {
            let word = (lowest % PAGE_BYTES / 4) as usize;
            let first = word.wrapping_sub(before as usize / 4);
            let range = first..first.wrapping_add(LANES);
            match (written.get_mut(range.clone()), read.get_mut(range)) {
                (Some(written), Some(read)) => row(settled, (written, read), me, (by.active, writes)),
                _ => false,
            }
        };
        if done {
            self.workgroup.used = true;
            let first = by.first as usize;
            let accessed = &mut self.workgroup.accessed[first..];
            accessed.iter_mut().zip(0..LANES).for_each(|(accessed, lane)| *accessed |= by.active >> lane & 1 != 0);
        }
        done
    }
}

/// Consecutive words, whose cells are given.
#[inline]
fn row(settled: Settled, (written, read): (&mut [u32], &mut [u32]), me: u32, (active, writes): (u16, bool)) -> bool {
    let (Ok(written), Ok(read)) = (<&mut [u32; LANES]>::try_from(written), <&mut [u32; LANES]>::try_from(read)) else {
        return false;
    };
    let on: [u32; LANES] = std::array::from_fn(|lane| 0u32.wrapping_sub(u32::from(active >> lane & 1)));
    let mine: [u32; LANES] = std::array::from_fn(|lane| me.wrapping_add(2 * lane as u32));
    let (mut open, mut pending) = (0, 0);
    for lane in 0..LANES {
        let fine = settled.has(written[lane], mine[lane]) & settled.has(read[lane], mine[lane]);
        open |= u32::from(!fine) & on[lane];
        pending |= u32::from(read[lane] >= settled.base) & on[lane];
    }
    if open != 0 {
        return false;
    }
    let cells = if writes { &mut *written } else { &mut *read };
    for lane in 0..LANES {
        cells[lane] = cells[lane] & !on[lane] | mine[lane] & on[lane];
    }
    if writes && pending != 0 {
        read.iter_mut().zip(on).for_each(|(cell, on)| *cell &= !on);
    }
    true
}

/// Reads of one word, whose cells are given: several invocations become a subgroup.
#[inline]
fn same_word(settled: Settled, (written, read): (u32, &mut u32), (me, subgroup): (u32, Cell), active: u16) -> bool {
    // Only a cell that is settled whatever the invocation.
    let common =
        |cell: u32| cell < settled.base || cell >= settled.first && cell.wrapping_sub(settled.first) < settled.known;
    let new = if active.is_power_of_two() { me + 2 * active.trailing_zeros() } else { subgroup.0 };
    if !common(written) || !(common(*read) || *read == new) {
        return false;
    }
    *read = new;
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cranelift_entity::PrimaryMap;

    use super::*;
    use crate::check::observer::{Invocation, Observer as _};
    use crate::check::{Launch, Limits, Profile};
    use crate::ir::{AccessSite, Scope, Semantics, SiteAction, SiteData, StorageClass};

    const WORKGROUP_SIZE: u32 = 40;

    /// Random accesses of subgroups, by one call each and one by one: both find the same.
    fn compare(seed: u64) -> (bool, bool) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |most: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % most
        };
        let mut sites: PrimaryMap<Site, SiteData> = PrimaryMap::new();
        let mut add = |action| sites.push(SiteData { action, word: 0, inlined_at: Arc::new([]) });
        let (class, non_private) = (StorageClass::Uniform, below(2) == 0);
        let access = AccessSite { class, non_private, volatile: false, scope: None };
        let [read, write] = [add(SiteAction::Read(access)), add(SiteAction::Write(access))];
        let scope = Scope::Workgroup;
        let semantics = Semantics(0x8 | 0x40 | if below(4) == 0 { 0 } else { 0x6000 });
        let barrier = add(SiteAction::Barrier { execution: scope, memory: scope, semantics });
        let profile = if below(2) == 0 { Profile::Spec } else { Profile::Common };
        let launch = Launch { workgroup_size: WORKGROUP_SIZE, subgroup_size: 16, vulkan_model: below(2) == 0 };
        let [mut together, mut apart] = [(); 2].map(|()| Detector::new(&sites, launch, profile, Limits::default()));
        let mut any_together = false;
        for workgroup in 0..3 {
            for _ in 0..40 {
                if below(6) == 0 {
                    for detector in [&mut together, &mut apart] {
                        (0..WORKGROUP_SIZE).for_each(|local| detector.arrive(Invocation { workgroup, local }, barrier));
                        detector.release(workgroup, scope, None);
                    }
                    continue;
                }
                let first = 16 * below(3);
                let lanes = if first == 32 { 0xff } else { 0xffff };
                let active = if below(2) == 0 { lanes } else { below(0x1_0000) as u16 & lanes };
                let step = if below(3) == 0 { 0 } else { 4 };
                // Rows of their own mostly; sometimes those of others, and the end of a page.
                let place = if below(4) == 0 { below(64) } else { first + 40 * workgroup as u32 };
                let page = if below(8) == 0 { PAGE_BYTES - 128 } else { 1 << 20 };
                let memory = Memory::Device(page + u64::from(4 * place));
                let target = Target { memory, bytes: 4, reference: below(8) / 7 };
                let (by, site) = (Lanes { workgroup, first, active }, if below(2) == 0 { read } else { write });
                together.enter(workgroup);
                if together.record_row(by, site, target, step) {
                    any_together = true;
                } else {
                    by.each(target, step, |by, target| together.access(by, site, target));
                }
                by.each(target, step, |by, target| apart.access(by, site, target));
            }
        }
        let found = |detector: &Detector| format!("{:?} {:?}", detector.candidates(), detector.notes());
        assert_eq!(found(&together), found(&apart), "seed {seed}");
        (any_together, !apart.candidates().is_empty())
    }

    #[test]
    fn accesses_together_are_found_to_race_as_they_are_one_by_one() {
        let outcomes: Vec<_> = (0..2000).map(compare).collect();
        let count = |of: fn(&(bool, bool)) -> bool| outcomes.iter().filter(|outcome| of(outcome)).count();
        assert!(count(|outcome| outcome.0) > 1800 && count(|outcome| outcome.1) > 500);
        assert!(count(|outcome| !outcome.1) > 20, "{} without candidates", count(|outcome| !outcome.1));
    }
}

//! Plain accesses of a subgroup by one instruction: those to consecutive words, or to one word, are judged together
//! where all of them are settled, as most are; others one by one. The outcome is that of one after the other.

use std::ops::Range;

use cranelift_entity::EntityRef as _;

use super::attributes::Action;
use super::cells::{Cell, Group};
use super::detector::Detector;
use super::history::Reference;
use super::observer::{Lanes, Memory, Observer as _, Target};
use super::page::{AttributeId, PAGE_BYTES};
use super::record::planes;
use crate::ir::Site;

/// Lanes of a subgroup.
const LANES: usize = 16;

/// Accesses of lanes, and which cells are settled for them.
#[derive(Clone, Copy, Debug)]
struct SettledLanes {
    /// The address from which offsets count.
    start: u64,
    /// Whether it is in workgroup memory.
    shared: bool,
    writes: bool,
    attribute: AttributeId,
    /// Cells below are settled.
    base: u32,
    /// The first epoch of the workgroup.
    first: u32,
    /// From the first epoch on, how many cells are known to the workgroup.
    known: u32,
    /// The bits of a cell that name its group.
    group: u32,
    /// The cell of lane 0; that of lane `l` is `2 · l` more.
    me: u32,
}

impl SettledLanes {
    /// Whether a cell is settled for an invocation with cell `me`.
    #[inline(always)]
    fn has(&self, cell: u32, me: u32) -> bool {
        let own = (cell ^ me) & self.group == 0;
        cell < self.base || cell >= self.first && (own | (cell.wrapping_sub(self.first) < self.known))
    }
}

impl Detector {
    /// Judges and records plain accesses of the lanes, which are `offsets` bytes after the target.
    pub(super) fn record_lanes(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; LANES]) {
        let Some((now, scale)) = self.settled(by, site, target) else {
            return by.each(target, offsets, |by, target| self.access(by, site, target));
        };
        // Offsets of the cells.
        let cells = offsets.map(|offset| offset.wrapping_mul(scale));
        if self.record_row(by, &now, &cells) {
            return;
        }
        for lane in (0..LANES).filter(|lane| by.active >> lane & 1 != 0) {
            if !self.record_settled(by, &now, lane, cells[lane]) {
                let one = Lanes { active: 1 << lane, ..by };
                one.each(target, offsets, |by, target| self.access(by, site, target));
            }
        }
    }

    /// What is settled for the lanes, and the cells for each word; `None` if their accesses need more than a cell each.
    fn settled(&mut self, by: Lanes, site: Site, target: Target) -> Option<(SettledLanes, u32)> {
        let Some(&Action::Access { class, private, writes }) = self.actions.get(site.index()) else { return None };
        let attribute = self.attribute(target.reference, class, private);
        let is_mixed = self.attributes[usize::from(attribute)].reference == Reference::MIXED;
        let (start, base, shared) = match target.memory {
            Memory::Device(address) => (address, self.base, false),
            Memory::Workgroup(offset) => (offset.into(), self.workgroup.first, true),
        };
        let parts = self.parts(target, class);
        if target.bytes * parts.scale() != 4 || by.active == 0 || is_mixed {
            return None;
        }
        let first = self.workgroup.first;
        let lanes = SettledLanes {
            start: parts.cells(start..start).start,
            shared,
            writes,
            attribute,
            base,
            first,
            // A private access is ordered by no barrier, or by one that a note must tell of.
            known: if private { 0 } else { self.workgroup.known[class].wrapping_sub(first) },
            group: self.workgroup.layout.unit() - 1,
            me: self.workgroup.cell(by.first).0,
        };
        Some((lanes, parts.scale()))
    }

    /// The cells of some words of a page, of writes and of reads, if all their accesses are like the present ones.
    #[inline]
    fn cells(&mut self, now: &SettledLanes, page: u64, words: Range<usize>) -> Option<(&mut [u32], &mut [u32])> {
        let left = self.left();
        let shadow = if now.shared { &mut self.shared } else { &mut self.device };
        let limit = shadow.bytes() + left;
        shadow.page(page, now.attribute, planes(now.shared, now.writes, !now.writes), limit)?.row(words, now.attribute)
    }

    /// Whether the accesses were to consecutive words, or reads of one word, and all settled, so that they were
    /// recorded.
    fn record_row(&mut self, by: Lanes, now: &SettledLanes, offsets: &[u32; LANES]) -> bool {
        let (low, high) = (by.active.trailing_zeros(), 15 - by.active.leading_zeros());
        let lowest = offsets[low as usize & 15];
        let step = match offsets[high as usize & 15].wrapping_sub(lowest) {
            0 => 0,
            span if span == 4 * (high - low) => 4,
            _ => return false,
        };
        let active_masks: [u32; LANES] =
            std::array::from_fn(|lane| 0u32.wrapping_sub(u32::from(by.active >> lane & 1)));
        let zero = lowest.wrapping_sub(step * low);
        let differ = (0..LANES).fold(0, |differ, lane| {
            differ | (offsets[lane].wrapping_sub(zero.wrapping_add(step * lane as u32)) & active_masks[lane])
        });
        let address = now.start.wrapping_add(lowest.into());
        if differ != 0 || !address.is_multiple_of(4) {
            return false;
        }
        let layout = self.workgroup.layout;
        let subgroup = layout.cell(self.workgroup.epoch, Group::Subgroup(layout.subgroup(by.first)));
        let word = (address % PAGE_BYTES / 4) as usize;
        // The words of all lanes, active or not, must be on the page.
        let words = match step {
            0 => word..word + 1,
            _ => word.wrapping_sub(low as usize)..word.wrapping_sub(low as usize).wrapping_add(LANES),
        };
        let Some((written, read)) = self.cells(now, address / PAGE_BYTES, words) else { return false };
        let done = match (step, &*written, &mut *read) {
            (0, [written], [read]) => !now.writes && same_word(now, (*written, read), subgroup, by.active),
            _ => row(now, (written, read), &active_masks),
        };
        if done {
            self.workgroup.used = true;
            let accessed = self.workgroup.accessed[by.first as usize..].iter_mut();
            accessed.zip(0..LANES).for_each(|(accessed, lane)| *accessed |= by.active >> lane & 1 != 0);
        }
        done
    }

    /// Whether the access of a lane was settled, so that it was recorded.
    #[inline]
    fn record_settled(&mut self, by: Lanes, now: &SettledLanes, lane: usize, offset: u32) -> bool {
        let address = now.start.wrapping_add(offset.into());
        if !address.is_multiple_of(4) {
            return false;
        }
        let word = (address % PAGE_BYTES / 4) as usize;
        let Some(([written], [read])) = self.cells(now, address / PAGE_BYTES, word..word + 1) else { return false };
        let me = now.me + 2 * lane as u32;
        if !now.has(*written, me) || !now.has(*read, me) {
            return false;
        }
        if now.writes {
            *written = me;
            if *read >= now.base {
                *read = Cell::EMPTY.0;
            }
        } else {
            *read = me;
        }
        self.workgroup.used = true;
        self.workgroup.accessed[by.first as usize + lane] = true;
        true
    }
}

/// Consecutive words, whose cells are given; `active` has all ones for active lanes.
#[inline]
fn row(now: &SettledLanes, (written, read): (&mut [u32], &mut [u32]), active: &[u32; LANES]) -> bool {
    let (Ok(written), Ok(read)) = (<&mut [u32; LANES]>::try_from(written), <&mut [u32; LANES]>::try_from(read)) else {
        return false;
    };
    let mine: [u32; LANES] = std::array::from_fn(|lane| now.me.wrapping_add(2 * lane as u32));
    let (mut open, mut pending) = (0, 0);
    for ((&written, &read), (&me, &active)) in written.iter().zip(&*read).zip(mine.iter().zip(active)) {
        let fine = now.has(written, me) & now.has(read, me);
        open |= u32::from(!fine) & active;
        pending |= u32::from(read >= now.base) & active;
    }
    if open != 0 {
        return false;
    }
    let cells = if now.writes { &mut *written } else { &mut *read };
    for ((cell, &me), &active) in cells.iter_mut().zip(&mine).zip(active) {
        *cell = *cell & !active | me & active;
    }
    if now.writes && pending != 0 {
        read.iter_mut().zip(active).for_each(|(cell, active)| *cell &= !active);
    }
    true
}

/// Reads of one word, whose cells are given: several invocations become a subgroup.
#[inline]
fn same_word(now: &SettledLanes, (written, read): (u32, &mut u32), subgroup: Cell, active: u16) -> bool {
    // Only a cell that is settled whatever the invocation.
    let common = |cell: u32| cell < now.base || cell >= now.first && cell.wrapping_sub(now.first) < now.known;
    let new = if active.is_power_of_two() { now.me + 2 * active.trailing_zeros() } else { subgroup.0 };
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
    use crate::check::observer::Invocation;
    use crate::check::{Launch, Limits, Profile};
    use crate::ir::{AccessSite, Scope, Semantics, SiteAction, SiteData, StorageClass};

    const WORKGROUP_SIZE: u32 = 40;

    /// Random accesses of subgroups, by one call each and one by one: both find the same.
    fn compare(seed: u64) -> bool {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |max: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % max
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
        // Subgroups access rows of their own, or exchange them at barriers. Of 48 accesses, `anywhere` are to any
        // place: each of those may race.
        let (exchange, anywhere) = (below(2), [0, 1, 24][below(3) as usize]);
        for workgroup in 0..3 {
            let mut phase = 0;
            for _ in 0..40 {
                if below(6) == 0 {
                    phase += exchange;
                    for detector in [&mut together, &mut apart] {
                        (0..WORKGROUP_SIZE).for_each(|local| detector.arrive(Invocation { workgroup, local }, barrier));
                        detector.release(workgroup, scope, None);
                    }
                    continue;
                }
                let first = 16 * below(3);
                let lanes = if first == 32 { 0xff } else { 0xffff };
                let active = if below(2) == 0 { lanes } else { below(0x1_0000) as u16 & lanes };
                let is_anywhere = below(48) < anywhere;
                let step = if is_anywhere { [0, 4, 4, 8, 16][below(5) as usize] } else { 4 };
                let offsets = std::array::from_fn(|lane| step * lane as u32);
                let own = 48 * workgroup as u32 + (first + 16 * phase) % 48;
                let place = if is_anywhere && below(2) == 0 { below(64) } else { own };
                // Some are at the end of a page.
                let page = if below(8) == 0 { PAGE_BYTES - 128 } else { 1 << 20 };
                let memory = Memory::Device(page + u64::from(4 * place));
                let target = Target { memory, bytes: 4, reference: u32::from(is_anywhere && below(8) == 0) };
                let (by, site) = (Lanes { workgroup, first, active }, if below(2) == 0 { read } else { write });
                together.accesses(by, site, target, &offsets);
                by.each(target, &offsets, |by, target| apart.access(by, site, target));
            }
        }
        let found = |detector: &Detector| format!("{:?} {:?}", detector.candidates(), detector.notes());
        assert_eq!(found(&together), found(&apart), "seed {seed}");
        !apart.candidates().is_empty()
    }

    #[test]
    fn accesses_together_are_found_to_race_as_they_are_one_by_one() {
        let racy = (0..2000).filter(|&seed| compare(seed)).count();
        assert!((500..1980).contains(&racy), "{racy}");
    }
}

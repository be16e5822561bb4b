//! The bytes that a dispatch accesses, with the instruction that accessed each last.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;
use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Lanes, Memory, Observer, Target};
use spelter_shaders::ir::{AtomicOp, Scope, Site, SiteAction};

use super::memory::{PAGE, Pages};

/// An instruction, counted from 1; 0 is none.
type SiteNumber = u32;

/// The instructions that wrote and that read a byte. An atomic is in both if it does both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::check) struct Touch {
    write: SiteNumber,
    read: SiteNumber,
}

impl Touch {
    /// The instruction that wrote last.
    pub(super) fn write(self) -> Option<Site> {
        self.write.checked_sub(1).map(Site::from_u32)
    }

    /// The instruction that read last.
    pub(super) fn read(self) -> Option<Site> {
        self.read.checked_sub(1).map(Site::from_u32)
    }
}

/// Words of a page.
const WORDS: usize = PAGE as usize / 4;

/// Pages that are found without the map.
const RECENT: usize = 16;

/// What a dispatch touched so far.
#[derive(Debug)]
pub(in crate::check) struct Touched {
    /// Whether each instruction writes, reads.
    actions: Vec<(bool, bool)>,
    /// Whole words.
    pages: Vec<(u64, Box<[Touch]>)>,
    places: HashMap<u64, u32, FixedState>,
    recent: [u32; RECENT],
    /// Sub-word accesses.
    parts: Pages<Touch>,
    /// The descriptor that each instruction used last.
    references: Vec<u32>,
    /// The first address that each instruction accessed, and the invocation that did.
    examples: Vec<Option<(u64, Invocation)>>,
    /// Bytes that it may occupy.
    budget: u64,
    /// Accesses that exceeded the budget.
    pub(super) lost: u64,
}

impl Touched {
    /// For a kernel with these instructions.
    pub(in crate::check) fn new<'a>(sites: impl Iterator<Item = &'a SiteAction>, budget: u64) -> Self {
        let of = |action: &SiteAction| match action {
            SiteAction::Read(_) => (false, true),
            SiteAction::Write(_) => (true, false),
            SiteAction::Atomic { op, .. } => (
                !matches!(op, AtomicOp::Load | AtomicOp::HalfLoad),
                !matches!(op, AtomicOp::Store | AtomicOp::HalfStore),
            ),
            SiteAction::Fence { .. } | SiteAction::Barrier { .. } => (false, false),
        };
        let actions: Vec<_> = sites.map(of).collect();
        Self {
            references: vec![0; actions.len()],
            examples: vec![None; actions.len()],
            actions,
            pages: Vec::new(),
            places: HashMap::default(),
            recent: [0; RECENT],
            parts: Pages::default(),
            budget,
            lost: 0,
        }
    }

    /// The descriptor that an instruction used.
    pub(super) fn reference(&self, site: Site) -> u32 {
        self.references.get(site.as_u32() as usize).copied().unwrap_or_default()
    }

    /// An address that an instruction accessed, and the invocation that did.
    pub(super) fn example(&self, site: Site) -> Option<(u64, Invocation)> {
        self.examples.get(site.as_u32() as usize).copied().flatten()
    }

    /// The page with this number.
    #[inline]
    fn page(&mut self, number: u64) -> Option<&mut [Touch]> {
        let recent = &mut self.recent[number as usize % RECENT];
        if self.pages.get(*recent as usize).is_none_or(|(known, _)| *known != number) {
            *recent = match self.places.get(&number) {
                Some(place) => *place,
                None if self.pages.len() as u64 * 2 * PAGE >= self.budget => return None,
                None => {
                    let place = self.pages.len() as u32;
                    self.places.insert(number, place);
                    self.pages.push((number, vec![Touch::default(); WORDS].into_boxed_slice()));
                    place
                }
            };
        }
        let recent = *recent as usize;
        self.pages.get_mut(recent).map(|(_, words)| &mut **words)
    }

    #[inline]
    fn touch(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        let Memory::Device(address) = target.memory else { return };
        let Some(&(_, reads)) = self.actions.get(site.as_u32() as usize) else { return };
        self.references[site.as_u32() as usize] = target.reference;
        self.examples[site.as_u32() as usize].get_or_insert((address, by));
        let number = site.as_u32() + 1;
        let end = address.saturating_add(target.bytes.into());
        if !(address.is_multiple_of(4) && end.is_multiple_of(4)) {
            return self.touch_part(number, address..end, (wrote, reads));
        }
        let mut at = address;
        while at < end {
            let Some(page) = self.page(at / PAGE) else {
                self.lost += 1;
                return;
            };
            let touch = &mut page[(at % PAGE / 4) as usize];
            if wrote {
                touch.write = number;
            }
            if reads {
                touch.read = number;
            }
            at += 4;
        }
    }

    #[cold]
    fn touch_part(&mut self, number: SiteNumber, bytes: Range<u64>, (wrote, reads): (bool, bool)) {
        for byte in bytes {
            let mut touch = self.parts.at(byte);
            touch.write = if wrote { number } else { touch.write };
            touch.read = if reads { number } else { touch.read };
            self.parts.set(byte..byte + 1, touch);
        }
    }

    /// Passes the runs of bytes that the same instructions accessed; words in ascending order, then those of
    /// sub-word accesses.
    pub(super) fn runs(&self, mut each: impl FnMut(Range<u64>, Touch)) {
        let mut order: Vec<_> = self.pages.iter().collect();
        order.sort_unstable_by_key(|(number, _)| *number);
        let mut open: Option<(Range<u64>, Touch)> = None;
        for (number, words) in order {
            for (word, &touch) in words.iter().enumerate() {
                let at = number * PAGE + 4 * word as u64;
                match &mut open {
                    Some((range, same)) if *same == touch && range.end == at => range.end = at + 4,
                    _ => {
                        let last = open.replace((at..at + 4, touch));
                        if let Some((range, touch)) = last.filter(|(_, touch)| *touch != Touch::default()) {
                            each(range, touch);
                        }
                    }
                }
            }
        }
        if let Some((range, touch)) = open.filter(|(_, touch)| *touch != Touch::default()) {
            each(range, touch);
        }
        self.parts.all(each);
    }
}

/// An observer that passes everything on to another one.
pub(in crate::check) struct Both<'a, O> {
    pub(in crate::check) observer: &'a mut O,
    pub(in crate::check) touched: &'a mut Touched,
}

impl<O: Observer> Observer for Both<'_, O> {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        let wrote = self.touched.actions.get(site.as_u32() as usize).is_some_and(|(writes, _)| *writes);
        self.touched.touch(by, site, target, wrote);
        self.observer.access(by, site, target);
    }

    fn accesses(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16]) {
        let wrote = self.touched.actions.get(site.as_u32() as usize).is_some_and(|(writes, _)| *writes);
        by.each(target, offsets, |by, target| self.touched.touch(by, site, target, wrote));
        self.observer.accesses(by, site, target, offsets);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.touched.touch(by, site, target, wrote);
        self.observer.atomic(by, site, target, wrote);
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.observer.fence(by, site);
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.observer.arrive(by, site);
    }

    fn divergent_barrier(&mut self, barrier: DivergentBarrier<'_>) {
        self.observer.divergent_barrier(barrier);
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        self.observer.release(workgroup, execution, subgroup);
    }

    fn end(&mut self, by: Invocation) {
        self.observer.end(by);
    }
}

#[cfg(test)]
mod tests {
    use spelter_shaders::ir::{AccessSite, StorageClass};

    use super::*;

    const BY: Invocation = Invocation { workgroup: 2, local: 5 };

    #[test]
    fn runs_of_words_and_of_sub_word_accesses() {
        let access = AccessSite { class: StorageClass::Uniform, non_private: false, volatile: false, scope: None };
        let sites = [SiteAction::Write(access), SiteAction::Read(access)];
        let mut touched = Touched::new(sites.iter(), u64::MAX);
        let target = |address, bytes| Target { memory: Memory::Device(address), bytes, reference: 3 };
        for word in 0..1030 {
            touched.touch(BY, Site::from_u32(0), target(4088 + 4 * word, 4), true);
        }
        touched.touch(BY, Site::from_u32(1), target(4096, 16), false);
        touched.touch(BY, Site::from_u32(1), target(9001, 2), false);
        let mut list = Vec::new();
        touched.runs(|range, touch| list.push((range, touch.write, touch.read)));
        assert_eq!(list, [(4088..4096, 1, 0), (4096..4112, 1, 2), (4112..8208, 1, 0), (9001..9003, 0, 2)]);
        assert_eq!(touched.reference(Site::from_u32(1)), 3);
        assert_eq!(touched.example(Site::from_u32(1)), Some((4096, BY)));
    }
}

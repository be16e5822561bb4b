//! The bytes that a dispatch accesses, with the instruction that accessed each last, for each kind of access that later
//! commands tell apart.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use cranelift_entity::EntitySet;
use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Lanes, Memory, Observer, Target};
use spelter_shaders::check::{GRANULE, InlineChecks, InlineMemory, MAX_SITES, Plane, Planes};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{AtomicOp, Scope, Site, SiteAction};

use super::kinds::{Kind, Kinds};
use super::marks::{Mark, Marks, SiteNumber};
use super::runs::{MarkedGranule, MarkedPart, fill};

/// What a dispatch touched so far.
#[derive(Debug)]
pub(in crate::check) struct Touched {
    /// Whether each instruction writes, reads.
    actions: Vec<(bool, bool)>,
    /// Where whole words are marked with a byte, if the kernel has few instructions: so does machine code.
    planes: Option<Arc<Planes>>,
    /// The granules of it that may have marks: of writes, of reads.
    marked: BTreeMap<u64, [bool; 2]>,
    /// The one that was marked last, and which marks it may have.
    last: (u64, [bool; 2]),
    /// Other accesses, by their [`Kind`].
    marks: [Marks; Kind::ALL.len()],
    /// What tells kinds apart, if several may access one word; otherwise all are of one kind.
    kinds: Option<Arc<Kinds>>,
    /// Where machine code marks what a descriptor accesses whose memory has accesses of another kind, or of less than a
    /// word.
    apart: Vec<MarksApart>,
    /// The stores that stand for loads, too.
    updates: EntitySet<Site>,
    /// The descriptor that each instruction used last.
    references: Vec<u32>,
    /// The first address that each instruction accessed, and the invocation that did.
    examples: Vec<Option<(u64, Invocation)>>,
    /// Bytes that it may occupy.
    budget: u64,
    /// Accesses that exceeded the budget.
    pub(super) lost: u64,
}

/// Marks of what one descriptor accesses.
#[derive(Debug)]
struct MarksApart {
    /// Its place in the list of descriptors with checks in machine code.
    at: usize,
    /// Its first address.
    start: u64,
    /// One mark byte per `grain` bytes.
    grain: u32,
    /// A byte for each word of the planes' memory, which begins at 0.
    planes: Arc<Planes>,
    /// Whether there may be writes, reads.
    kinds: [bool; 2],
}

impl MarksApart {
    /// The planes' memory.
    fn cells(&self, bytes: u64) -> Range<u64> {
        0..bytes / u64::from(self.grain) * 4
    }
}

impl Touched {
    /// For a kernel with these instructions. The planes have no marks.
    pub(in crate::check) fn new<'a>(
        sites: impl Iterator<Item = &'a SiteAction>,
        planes: Option<Arc<Planes>>,
        budget: u64,
    ) -> Self {
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
            updates: EntitySet::new(),
            references: vec![0; actions.len()],
            examples: vec![None; actions.len()],
            planes: planes.filter(|_| actions.len() <= MAX_SITES),
            marked: BTreeMap::new(),
            last: (u64::MAX, [false; 2]),
            actions,
            marks: Default::default(),
            kinds: None,
            apart: Vec::new(),
            budget,
            lost: 0,
        }
    }

    /// The same, where these stores stand for loads of the same memory, too ([`Kernel::updates`]).
    ///
    /// [`Kernel::updates`]: spelter_shaders::ir::Kernel::updates
    pub(in crate::check) fn updating(self, updates: &EntitySet<Site>) -> Self {
        Self { updates: updates.clone(), ..self }
    }

    /// The same, where some memory may have accesses of several kinds.
    pub(in crate::check) fn telling_apart(self, kinds: Option<&Arc<Kinds>>) -> Self {
        Self { kinds: kinds.cloned(), ..self }
    }

    /// Whether an instruction that writes also stands for a load.
    pub(super) fn is_update(&self, site: Site) -> bool {
        self.updates.contains(site)
    }

    /// The descriptor that an instruction used.
    pub(super) fn reference(&self, site: Site) -> u32 {
        self.references.get(site.as_u32() as usize).copied().unwrap_or_default()
    }

    /// An address that an instruction accessed, and the invocation that did.
    pub(super) fn example(&self, site: Site) -> Option<(u64, Invocation)> {
        self.examples.get(site.as_u32() as usize).copied().flatten()
    }

    #[inline]
    pub(super) fn touch(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        let Memory::Device(address) = target.memory else { return };
        let Some(&(_, reads)) = self.actions.get(site.as_u32() as usize) else { return };
        self.references[site.as_u32() as usize] = target.reference;
        self.examples[site.as_u32() as usize].get_or_insert((address, by));
        let number = site.as_u32() + 1;
        let bytes = address..address.saturating_add(target.bytes.into());
        let kind = self.kinds.as_ref().map_or(Kind::Storage, |kinds| kinds.of(site, target.reference));
        let mark = Mark { number, wrote, reads };
        let are_words = bytes.start.is_multiple_of(4) && bytes.end.is_multiple_of(4);
        if are_words && kind == Kind::Storage && self.mark(number, bytes.clone(), (wrote, reads)) {
            return;
        }
        let marks = &mut self.marks[kind as usize];
        let is_marked = match are_words {
            true => marks.touch(bytes, mark, &mut self.budget),
            false => marks.touch_part(bytes, mark, &mut self.budget),
        };
        if !is_marked {
            self.lost += 1;
        }
    }

    /// Plain accesses of lanes: consecutive words at once.
    fn touch_lanes(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16], wrote: bool) {
        match row(by.active, target, offsets) {
            Some((lane, row)) => {
                let first = Invocation { workgroup: by.workgroup, local: by.first + lane };
                self.touch(first, site, row, wrote);
            }
            None => by.each(target, offsets, |by, target| self.touch(by, site, target, wrote)),
        }
    }

    /// Marks words in the planes; false if they are elsewhere.
    #[inline]
    fn mark(&mut self, number: SiteNumber, words: Range<u64>, (wrote, reads): (bool, bool)) -> bool {
        let granule = words.start / GRANULE;
        let Some(planes) = &self.planes else { return false };
        // Wide atomics are aligned to words only.
        let in_granule = words.end <= (granule + 1) * GRANULE;
        if !in_granule || !planes.cover(&words) {
            return false;
        }
        if self.last.0 != granule || wrote && !self.last.1[0] || reads && !self.last.1[1] {
            let marked = self.marked.entry(granule).or_default();
            *marked = [marked[0] || wrote, marked[1] || reads];
            self.last = (granule, *marked);
        }
        for (plane, does) in [(Plane::Wrote, wrote), (Plane::HasRead, reads)] {
            if does {
                fill(planes.slice(plane, words.clone()), number as u8);
            }
        }
        true
    }

    /// The marks, in ascending order for each kind of access: those of words, then those of sub-word accesses.
    pub(super) fn parts(&self) -> impl Iterator<Item = MarkedPart<'_>> {
        let words = self.planes.iter().flat_map(move |planes| {
            let part = move |(&granule, &kinds): (&u64, &[bool; 2])| {
                let (base, grain, is_shared) = (0, 4, true);
                MarkedPart::Granule(MarkedGranule { planes, granule, kinds, base, grain, is_shared })
            };
            self.marked.iter().map(part)
        });
        let apart = self.apart.iter().flat_map(|marks| {
            let (planes, kinds, base, grain) = (&*marks.planes, marks.kinds, marks.start, u64::from(marks.grain));
            let granules = (0..).take_while(move |granule| planes.cover(&(granule * GRANULE..(granule + 1) * GRANULE)));
            let is_shared = false;
            let part = move |granule| MarkedGranule { planes, granule, kinds, base, grain, is_shared };
            granules.map(move |granule| MarkedPart::Granule(part(granule)))
        });
        let others = self.marks.iter().flat_map(Marks::pages).map(MarkedPart::Page);
        words.chain(apart).chain(others)
    }

    /// Memory for the marks of descriptors whose memory has accesses of another kind, or of less than a word. `None` if
    /// there is not enough.
    fn marks_apart(&self, checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<Vec<MarksApart>> {
        let mut bytes = 0;
        let mut all = Vec::new();
        for (at, (&number, &grain)) in checks.descriptors.iter().zip(&checks.grains).enumerate() {
            let is_of_other_kind =
                self.kinds.as_ref().is_some_and(|kinds| kinds.of_descriptor(number) != Kind::Storage);
            let slice = buffers.get(number as usize).copied().unwrap_or(GuestSlice::EMPTY);
            if slice.is_empty() || !is_of_other_kind && grain >= 4 {
                continue;
            }
            let kinds = self.kinds_of(checks, number);
            // A plane for each kind.
            bytes += slice.len() / u64::from(grain) * kinds.iter().filter(|kind| **kind).count() as u64;
            if bytes > self.budget {
                return None;
            }
            let planes = Planes::new(0..slice.len() / u64::from(grain) * 4)?;
            all.push(MarksApart { at, start: slice.address() as u64, grain, planes, kinds });
        }
        Some(all)
    }

    /// Whether checks in machine code concern writes, reads of a descriptor.
    fn kinds_of(&self, checks: &InlineChecks, number: u32) -> [bool; 2] {
        let sites = checks.sites.iter().filter(|(_, descriptor)| *descriptor == number);
        let actions = sites.filter_map(|(site, _)| self.actions.get(site.as_u32() as usize));
        actions.fold([false; 2], |[w, r], (writes, reads)| [w || *writes, r || *reads])
    }
}

/// The memory of lanes that follow each other and access consecutive words of a granule, and the first of the lanes.
fn row(active: u16, target: Target, offsets: &[u32; 16]) -> Option<(u32, Target)> {
    let (first, count) = (active.trailing_zeros(), active.count_ones());
    let Memory::Device(address) = target.memory else { return None };
    if target.bytes != 4 || count < 2 || active >> first != (1u32 << count).wrapping_sub(1) as u16 {
        return None;
    }
    let lowest = offsets[first as usize];
    let lanes = offsets[first as usize..].iter().zip(0..count);
    let start = address.wrapping_add(lowest.into());
    let are_consecutive = lanes.fold(true, |all, (&offset, lane)| all & (offset == lowest.wrapping_add(4 * lane)));
    let bytes = 4 * count;
    let in_granule = start % GRANULE + u64::from(bytes) <= GRANULE;
    (are_consecutive && in_granule).then_some((first, Target { memory: Memory::Device(start), bytes, ..target }))
}

/// An observer that passes everything on to another one.
pub(in crate::check) struct Both<'a, O> {
    pub(in crate::check) observer: &'a mut O,
    pub(in crate::check) touched: &'a mut Touched,
}

impl<O: Observer> Observer for Both<'_, O> {
    fn inline(&mut self, checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<InlineMemory> {
        self.touched.planes.as_ref()?;
        let apart = self.touched.marks_apart(checks, buffers)?;
        let mut memory = self.observer.inline(checks, buffers)?;
        for marks in apart {
            let [.., wrote, has_read] = &mut memory.planes[marks.at];
            let len = buffers[checks.descriptors[marks.at] as usize].len();
            [*wrote, *has_read] =
                [Plane::Wrote, Plane::HasRead].map(|plane| marks.planes.slice(plane, marks.cells(len)));
            self.touched.apart.push(marks);
        }
        for &(site, reference) in &checks.sites {
            self.touched.references[site.as_u32() as usize] = reference;
        }
        let apart = self.touched.apart.iter().map(|marks| checks.descriptors[marks.at]).collect::<Vec<_>>();
        for &number in checks.descriptors.iter().filter(|number| !apart.contains(number)) {
            let Some(slice) = buffers.get(number as usize).filter(|slice| !slice.is_empty()) else { continue };
            let kinds = self.touched.kinds_of(checks, number);
            let start = slice.address() as u64;
            for granule in start / GRANULE..(start + slice.len()).div_ceil(GRANULE) {
                let marked = self.touched.marked.entry(granule).or_default();
                *marked = [marked[0] || kinds[0], marked[1] || kinds[1]];
            }
        }
        Some(memory)
    }

    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        let wrote = self.touched.actions.get(site.as_u32() as usize).is_some_and(|(writes, _)| *writes);
        self.touched.touch(by, site, target, wrote);
        self.observer.access(by, site, target);
    }

    fn accesses(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16]) {
        let wrote = self.touched.actions.get(site.as_u32() as usize).is_some_and(|(writes, _)| *writes);
        self.touched.touch_lanes(by, site, target, offsets, wrote);
        self.observer.accesses(by, site, target, offsets);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.touched.touch(by, site, target, wrote);
        self.observer.atomic(by, site, target, wrote);
    }

    spelter_shaders::forward_observer! {
        observer:
        fn begin(workgroup: u64);
        fn fence(by: Invocation, site: Site);
        fn arrive(by: Invocation, site: Site);
        fn meet(workgroup: u64, site: Site, invocations: u32);
        fn divergent_barrier(barrier: DivergentBarrier<'_>);
        fn release(workgroup: u64, execution: Scope, subgroup: Option<u32>);
        fn end(by: Invocation);
        fn ends(workgroup: u64, invocations: u32);
    }
}

#[cfg(test)]
mod tests {
    use spelter_shaders::ir::{AccessSite, StorageClass};

    use super::*;

    #[test]
    fn marks_apart_count_with_each_plane_that_they_may_need() {
        let access = AccessSite { class: StorageClass::Uniform, non_private: false, volatile: false, scope: None };
        let sites = [SiteAction::Write(access), SiteAction::Read(access)];
        let buffer = GuestSlice::leak(1 << 16);
        let fits = |instructions: &[u32], budget| {
            let checks = InlineChecks {
                descriptors: vec![0],
                grains: vec![1],
                sites: instructions.iter().map(|&site| (Site::from_u32(site), 0)).collect(),
                ..InlineChecks::default()
            };
            Touched::new(sites.iter(), None, budget).marks_apart(&checks, &[buffer]).is_some()
        };
        let bytes = buffer.len();
        assert_eq!([&[0][..], &[1]].map(|one| (fits(one, bytes - 1), fits(one, bytes))), [(false, true); 2]);
        assert_eq!([bytes, 2 * bytes - 1, 2 * bytes].map(|budget| fits(&[0, 1], budget)), [false, false, true]);
    }

    #[test]
    fn lanes_with_consecutive_words_are_a_row() {
        let target = Target { memory: Memory::Device(GRANULE), bytes: 4, reference: 0 };
        let offsets: [u32; 16] = std::array::from_fn(|lane| 100 + 4 * lane as u32);
        let of =
            |active, offsets: &[u32; 16]| row(active, target, offsets).map(|(lane, row)| (lane, row.memory, row.bytes));
        assert_eq!(of(0xffff, &offsets), Some((0, Memory::Device(GRANULE + 100), 64)));
        assert_eq!(of(0x00f8, &offsets), Some((3, Memory::Device(GRANULE + 112), 20)));
        assert_eq!(of(0x00f0, &[0; 16]), None);
        assert_eq!([of(0x0101, &offsets), of(0x0100, &offsets), of(0, &offsets)], [None; 3]);
        let at_end = offsets.map(|offset| GRANULE as u32 - 150 + offset);
        assert_eq!(of(0xffff, &at_end), None, "some are of the next granule");
    }
}

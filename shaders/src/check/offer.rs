//! The detector's part of checks in machine code: which memory they may settle accesses to, and the epochs that they
//! compare cells with.
//!
//! Machine code knows cells, but neither references nor privacy. So it may settle accesses only where all plain
//! accesses to a word are alike in privacy and through one descriptor or variable, or all writes through one descriptor
//! and others with the same range only read. Pages get their attribute in advance. Other memory that several
//! descriptors have, or that is accessed both ways, is left to calls.

use std::ops::Range;
use std::sync::Arc;

use cranelift_entity::EntityRef as _;
use smallvec::SmallVec;

use super::attributes::{self, Action, CLASSES, index};
use super::barrier;
use super::cells::{Cell, Group};
use super::detector::Detector;
use super::history::Reference;
use super::inline::{InlineMemory, MAX_SCALE, SHARED_BYTES, SHARED_PARTS, state};
use super::owners::{alone, has_cells, owner};
use super::page::AttributeId;
use super::parts::Parts;
use super::planes::{GRANULE, Planes};
use crate::guest::GuestSlice;
use crate::ir::{InlineChecks, Plane, PlaneSet, Site, SiteAction, StorageClass};

/// The part of the shadow's memory, as one divided by this, that device memory gets no planes from in advance: for
/// workgroup memory, for histories of words, for the table of workgroups, and for pages that calls need. Most
/// dispatches need little for those, and all that they access has its planes already.
const RESERVE: u64 = 64;

/// All that has planes of workgroup memory: its words, the granule after them, whose cells are the words of the state,
/// and the cells of variables that have several for each word.
const SHARED: Range<u64> = 0..SHARED_PARTS + MAX_SCALE * SHARED_BYTES;

/// The descriptors of a dispatch that its checks concern.
struct Descriptors<'a> {
    checks: &'a InlineChecks,
    buffers: &'a [GuestSlice],
    /// Of each whether no other one has a part of its memory, and its plain accesses are alike in privacy.
    alone: Vec<bool>,
    /// Of each the one whose reference its memory gets, if machine code may settle accesses through it.
    owners: Vec<Option<u32>>,
}

struct CheckedDescriptor {
    number: u32,
    /// The planes that its accesses need.
    planes: PlaneSet,
    /// See [`Descriptors::owners`].
    owner: Option<u32>,
    /// Whether its plain accesses are private, if it has one.
    private: bool,
    parts: Parts,
    /// The addresses of its cells.
    range: Range<u64>,
}

impl Descriptors<'_> {
    fn all(&self) -> impl Iterator<Item = CheckedDescriptor> {
        let checks = self.checks;
        let lists = checks.descriptors.iter().zip(&checks.planes).zip(&checks.private).zip(&self.owners);
        lists.map(move |(((&number, &planes), &private), &owner)| {
            let (parts, range) = self.cells(number);
            CheckedDescriptor { number, planes, owner, private: private == Some(true), parts, range }
        })
    }

    /// How a descriptor's memory is divided into cells, and the addresses of these.
    fn cells(&self, number: u32) -> (Parts, Range<u64>) {
        let slice = self.buffers.get(number as usize).copied().unwrap_or(GuestSlice::EMPTY);
        let start = slice.address() as u64;
        let parts = Parts::of_device(start, self.checks.grain_of_descriptor(number).unwrap_or(4));
        (parts, parts.cells(start..start + slice.len()))
    }

    /// Whether one has more cells of less than a word than machine code has numbers for: the length of their range has
    /// 32 bits.
    fn are_long(&self) -> bool {
        self.checks.descriptors.iter().zip(&self.checks.grains).any(|(&number, &grain)| {
            let range = self.cells(number).1;
            grain < 4 && range.end - range.start > u64::from(u32::MAX)
        })
    }

    /// The bytes of the longest range whose cells say that its words have histories.
    fn longest_history(&self) -> u64 {
        let shared = self.all().filter(|descriptor| descriptor.owner.is_none() && has_cells(descriptor.planes));
        shared.map(|descriptor| descriptor.range.end - descriptor.range.start).max().unwrap_or(0)
    }
}

impl Detector {
    /// Reserves planes for device memory at these addresses, so that machine code can settle accesses to it. `None` if
    /// the system has not as many addresses, or memory was accessed already.
    pub fn reserve(&mut self, memory: Range<u64>) -> Option<Arc<Planes>> {
        if !self.device.is_empty() {
            return None;
        }
        let planes = Planes::new(memory.clone())?;
        self.device.reserve(Arc::clone(&planes));
        self.memory = memory;
        Some(planes)
    }

    /// Reserves planes for cells of less than a word, too, if there are none yet.
    pub(super) fn reserve_parts(&mut self) -> bool {
        let cells = Parts::address(self.memory.start)..Parts::address(self.memory.end);
        if self.device.reserved(&cells).is_none() {
            let Some(planes) = Planes::new(cells) else { return false };
            self.device.reserve(planes);
        }
        true
    }

    /// The memory for checks in machine code, if all that they concern can have it in this dispatch.
    pub(super) fn offer(&mut self, checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<InlineMemory> {
        if !self.device.has_reserved() || !self.may_divide(checks) {
            return None;
        }
        let shared = self.bind_variables(checks)?;
        let descriptors = self.descriptors(checks, buffers)?;
        let history = self.histories(descriptors.longest_history())?;
        self.bind_descriptors(&descriptors)?;
        let first_words = SHARED_BYTES..SHARED_BYTES + 4 * u64::from(state::WORDS);
        let memory = InlineMemory {
            planes: descriptors.all().map(|descriptor| self.planes(&descriptor, history)).collect(),
            shared: [Plane::Written, Plane::Read].map(|plane| shared.slice(plane, SHARED)),
            state: shared.slice(Plane::Written, first_words),
        };
        memory.state.fill(0, memory.state.len(), 0);
        for CheckedDescriptor { number, parts, .. } in descriptors.all().filter(|descriptor| descriptor.owner.is_some())
        {
            self.parts.set_descriptor(number, parts);
        }
        for (variable, &grain) in checks.variables.iter().zip(&checks.variable_grains) {
            self.parts.set_variable(variable.number, Parts::of_variable(variable.first, grain));
        }
        self.inlined = Some(memory.state);
        self.publish();
        Some(memory)
    }

    /// Whether machine code may settle accesses to memory that several descriptors of the dispatch have.
    pub fn settles_aliases(&self) -> bool {
        self.inlined.is_some() && !self.writers.is_empty()
    }

    /// Binds the cells of the workgroup variables, and returns the planes of workgroup memory.
    fn bind_variables(&mut self, checks: &InlineChecks) -> Option<Arc<Planes>> {
        if self.shared.is_empty() && !self.shared.has_reserved() {
            self.shared.reserve(Planes::new(SHARED)?);
        }
        let shared = Arc::clone(self.shared.reserved(&SHARED)?);
        let cells = PlaneSet::of(Plane::Written).and(Plane::Read);
        let variables = checks.variables.iter().zip(&checks.variable_grains).zip(&checks.variable_private);
        for ((variable, &grain), &private) in variables {
            let private = private?;
            let range = u64::from(variable.first)..u64::from(variable.first) + u64::from(variable.bytes);
            let cells_at = Parts::of_variable(variable.first, grain).cells(range.clone());
            let attribute = self.attribute(variable.number, index(StorageClass::Workgroup), private);
            let inside = range.end <= SHARED_BYTES && self.has_one_reference(attribute);
            let limit = self.shared.bytes() + self.left();
            if !inside || !range.is_empty() && !self.shared.bind(cells_at, attribute, cells, limit) {
                return None;
            }
        }
        Some(shared)
    }

    /// The descriptors of the checks, if machine code may settle accesses through one of them.
    fn descriptors<'a>(&self, checks: &'a InlineChecks, buffers: &'a [GuestSlice]) -> Option<Descriptors<'a>> {
        let mut descriptors = Descriptors { checks, buffers, alone: Vec::new(), owners: Vec::new() };
        if descriptors.are_long() {
            return None;
        }
        descriptors.alone = alone(checks, buffers)?;
        descriptors.alone.iter_mut().zip(&checks.private).for_each(|(alone, private)| *alone &= private.is_some());
        // An image may have the memory of a buffer, and its accesses have the cells of words.
        let is_image = |action: &Action| match action {
            Action::Access { class, .. } | Action::Atomic { class, .. } => *class == index(StorageClass::Image),
            Action::Fence(_) | Action::Barrier { .. } => false,
        };
        if self.actions.iter().any(is_image) {
            descriptors.alone.iter_mut().zip(&checks.grains).for_each(|(alone, &grain)| *alone &= grain == 4);
        }
        let alone = checks.descriptors.iter().zip(&descriptors.alone);
        descriptors.owners = alone.map(|(number, &alone)| alone.then_some(*number)).collect();
        for (number, known) in checks.descriptors.iter().zip(&mut descriptors.owners) {
            *known = known.or_else(|| owner(checks, buffers, *number, self.lenient));
        }
        if !checks.descriptors.is_empty() && descriptors.owners.iter().all(Option::is_none) {
            return None;
        }
        // Atomics that are mutually ordered are only noted: what else accesses their memory would not be compared.
        let is_alone = |number: u32| {
            checks.descriptors.iter().zip(&descriptors.alone).any(|(&other, &alone)| alone && other == number)
        };
        let noted = |site: Site| matches!(self.actions.get(site.index()), Some(Action::Atomic { .. }));
        let all_alone = checks.sites.iter().all(|&(site, number)| !noted(site) || is_alone(number));
        all_alone.then_some(descriptors)
    }

    /// Binds the cells of descriptors that have their memory alone, and marks what the others access without cells.
    fn bind_descriptors(&mut self, descriptors: &Descriptors) -> Option<()> {
        let (owned, others): (Vec<_>, Vec<_>) =
            descriptors.all().partition(|descriptor| descriptor.owner == Some(descriptor.number));
        let (readers, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|reader| reader.owner.is_some());
        let owned = owned.into_iter().map(|owner| {
            let read = readers.iter().filter(|reader| reader.owner == Some(owner.number));
            let planes = read.fold(owner.planes, |planes, reader| planes.or(reader.planes));
            CheckedDescriptor { planes, ..owner }
        });
        let owned: Vec<_> = owned.collect();
        // Machine code marks it, however many descriptors have its memory.
        let marked = others.into_iter().filter(|descriptor| !has_cells(descriptor.planes));
        let marked = merged(marked.map(|CheckedDescriptor { range, planes, .. }| (range, planes)));
        let limit = self.device.bytes() + self.left().saturating_sub(self.limits.bytes / RESERVE);
        let ranges = owned.iter().map(|descriptor| (descriptor.range.clone(), descriptor.planes));
        let all: Vec<_> = ranges.chain(marked.iter().cloned()).collect();
        if !self.device.has_room(&all, limit) {
            return None;
        }
        if !marked.into_iter().all(|(range, planes)| self.device.mark(range, planes)) {
            return None;
        }
        for CheckedDescriptor { number, range, planes, private, .. } in owned {
            let attribute = self.attribute(number, index(StorageClass::Uniform), private);
            let bound = range.is_empty() || self.device.bind(range, attribute, planes, u64::MAX);
            if !bound || !self.has_one_reference(attribute) {
                return None;
            }
            if readers.iter().any(|reader| reader.owner == Some(number)) && !self.writers.contains(&attribute) {
                self.writers.push(attribute);
            }
        }
        Some(())
    }

    /// The planes of a descriptor: cells that say that their words have a history, if others have its memory, too.
    fn planes(&self, descriptor: &CheckedDescriptor, history: GuestSlice) -> [GuestSlice; 4] {
        let range = &descriptor.range;
        let planes = self.device.reserved(range);
        let of = |plane| planes.map_or(GuestSlice::EMPTY, |planes| planes.slice(plane, range.clone()));
        let [written, read, wrote, has_read] = [Plane::Written, Plane::Read, Plane::Wrote, Plane::HasRead].map(of);
        if descriptor.owner.is_some() || !has_cells(descriptor.planes) {
            [written, read, wrote, has_read]
        } else {
            let cells = history.slice(0, written.len());
            [cells, cells, wrote, has_read]
        }
    }

    /// Cells for this many bytes of memory each of which says that its word has a history: machine code, which settles
    /// no access to such words, takes them for the cells of memory that several descriptors have. It never writes them.
    fn histories(&mut self, bytes: u64) -> Option<GuestSlice> {
        if bytes == 0 {
            return Some(GuestSlice::EMPTY);
        }
        if bytes > self.limits.bytes / 8 {
            return None;
        }
        let planes = match self.histories.take() {
            Some((known, planes)) if known >= bytes => (known, planes),
            _ => {
                let planes = Planes::new(0..bytes)?;
                let cells = planes.slice(Plane::Written, 0..bytes.next_multiple_of(4));
                cells.fill(0, cells.len(), Cell::DETAILED.0);
                (bytes, planes)
            }
        };
        let (known, planes) = self.histories.insert(planes);
        Some(planes.slice(Plane::Written, 0..known.next_multiple_of(4)))
    }

    /// From now on machine code may settle accesses to device memory by this instruction.
    #[inline]
    pub(super) fn may_settle(&self, site: Site) {
        if let Some(state) = self.inlined {
            // Out of bounds, the word does not exist, and the instruction has no such check.
            state.store_u32(4 * (u64::from(state::SITE_SETTLED_BELOW) + site.index() as u64), self.base);
        }
    }

    /// Takes over what machine code did about barriers since the last call: see [`words_of_barrier`].
    #[inline]
    pub(super) fn catch_up(&mut self) {
        let Some(state) = self.inlined else { return };
        let epoch = state.load_u32(4 * u64::from(state::EPOCH));
        if epoch != self.workgroup.epoch {
            self.epochs.advance(epoch, self.workgroup.layout);
            (self.workgroup.epoch, self.workgroup.met) = (epoch, epoch);
            for (class, known) in self.workgroup.known.iter_mut().enumerate() {
                *known = state.load_u32(4 * (u64::from(state::ORDERED_BELOW) + class as u64));
            }
        }
    }

    /// No cell of a new era is settled by what was reported in an earlier one.
    pub(super) fn settle_none(&self) {
        if let Some(state) = self.inlined {
            let sites = 4 * u64::from(state::SITE_SETTLED_BELOW);
            state.fill(sites, state.len() - sites, 0);
        }
    }

    fn has_one_reference(&self, attribute: AttributeId) -> bool {
        self.attributes[usize::from(attribute)].reference != Reference::MIXED
    }

    /// Tells machine code the present epochs.
    #[inline]
    pub(super) fn publish(&self) {
        let Some(state) = self.inlined else { return };
        let (workgroup, layout) = (&self.workgroup, self.workgroup.layout);
        let several = layout.cell(self.epochs.several(), Group::Workgroup).0;
        let word = |number: u32, value: u32| state.store_u32(4 * u64::from(number), value);
        word(state::SETTLED_BELOW, self.base);
        word(state::FIRST_EPOCH, workgroup.first);
        word(state::PRIVATE_SETTLED_BELOW, workgroup.first);
        word(state::EPOCH, workgroup.epoch);
        word(state::SEVERAL_WORKGROUPS, several);
        let untouched = workgroup.untouched();
        word(state::READS_JOIN, if untouched && !workgroup.met_in_subgroups() { u32::MAX } else { 0 });
        word(state::LAST_EPOCH, if untouched { self.epochs.last(layout) } else { 0 });
        for class in 0..CLASSES {
            word(state::ORDERED_BELOW + class as u32, workgroup.known[class]);
        }
    }
}

/// The granules of some ranges, each once, with the planes of all ranges there.
fn merged(ranges: impl Iterator<Item = (Range<u64>, PlaneSet)>) -> Vec<(Range<u64>, PlaneSet)> {
    let granules = |range: Range<u64>| range.start / GRANULE * GRANULE..range.end.next_multiple_of(GRANULE);
    let mut sorted: Vec<_> = ranges.filter(|(range, _)| !range.is_empty()).collect();
    sorted.sort_unstable_by_key(|(range, _)| range.start);
    let mut merged: Vec<(Range<u64>, PlaneSet)> = Vec::new();
    for (range, planes) in sorted.into_iter().map(|(range, planes)| (granules(range), planes)) {
        match merged.last_mut() {
            Some((last, all)) if range.start < last.end => {
                (last.end, *all) = (last.end.max(range.end), all.or(planes));
            }
            _ => merged.push((range, planes)),
        }
    }
    merged
}

/// The words of the state that become the new epoch if the whole workgroup meets at a barrier, where no invocation
/// knows more than others ([`state::LAST_EPOCH`]); `None` if the barrier needs the detector in any case.
pub(crate) fn words_of_barrier(action: &SiteAction) -> Option<SmallVec<[u32; 4]>> {
    let order = attributes::order_of_barrier(action)?;
    let is_simple = barrier::makes_all_known(order);
    is_simple.then(|| {
        let known = order.releases.iter().map(|class| state::ORDERED_BELOW + class as u32);
        std::iter::once(state::EPOCH).chain(known).collect()
    })
}

#[cfg(test)]
mod tests {
    use cranelift_entity::PrimaryMap;

    use super::super::{Launch, Limits, Profile};
    use super::*;

    #[test]
    fn marks_of_what_several_descriptors_read_count_once() {
        let leaked = GuestSlice::leak(18 * GRANULE as usize);
        let start = leaked.address() as u64;
        let first = start.next_multiple_of(GRANULE) - start;
        let part = |at: u64, granules: u64| leaked.slice(first + at * GRANULE, granules * GRANULE);
        let (mark, write) = (PlaneSet::of(Plane::HasRead), PlaneSet::of(Plane::Written).and(Plane::Wrote));
        // The last descriptor is written, and has its memory alone.
        let offered = |inputs: &[(u64, u64)], written: u64| {
            let buffers: Vec<_> = inputs.iter().map(|&(at, len)| part(at, len)).chain([part(4, written)]).collect();
            let planes = inputs.iter().map(|_| mark).chain([write]).collect();
            let (descriptors, private) = ((0..buffers.len() as u32).collect(), vec![Some(false); buffers.len()]);
            let grains = vec![4; buffers.len()];
            let only_read = inputs.iter().map(|_| true).chain([false]).collect();
            let checks = InlineChecks { descriptors, planes, private, grains, only_read, ..Default::default() };
            let launch = Launch { workgroup_size: 64, subgroup_size: 16, vulkan_model: false };
            // Room for the marks of three granules and a half, beside what is reserved for accesses by calls. Inputs
            // have no cells, whatever has their memory.
            let room = 7 * mark.bytes() / 2 + 12 * write.bytes();
            let limits = Limits { bytes: room * RESERVE / (RESERVE - 1), kinds: 8, examples: 8, ..Limits::default() };
            let mut detector = Detector::new(&PrimaryMap::new(), launch, Profile::Common, limits);
            detector.reserve(start..start + leaked.len()).unwrap();
            let offered = detector.offer(&checks, &buffers).is_some();
            (offered, detector.device.bytes())
        };
        let bytes = |inputs: u64, written: u64| inputs * mark.bytes() + written * write.bytes();
        assert_eq!(offered(&[(0, 2), (1, 2)], 1), (true, bytes(3, 1)));
        assert_eq!(offered(&[(0, 2), (1, 2)], 12), (true, bytes(3, 12)));
        assert_eq!(offered(&[(0, 2), (1, 2), (2, 2)], 12), (false, 0), "no room for the marks of a fourth granule");
    }
}

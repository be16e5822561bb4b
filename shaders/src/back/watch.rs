//! Calls of the observer that the engines of checked mode share, and the memory that an instruction accesses.

use std::ops::Range;

use crate::abi::SUBGROUP_SIZE;
use crate::check::observer::{DivergentBarrier, Invocation, Lanes, Memory, Observer, Target};
use crate::guest::GuestSlice;
use crate::image::{self, Descriptor, ImageOp};
use crate::ir::{Observed, ObservedKind, ObservedVariable, Scope, Site};

impl Observed {
    /// Alignment without which nothing is accessed.
    fn align(&self) -> u32 {
        if self.kind == ObservedKind::Plain { 1 } else { self.bytes.min(4) }
    }

    /// The memory at an offset of a buffer; `None` if nothing is accessed. `reference` is the buffer's number.
    pub(super) fn in_buffer(&self, buffer: GuestSlice, reference: u32, offset: u32) -> Option<Target> {
        let address = (buffer.address() as u64).wrapping_add(offset.into());
        let is_inside = u64::from(offset) + u64::from(self.bytes) <= buffer.len();
        let target = Target { memory: Memory::Device(address), bytes: self.bytes, reference };
        (is_inside && address.is_multiple_of(self.align().into())).then_some(target)
    }

    /// The memory at an offset of a variable; `None` if nothing is accessed.
    pub(super) fn in_variable(&self, variable: ObservedVariable, offset: u32) -> Option<Target> {
        let is_inside = offset.checked_add(self.bytes).is_some_and(|end| end <= variable.bytes);
        (is_inside && offset.is_multiple_of(self.align())).then(|| {
            let memory = Memory::Workgroup(variable.first + offset);
            Target { memory, bytes: self.bytes, reference: variable.number }
        })
    }
}

/// The observer of a workgroup.
pub(super) struct Watch<'a> {
    pub(super) observer: &'a mut dyn Observer,
    /// Linear number of the workgroup.
    workgroup: u64,
    /// The site of the workgroup's barrier at which each invocation waits.
    waiting: Vec<Option<Site>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, workgroup: u64) -> Self {
        Self { observer, workgroup, waiting: Vec::new() }
    }

    pub(super) fn invocation(&self, local: u32) -> Invocation {
        Invocation { workgroup: self.workgroup, local }
    }

    /// Another workgroup begins.
    pub(super) fn begin(&mut self, workgroup: u64) {
        self.workgroup = workgroup;
        self.waiting.clear();
    }

    /// An invocation ends.
    pub(super) fn end(&mut self, local: u32) {
        self.observer.end(self.invocation(local));
    }

    /// All invocations end.
    pub(super) fn ends(&mut self, invocations: u32) {
        self.observer.ends(self.workgroup, invocations);
    }

    /// A memory barrier of an invocation.
    pub(super) fn fence(&mut self, local: u32, site: Site) {
        self.observer.fence(self.invocation(local), site);
    }

    /// An invocation waits at a barrier of the workgroup.
    pub(super) fn arrive(&mut self, local: u32, site: Site) {
        let index = local as usize;
        self.waiting.resize(self.waiting.len().max(index + 1), None);
        self.waiting[index] = Some(site);
        self.observer.arrive(self.invocation(local), site);
    }

    /// All invocations of the workgroup meet at a barrier of it.
    pub(super) fn meet(&mut self, site: Site, invocations: u32) {
        self.observer.meet(self.workgroup, site, invocations);
    }

    /// The invocations that wait for the workgroup go on.
    pub(super) fn release_workgroup(&mut self, invocations: u32, waits: impl Fn(u32) -> bool) {
        let all = self.waiting.get(..invocations as usize).and_then(<[_]>::split_first);
        let are_alike = all.is_some_and(|(first, others)| others.iter().all(|other| other == first));
        if are_alike && (0..invocations).all(&waits) {
            self.waiting.clear();
            return self.observer.release(self.workgroup, Scope::Workgroup, None);
        }
        let site = |local: u32| self.waiting.get(local as usize).copied().flatten();
        let waiting: Vec<_> = (0..invocations)
            .filter(|&local| waits(local))
            .filter_map(|local| Some((self.invocation(local), site(local)?)))
            .collect();
        let missing: Vec<_> =
            (0..invocations).filter(|&local| !waits(local)).map(|local| self.invocation(local)).collect();
        if !missing.is_empty() || waiting.windows(2).any(|pair| pair[0].1 != pair[1].1) {
            let barrier = DivergentBarrier { execution: Scope::Workgroup, waiting: &waiting, missing: &missing };
            self.observer.divergent_barrier(barrier);
        }
        self.waiting.clear();
        self.observer.release(self.workgroup, Scope::Workgroup, None);
    }

    /// The invocations of a subgroup that wait at the same subgroup's barrier go on. They arrive only now: others of
    /// the subgroup may wait at a later one, and a release concerns all that have arrived.
    pub(super) fn release_subgroup(&mut self, site: Site, group: &[u32], subgroup: Range<u32>) {
        let mut waiting: Vec<_> = group.iter().map(|&local| (self.invocation(local), site)).collect();
        for &(invocation, site) in &waiting {
            self.observer.arrive(invocation, site);
        }
        let number = subgroup.start / SUBGROUP_SIZE;
        let missing: Vec<_> =
            subgroup.filter(|local| !group.contains(local)).map(|local| self.invocation(local)).collect();
        if !missing.is_empty() {
            waiting.sort_unstable();
            let barrier = DivergentBarrier { execution: Scope::Subgroup, waiting: &waiting, missing: &missing };
            self.observer.divergent_barrier(barrier);
        }
        self.observer.release(self.workgroup, Scope::Subgroup, Some(number));
    }

    /// Tells of an access or atomic. `exchanged`: whether a compare-exchange wrote.
    pub(super) fn access(&mut self, local: u32, what: Observed, target: Target, exchanged: bool) {
        let by = self.invocation(local);
        let wrote = match what.kind {
            ObservedKind::Plain => return self.observer.access(by, what.site, target),
            ObservedKind::AtomicRead => false,
            ObservedKind::AtomicWrite => true,
            ObservedKind::CompareExchange => exchanged,
        };
        self.observer.atomic(by, what.site, target, wrote);
    }

    /// Tells of plain accesses of the active lanes, which are `offsets` bytes after `target`.
    pub(super) fn accesses(&mut self, (first, active): (u32, u16), site: Site, target: Target, offsets: &[u32; 16]) {
        self.observer.accesses(Lanes { workgroup: self.workgroup, first, active }, site, target, offsets);
    }

    /// Tells of the texels of an image, with its sampler, that an instruction accesses. `reference` is the image's
    /// number.
    pub(super) fn texels(
        &mut self,
        local: u32,
        site: Site,
        (op, image, sampler): (&ImageOp, &Descriptor, &Descriptor),
        args: &[u32],
        reference: u32,
    ) {
        let (by, bytes) = (self.invocation(local), image.view.format.bytes());
        image::texels(op, image, sampler, args, |offset| {
            if offset + u64::from(bytes) <= image.view.memory.len() {
                let address = (image.view.memory.address() as u64).wrapping_add(offset);
                self.observer.access(by, site, Target { memory: Memory::Device(address), bytes, reference });
            }
        });
    }
}

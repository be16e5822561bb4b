//! Atomics of the detector: what they acquire from the heads of their location, and which heads they leave there.

use super::attributes::MemoryOrder;
use super::cells::Cell;
use super::detector::Detector;
use super::heads::{self, Location};
use super::history::{Atomic, MemoryScope, Reference};
use super::observer::{Invocation, Memory, Target};
use super::page::PAGE_BYTES;

impl Detector {
    /// What an atomic read takes from the releases that it sees.
    pub(super) fn read_heads(&mut self, by: Invocation, target: Target, class: usize, order: MemoryOrder) {
        let attribute = self.attribute(target.reference, class, false);
        let reference = self.attributes[usize::from(attribute)].reference;
        let shared = matches!(target.memory, Memory::Workgroup(_));
        let locations = if shared { &self.shared_locations } else { &self.locations };
        let Some(location) = locations.get(target.memory) else { return };
        if !location.heads.is_empty() && self.mutual(location, reference, target.bytes, order, by.local) {
            for head in location.heads.clone() {
                self.workgroup.acquire(by.local, &head, order);
                if self.acquire_fences {
                    self.workgroup.read(by.local, class, &head);
                }
            }
        }
    }

    /// Whether an atomic access of the invocation is mutually ordered with the location's last write.
    fn mutual(&self, location: &Location, reference: Reference, bytes: u32, order: MemoryOrder, local: u32) -> bool {
        let own = self.workgroup.is_own(location.cell, local);
        let included = |scope| own || self.workgroup.includes(scope, location.cell, local);
        location.reference.is(reference)
            && u32::from(location.atomic.bytes) == bytes
            && included(location.atomic.scope)
            && included(order.scope)
    }

    /// What an atomic write leaves for those that will read it. `updates`: it also read.
    pub(super) fn write_heads(
        &mut self,
        by: Invocation,
        target: Target,
        class: usize,
        order: MemoryOrder,
        updates: bool,
    ) {
        let attribute = self.attribute(target.reference, class, false);
        let reference = self.attributes[usize::from(attribute)].reference;
        let (start, shared) = match target.memory {
            Memory::Device(address) => (address, false),
            Memory::Workgroup(offset) => (offset.into(), true),
        };
        // A new era forgets all heads, so the epoch comes first.
        let released = if order.releases.is_empty() { None } else { Some(self.tick()) };
        let before = if shared { &mut self.shared_locations } else { &mut self.locations }.take(target.memory);
        let continued =
            before.filter(|location| updates && self.mutual(location, reference, target.bytes, order, by.local));
        let mut list = continued.map(|location| location.heads).unwrap_or_default();
        list.retain(|head| head.reach.scope == MemoryScope::Device || head.reach.slot == self.workgroup.slot);
        for head in self.workgroup.carried(by.local, class) {
            heads::add(&mut list, &head, &mut self.workgroup.nodes);
        }
        if let Some(head) = released.and_then(|epoch| self.workgroup.head(by.local, order, epoch)) {
            heads::add(&mut list, &head, &mut self.workgroup.nodes);
        }
        let tracked = !list.is_empty() && {
            let shadow = if shared { &mut self.shared } else { &mut self.device };
            let word = |at: u64| (at / PAGE_BYTES, (at % PAGE_BYTES / 4) as u16);
            let last = start.saturating_add(u64::from(target.bytes)).saturating_sub(1);
            [word(start), word(last)]
                .into_iter()
                .all(|(number, word)| shadow.existing(number).is_some_and(|page| page.cells(word).0 == Cell::DETAILED))
        };
        let locations = if shared { &mut self.shared_locations } else { &mut self.locations };
        locations.cut(target.memory, target.bytes);
        // Without a record of the location a plain write to it would not be noticed.
        if tracked {
            let atomic = Atomic { scope: order.scope, start: 0, bytes: target.bytes.min(255) as u8 };
            let cell = self.workgroup.cell(by.local);
            locations.set(target.memory, Location { reference, atomic, cell, heads: list });
        }
    }
}

//! Heads: what a read of an atomic location acquires.
//!
//! A release that an atomic write performs or carries heads a release sequence; read-modify-writes continue it. Heads
//! of like scope are one head with both records: whatever acquires the one acquires the other.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::attributes::CLASSES;
use super::cells::{Cell, Slot};
use super::history::{Atomic, MemoryScope, Reference};
use super::known::{self, Record};
use super::nodes::NodeTable;
use super::observer::Memory;

/// Where a head can be acquired: by scopes that include its agent, in invocations that its scope includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// The scope of the release.
    pub(super) scope: MemoryScope,
    /// The workgroup of its agent, if the scope is no larger.
    pub(super) slot: Slot,
    /// The subgroup of its agent, if the scope is no larger.
    pub(super) subgroup: u32,
}

impl Reach {
    pub(super) fn new(scope: MemoryScope, slot: Slot, subgroup: u32) -> Self {
        Self {
            scope,
            slot: if scope <= MemoryScope::Workgroup { slot } else { 0 },
            subgroup: if scope <= MemoryScope::Subgroup { subgroup } else { 0 },
        }
    }

    /// Whether an acquire at `scope` in this subgroup of this workgroup synchronizes with every such head. A head at
    /// invocation scope is of no use.
    pub(super) fn includes(self, scope: MemoryScope, slot: Slot, subgroup: u32) -> bool {
        self.scope >= MemoryScope::Subgroup && self == Self::new(self.scope, slot, subgroup) && scope >= self.scope
    }
}

/// A release, or several of the same reach.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Where it can be acquired.
    pub(super) reach: Reach,
    /// What is acquired, by class.
    pub(super) known: [Record; CLASSES],
}

/// Adds a head to a list.
pub(super) fn add(list: &mut SmallVec<[Head; 1]>, head: &Head, nodes: &mut NodeTable) {
    match list.iter_mut().find(|other| other.reach == head.reach) {
        Some(other) => {
            other.known.iter_mut().zip(&head.known).for_each(|(mine, theirs)| known::join(mine, theirs, nodes));
        }
        None => list.push(head.clone()),
    }
}

/// The last write of an atomic location.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// Its reference.
    pub(super) reference: Reference,
    /// Its scope and size.
    pub(super) atomic: Atomic,
    /// Its agent.
    pub(super) cell: Cell,
    /// The heads of the release sequences that it belongs to.
    pub(super) heads: SmallVec<[Head; 1]>,
}

/// The atomic locations with heads, by their first byte.
#[derive(Debug, Default)]
pub(super) struct Locations {
    map: HashMap<Memory, Location, foldhash::fast::FixedState>,
}

/// Locations above which all are forgotten.
const MAX_LOCATIONS: usize = 1 << 20;

impl Locations {
    pub(super) fn get(&self, memory: Memory) -> Option<&Location> {
        self.map.get(&memory)
    }

    pub(super) fn set(&mut self, memory: Memory, location: Location) {
        if self.map.len() >= MAX_LOCATIONS {
            self.map.clear();
        }
        self.map.insert(memory, location);
    }

    /// Takes the location that begins at `memory` out.
    pub(super) fn take(&mut self, memory: Memory) -> Option<Location> {
        if self.map.is_empty() { None } else { self.map.remove(&memory) }
    }

    /// A write to `bytes` bytes at `memory` ends the release sequences there.
    pub(super) fn cut(&mut self, memory: Memory, bytes: u32) {
        if self.map.is_empty() {
            return;
        }
        // Atomics have 2, 4 or 8 bytes, at multiples of their size.
        let (start, place): (u64, fn(u64) -> Memory) = match memory {
            Memory::Device(address) => (address, Memory::Device),
            Memory::Workgroup(offset) => (offset.into(), |at| Memory::Workgroup(at as u32)),
        };
        let end = start + u64::from(bytes);
        for at in ((start & !1).saturating_sub(6)..end).step_by(2) {
            let memory = place(at);
            if self.map.get(&memory).is_some_and(|location| at + u64::from(location.atomic.bytes) > start) {
                self.map.remove(&memory);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.map.clear();
    }

    /// Bytes, about, without the nodes of records.
    pub(super) fn bytes(&self) -> u64 {
        192 * self.map.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_cuts_the_sequences_of_all_locations_that_it_touches() {
        let location = |bytes| Location {
            reference: Reference(0),
            atomic: Atomic { scope: MemoryScope::Device, start: 0, bytes },
            cell: Cell(4),
            heads: SmallVec::new(),
        };
        let mut locations = Locations::default();
        for (at, bytes) in [(0, 8), (8, 4), (12, 4), (16, 2), (18, 2)] {
            locations.set(Memory::Device(at), location(bytes));
        }
        locations.cut(Memory::Device(7), 2);
        let left = |locations: &Locations| {
            (0..20).filter(|&at| locations.get(Memory::Device(at)).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(left(&locations), [12, 16, 18]);
        locations.cut(Memory::Device(16), 1);
        assert_eq!(left(&locations), [12, 18]);
    }

    #[test]
    fn a_head_reaches_the_invocations_of_its_scope_only() {
        let reach = Reach::new(MemoryScope::Workgroup, 3, 1);
        assert!(reach.includes(MemoryScope::Device, 3, 2) && reach.includes(MemoryScope::Workgroup, 3, 2));
        assert!(!reach.includes(MemoryScope::Device, 4, 1) && !reach.includes(MemoryScope::Subgroup, 3, 1));
        assert!(Reach::new(MemoryScope::Device, 3, 1).includes(MemoryScope::Device, 9, 0));
        assert!(!Reach::new(MemoryScope::Invocation, 3, 1).includes(MemoryScope::Device, 3, 1));
    }
}

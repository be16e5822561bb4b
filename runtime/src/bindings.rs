//! The slots of a context, and its bind history: for each resource, the slots of each kind that it occupies.
//!
//! Replacing a resource's object visits only the slots of that resource, however many are bound. Each change of a slot
//! gets the next number; a caller that keeps the number of its last check finds the later changes, kind by kind.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::ids::{ResourceId, Slot, SlotKind};
use crate::object::ResourceObject;
use crate::resource::Resource;
use crate::slot_state::{Backed, SlotState};

/// The largest number of resources without slots whose history is kept.
const MAX_EMPTY: usize = 256;

/// The index of a slot in the table of its context; stable as long as the context lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotId(u32);

/// All slots of a context.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    ids: HashMap<Slot, SlotId, FixedState>,
    slots: Vec<SlotEntry>,
    /// Includes some resources that occupy no slot any more: a slot that alternates between resources soon has them
    /// again.
    history: HashMap<ResourceId, History, FixedState>,
    /// The number of resources in `history` without slots.
    empty: usize,
    now: u64,
    /// By kind, the number of the last change of such a slot.
    changed: [u64; SlotKind::COUNT],
}

#[derive(Debug)]
struct SlotEntry {
    slot: Slot,
    bound: Option<SlotState>,
    /// The number of its last change.
    changed: u64,
    /// Its index in its resource's history.
    place: usize,
}

/// By kind, the slots that a resource occupies.
type History = [SmallVec<[SlotId; 2]>; SlotKind::COUNT];

impl Bindings {
    /// The number of the last change.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The number of the last change of a slot of that kind.
    pub(crate) fn last_change(&self, kind: SlotKind) -> u64 {
        self.changed[kind as usize]
    }

    /// The slot's index in the table, assigned at the first request.
    pub(crate) fn id(&mut self, slot: Slot) -> SlotId {
        *self.ids.entry(slot).or_insert_with(|| {
            self.slots.push(SlotEntry { slot, bound: None, changed: 0, place: 0 });
            SlotId(self.slots.len() as u32 - 1)
        })
    }

    pub(crate) fn slot(&self, id: SlotId) -> Slot {
        self.slots[id.0 as usize].slot
    }

    pub(crate) fn slot_state(&self, id: SlotId) -> Option<&SlotState> {
        self.slots[id.0 as usize].bound.as_ref()
    }

    /// The number of the slot's last change.
    pub(crate) fn changed(&self, id: SlotId) -> u64 {
        self.slots[id.0 as usize].changed
    }

    /// The number of occupied slots.
    pub(crate) fn occupied(&self) -> usize {
        self.slots.iter().filter(|entry| entry.bound.is_some()).count()
    }

    /// The state of a slot by its number, which the table need not know.
    pub(crate) fn find(&self, slot: Slot) -> Option<&SlotState> {
        self.slot_state(*self.ids.get(&slot)?)
    }

    /// Sets or clears the state of a slot. Returns the old state, for the caller to drop when no lock is held.
    #[must_use = "dropped when no lock is held"]
    pub(crate) fn put(&mut self, id: SlotId, bound: Option<SlotState>) -> Option<SlotState> {
        self.now += 1;
        let old = self.slots[id.0 as usize].bound.take();
        if let Some(old) = &old {
            self.changed[old.kind as usize] = self.now;
            if let Some(resource) = &old.resource {
                self.forget(id, old.kind, resource.id());
            }
        }
        if let Some(new) = &bound {
            self.changed[new.kind as usize] = self.now;
            if let Some(resource) = &new.resource {
                self.note(id, new.kind, resource.id());
            }
        }
        let entry = &mut self.slots[id.0 as usize];
        (entry.bound, entry.changed) = (bound, self.now);
        old
    }

    /// Adds a slot to the history of its resource.
    fn note(&mut self, id: SlotId, kind: SlotKind, resource: ResourceId) {
        let history = match self.history.entry(resource) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                self.empty -= usize::from(known.iter().all(|slots| slots.is_empty()));
                known
            }
            Entry::Vacant(new) => new.insert(History::default()),
        };
        let slots = &mut history[kind as usize];
        self.slots[id.0 as usize].place = slots.len();
        slots.push(id);
    }

    /// Removes a slot from the history of its resource.
    fn forget(&mut self, id: SlotId, kind: SlotKind, resource: ResourceId) {
        let place = self.slots[id.0 as usize].place;
        let Some(history) = self.history.get_mut(&resource) else { return };
        let slots = &mut history[kind as usize];
        slots.swap_remove(place);
        if let Some(moved) = slots.get(place) {
            self.slots[moved.0 as usize].place = place;
        }
        self.empty += usize::from(history.iter().all(|slots| slots.is_empty()));
        if self.empty > MAX_EMPTY {
            self.history.retain(|_, history| history.iter().any(|slots| !slots.is_empty()));
            self.empty = 0;
        }
    }

    /// The slots of one kind that a resource occupies.
    pub(crate) fn slots_of(&self, resource: ResourceId, kind: SlotKind) -> &[SlotId] {
        self.history.get(&resource).map_or(&[], |history| &history[kind as usize])
    }

    /// The resource with that number, if it occupies a slot of this context.
    pub(crate) fn resource(&self, id: ResourceId) -> Option<&Arc<Resource>> {
        let slot = self.history.get(&id)?.iter().flatten().next()?;
        self.slot_state(*slot)?.resource.as_ref()
    }

    /// All resources in the history.
    pub(crate) fn resources(&self) -> Vec<ResourceId> {
        self.history.keys().copied().collect()
    }

    /// Makes the slot name another object, or none. Returns the object that it named, for the caller to drop.
    #[must_use = "dropped when no lock is held"]
    pub(crate) fn rename(&mut self, id: SlotId, backed: Option<Backed>) -> Option<Arc<ResourceObject>> {
        let entry = &mut self.slots[id.0 as usize];
        let bound = entry.bound.as_mut()?;
        self.now += 1;
        entry.changed = self.now;
        self.changed[bound.kind as usize] = self.now;
        let Some(Backed { object, part, ranges, view }) = backed else {
            bound.view = None;
            return bound.object.take();
        };
        (bound.part, bound.ranges, bound.view) = (part, ranges, view);
        bound.object.replace(object)
    }
}

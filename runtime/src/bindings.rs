//! The slots of a context, and its bind history: by resource, which slots of which kind it occupies.
//!
//! Replacing a resource's object visits the slots of that resource and no others, however many are bound. Each change of
//! a slot gets the next number; who remembers the number of his last look finds what changed since, kind by kind.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::object::ResourceObject;
use crate::resource::{Resource, ResourceId};
use crate::slot::{Slot, SlotKind};
use crate::slot_state::Bound;
use crate::view::View;

/// Resources without slots whose history is kept.
const MAX_EMPTY: usize = 256;

/// A slot, by its place in the table of its context: stable as long as the context lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotId(u32);

/// All slots of a context.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    ids: HashMap<Slot, SlotId, FixedState>,
    slots: Vec<Place>,
    /// Also of some resources that occupy none any more: in a slot that takes turns they are soon back.
    history: HashMap<ResourceId, History, FixedState>,
    /// How many of those there are.
    empty: usize,
    now: u64,
    /// By kind, the number of the last change of a slot of that kind.
    changed: [u64; SlotKind::COUNT],
}

#[derive(Debug)]
struct Place {
    slot: Slot,
    bound: Option<Bound>,
    /// The number of its last change.
    changed: u64,
    /// Where it is in its resource's history.
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

    /// The slot's place in the table, which it gets when it is first asked for.
    pub(crate) fn id(&mut self, slot: Slot) -> SlotId {
        *self.ids.entry(slot).or_insert_with(|| {
            self.slots.push(Place { slot, bound: None, changed: 0, place: 0 });
            SlotId(self.slots.len() as u32 - 1)
        })
    }

    pub(crate) fn slot(&self, id: SlotId) -> Slot {
        self.slots[id.0 as usize].slot
    }

    pub(crate) fn bound(&self, id: SlotId) -> Option<&Bound> {
        self.slots[id.0 as usize].bound.as_ref()
    }

    /// The number of the slot's last change.
    pub(crate) fn changed(&self, id: SlotId) -> u64 {
        self.slots[id.0 as usize].changed
    }

    /// How many slots are occupied.
    pub(crate) fn occupied(&self) -> usize {
        self.slots.iter().filter(|entry| entry.bound.is_some()).count()
    }

    /// Puts something into a slot, or nothing; what was there, for the caller to drop when no lock is held.
    #[must_use = "dropped when no lock is held"]
    pub(crate) fn put(&mut self, id: SlotId, bound: Option<Bound>) -> Option<Bound> {
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

    /// Writes a slot into the history of its resource.
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

    /// Takes a slot out of the history of its resource.
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

    /// The slots that a resource occupies, of one kind.
    pub(crate) fn slots_of(&self, resource: ResourceId, kind: SlotKind) -> &[SlotId] {
        self.history.get(&resource).map_or(&[], |history| &history[kind as usize])
    }

    /// A resource that occupies slots here.
    pub(crate) fn resource(&self, id: ResourceId) -> Option<&Arc<Resource>> {
        let slot = self.history.get(&id)?.iter().flatten().next()?;
        self.bound(*slot)?.resource.as_ref()
    }

    /// All resources that occupy slots here.
    pub(crate) fn resources(&self) -> Vec<ResourceId> {
        self.history.keys().copied().collect()
    }

    /// The slot names another object from now on, and shows it through that view; the object that it named, for the
    /// caller to drop.
    #[must_use = "dropped when no lock is held"]
    pub(crate) fn rename(
        &mut self,
        id: SlotId,
        object: Option<&Arc<ResourceObject>>,
        view: Option<View>,
    ) -> Option<Arc<ResourceObject>> {
        let entry = &mut self.slots[id.0 as usize];
        let bound = entry.bound.as_mut()?;
        self.now += 1;
        entry.changed = self.now;
        self.changed[bound.kind as usize] = self.now;
        bound.view = view;
        std::mem::replace(&mut bound.object, object.cloned())
    }
}

//! Contents of a descriptor set: for each descriptor a part of a resource, or a sampler, with the resource's current
//! object.
//!
//! A set names resources. When one gets another object, or loses it, the journal has the event; the set handles the
//! events that it missed when it is looked at. [`Names`] is a value: a dispatch that has looked keeps these names,
//! whatever another thread writes to the set meanwhile.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::ids::{ResourceId, Slot};
use crate::journal::News;
use crate::share::Share;
use crate::slot_state::{Backed, SlotState};

/// The descriptors of a set at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// The number of changes and events so far.
    now: u64,
    /// The value of `now` at the last change.
    last_change: u64,
    /// The number of descriptors that have changed so far.
    generation: u64,
    /// The number of the journal's last event that gave a descriptor another object.
    last_rebound: u64,
    /// The number of descriptors that were written so far.
    writes: u64,
    descriptors: Vec<Descriptor>,
}

#[derive(Clone, Debug, Default)]
struct Descriptor {
    /// `None` if it was never written.
    state: Option<Arc<SlotState>>,
    /// The value of `now` when it last changed.
    changed: u64,
    /// The value of `now` when it last changed, or its resource last forgot contents: a batch that writes there must
    /// note its use again.
    noted: u64,
    /// The number of the journal's last event that gave it another object.
    rebound: u64,
}

impl Names {
    /// The number of changes and events so far.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The value of [`Names::now`] at the last change of a descriptor.
    pub(crate) fn last_change(&self) -> u64 {
        self.last_change
    }

    /// The number of changes of descriptors: equal numbers, same descriptors.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of descriptors that were written: unlike the generation, renames do not count.
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    /// The state of a descriptor; `None` if it was never written.
    pub(crate) fn state(&self, place: u32) -> Option<&SlotState> {
        self.descriptors[place as usize].state.as_deref()
    }

    /// Whether a descriptor has changed since.
    pub(crate) fn changed_since(&self, place: u32, then: u64) -> bool {
        self.descriptors[place as usize].changed > then
    }

    /// The number of the journal's last event that gave a descriptor another object.
    pub(super) fn last_rebound(&self) -> u64 {
        self.last_rebound
    }

    /// Whether an event of the journal after number `then` gave a descriptor another object.
    pub(super) fn rebound_since(&self, place: u32, then: u64) -> bool {
        self.descriptors[place as usize].rebound > then
    }

    /// Whether a batch that noted its use of a descriptor then must note it again.
    pub(crate) fn noted_since(&self, place: u32, then: u64) -> bool {
        self.descriptors[place as usize].noted > then
    }
}

/// Names that follow the journal. The set's lock protects it.
#[derive(Debug)]
pub(crate) struct Tracked {
    /// Copied when it changes while a dispatch keeps it.
    names: Arc<Names>,
    /// The descriptors that name a resource.
    places: HashMap<ResourceId, SmallVec<[u32; 2]>, FixedState>,
    /// The number of the last event of the journal that was handled.
    seen: u64,
}

/// States that a set does not name any more, to be dropped when no lock is held.
pub(crate) type Replaced = SmallVec<[Arc<SlotState>; 1]>;

impl Tracked {
    /// `count` descriptors that are not written, after the first `seen` events of the journal.
    pub(crate) fn new(count: usize, seen: u64) -> Self {
        let descriptors = vec![Descriptor::default(); count];
        let names = Names { now: 0, last_change: 0, generation: 0, last_rebound: 0, writes: 0, descriptors };
        Self { names: Arc::new(names), places: HashMap::default(), seen }
    }

    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Sets a descriptor. `state` was made after the last [`Tracked::catch_up`], under the same lock: a later event of
    /// its resource is still to come. Returns the old state.
    #[must_use = "dropped when no lock is held"]
    pub(crate) fn put(&mut self, place: u32, state: SlotState) -> Option<Arc<SlotState>> {
        let names = Arc::make_mut(&mut self.names);
        (names.now, names.generation) = (names.now + 1, names.generation + 1);
        (names.last_change, names.writes) = (names.now, names.writes + 1);
        let descriptor = &mut names.descriptors[place as usize];
        (descriptor.changed, descriptor.noted) = (names.now, names.now);
        descriptor.rebound = 0;
        if let Some(old) = descriptor.state.as_ref().and_then(|old| old.resource.as_ref())
            && let Some(places) = self.places.get_mut(&old.id())
        {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.places.remove(&old.id());
            }
        }
        if let Some(resource) = &state.resource {
            self.places.entry(resource.id()).or_default().push(place);
        }
        descriptor.state.replace(Arc::new(state))
    }

    /// Handles the journal's new events: names the current objects of resources that have lost theirs. Returns the old
    /// states.
    #[must_use = "dropped when no lock is held"]
    pub(crate) fn catch_up(&mut self, share: &Share) -> Replaced {
        let mut replaced = Replaced::new();
        if share.journal().count() == self.seen {
            return replaced;
        }
        let before = self.seen;
        let (seen, news) = share.journal().since(before);
        self.seen = seen;
        // Each with the number of its resource's last event.
        let places: SmallVec<[(u32, u64); 8]> = match news {
            News::Events(events) => {
                let mut resources: SmallVec<[(ResourceId, u64); 8]> =
                    events.iter().map(|event| event.resource).zip(before + 1..).collect();
                resources.sort_unstable_by_key(|(id, number)| (*id, Reverse(*number)));
                resources.dedup_by_key(|(id, _)| *id);
                let of = |(id, number): &(ResourceId, u64)| Some((self.places.get(id)?, *number));
                let of = resources.iter().filter_map(of);
                of.flat_map(|(places, number)| places.iter().map(move |place| (*place, number))).collect()
            }
            News::TooMany => self.places.values().flatten().map(|place| (*place, seen)).collect(),
        };
        if !places.is_empty() {
            let names = Arc::make_mut(&mut self.names);
            names.now += 1;
            places.into_iter().for_each(|(place, event)| replaced.extend(names.renew(place, event, share)));
        }
        replaced
    }
}

impl Names {
    /// Notes the journal's event of a descriptor's resource with this number. Returns the old state if it named an
    /// object that was lost.
    fn renew(&mut self, place: u32, event: u64, share: &Share) -> Option<Arc<SlotState>> {
        let descriptor = &mut self.descriptors[place as usize];
        descriptor.noted = self.now;
        let old = descriptor.state.as_ref()?;
        let resource = old.resource.as_ref()?;
        let state = resource.state();
        let object = state.storage();
        if old.object.as_ref().map(|object| object.id()) == object.map(|object| object.id()) {
            return None;
        }
        // Without one the resource is destroyed, or too small now for what the set names: a dispatch reports that.
        let slot = Slot::from((0, 0)); // only for the error
        let backed = object.and_then(|object| old.backed_by(slot, resource, object).ok());
        drop(state);
        let mut new = SlotState::clone(old);
        match backed {
            Some(Backed { object, part, ranges, view }) => {
                (new.object, new.part, new.ranges, new.view) = (Some(object), part, ranges, view);
            }
            // It had none before.
            None if old.object.is_none() => return None,
            None => (new.object, new.view) = (None, None),
        }
        share.memory().counters.rebound(old.kind);
        (descriptor.changed, self.last_change, self.generation) = (self.now, self.now, self.generation + 1);
        (descriptor.rebound, self.last_rebound) = (event, self.last_rebound.max(event));
        descriptor.state.replace(Arc::new(new))
    }
}

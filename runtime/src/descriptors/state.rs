//! What a program finds in the slots of a context: checked and hashed once, then only where slots have changed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::{CachedSet, Descriptor, Key, SetCache};
use crate::barrier::Use;
use crate::bindings::{Bindings, Bound, SlotId};
use crate::error::{Error, rule};
use crate::program::{Program, SetLayout};
use crate::serial::{Access, Serial};
use crate::share::Share;
use crate::slot::{Slot, SlotKind};

/// Programs remembered in a context.
const MOST_PROGRAMS: usize = 256;

/// What programs found when they were last dispatched from the slots of a context.
#[derive(Debug, Default)]
pub(crate) struct ProgramStates {
    states: HashMap<u64, ProgramState, FixedState>,
}

impl ProgramStates {
    /// The state of a program; made when it is first asked for.
    pub(crate) fn of(&mut self, program: &Program, bindings: &mut Bindings, sets: &mut SetCache) -> &mut ProgramState {
        if self.states.len() >= MOST_PROGRAMS && !self.states.contains_key(&program.id()) {
            self.states.clear();
        }
        self.states.entry(program.id()).or_insert_with(|| ProgramState::new(program, bindings, sets))
    }
}

/// What one program finds bound.
#[derive(Debug)]
pub(crate) struct ProgramState {
    /// The number of the last change of a slot that was looked at; none if none was yet.
    seen: Option<u64>,
    /// A number for what is bound, another after each change.
    pub(crate) number: u64,
    /// The batch that owns all of it.
    entered: Serial,
    /// Whether the program writes anything: two dispatches in a row need a barrier.
    pub(crate) writes: bool,
    groups: Vec<Group>,
    /// By kind, the descriptors of that kind.
    places: [Vec<Place>; SlotKind::COUNT],
    uses: Vec<(SlotId, Access)>,
}

/// A descriptor of a program and the slot that it is taken from.
#[derive(Clone, Copy, Debug)]
struct Place {
    group: usize,
    /// Its position among the set's descriptors.
    at: usize,
    slot: SlotId,
}

/// The state of one set.
#[derive(Debug)]
struct Group {
    layout: usize,
    slots: Vec<SlotId>,
    keys: Vec<Key>,
    hash: u64,
    set: Weak<CachedSet>,
    set_number: Option<u64>,
}

impl Group {
    fn put(&mut self, at: usize, key: Key) {
        self.hash = self.hash.wrapping_sub(self.keys[at].hash(at)).wrapping_add(key.hash(at));
        self.keys[at] = key;
        self.set_number = None;
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl ProgramState {
    fn new(program: &Program, bindings: &mut Bindings, sets: &mut SetCache) -> Self {
        let mut state = Self {
            seen: None,
            number: next_number(),
            entered: 0,
            writes: false,
            groups: Vec::new(),
            places: Default::default(),
            uses: Vec::new(),
        };
        for (group, layout) in program.sets().iter().enumerate() {
            let mut ids = Vec::new();
            for info in &layout.bindings {
                state.writes |= info.access().writes();
                for slot in info.slots() {
                    let slot = bindings.id(slot);
                    state.places[info.slot_kind() as usize].push(Place { group, at: ids.len(), slot });
                    state.uses.push((slot, info.access()));
                    ids.push(slot);
                }
            }
            let keys = vec![Key::default(); ids.len()];
            let hash = keys.iter().enumerate().fold(0u64, |sum, (at, key)| sum.wrapping_add(key.hash(at)));
            let layout = sets.layout(&layout.layout);
            state.groups.push(Group { layout, slots: ids, keys, hash, set: Weak::new(), set_number: None });
        }
        state
    }

    /// Whether nothing has changed since the batch `serial` took note of all of it.
    pub(crate) fn is_current(&self, bindings: &Bindings, serial: Serial) -> bool {
        self.entered == serial && self.seen == Some(bindings.now())
    }

    /// The batch owns all of it.
    pub(crate) fn entered(&mut self, serial: Serial) {
        self.entered = serial;
    }

    /// Looks at the slots that changed; an error leaves them to be looked at again.
    pub(crate) fn look(&mut self, program: &Program, bindings: &Bindings, share: &Share) -> Result<(), Error> {
        // Slots that were never filled have not changed: the first time all are looked at.
        let is_news = |change: u64| self.seen.is_none_or(|seen| change > seen);
        for kind in SlotKind::ALL {
            if !is_news(bindings.last_change(kind)) {
                continue;
            }
            for place in &self.places[kind as usize] {
                if is_news(bindings.changed(place.slot)) {
                    let bound = bindings.bound(place.slot);
                    let key = checked(program, bindings.slot(place.slot), kind, bound)?.key();
                    let group = &mut self.groups[place.group];
                    if group.keys[place.at] != key {
                        group.put(place.at, key);
                        self.number = next_number();
                    }
                    self.entered = 0;
                }
            }
        }
        if share.has_mappings() {
            let slots = self.uses.iter().map(|(id, _)| *id);
            slots.clone().try_for_each(|id| check_mapped(bindings.slot(id), bindings.bound(id)))?;
        }
        self.seen = Some(bindings.now());
        Ok(())
    }

    /// What the dispatch uses. All slots are filled, by [`ProgramState::look`].
    pub(crate) fn uses<'a>(&'a self, bindings: &'a Bindings) -> impl Iterator<Item = Use<'a>> + Clone {
        self.uses.iter().filter_map(|(slot, access)| {
            let bound = bindings.bound(*slot)?;
            let (object, range) = (bound.object.as_ref()?, bound.range.clone());
            Some(Use { object, range, access: *access })
        })
    }

    /// The number of the set of a group, if it is known; one that the program does not use has none.
    pub(crate) fn set_number(&self, group: usize) -> Option<u64> {
        self.groups[group].set_number
    }

    /// Whether the program takes anything from the group.
    pub(crate) fn uses_group(&self, group: usize) -> bool {
        !self.groups[group].slots.is_empty()
    }

    /// The descriptor set of a group.
    pub(crate) fn set(
        &mut self,
        (group, layout): (usize, &SetLayout),
        bindings: &Bindings,
        sets: &mut SetCache,
        share: &Share,
    ) -> Result<Arc<CachedSet>, Error> {
        let group = &mut self.groups[group];
        if group.set_number.is_some()
            && let Some(set) = group.set.upgrade()
        {
            return Ok(set);
        }
        let descriptors = group.slots.iter().filter_map(|slot| descriptor(bindings.bound(*slot)?));
        let (state, counters) = ((&*group.keys, group.hash), &share.memory().counters);
        let set = sets.set(share.device(), (group.layout, layout), state, descriptors, counters)?;
        (group.set, group.set_number) = (Arc::downgrade(&set), Some(set.number));
        Ok(set)
    }
}

fn descriptor(bound: &Bound) -> Option<Descriptor<'_>> {
    Some(Descriptor { object: bound.object.as_ref()?, range: &bound.range })
}

/// What is in a slot, if it is what the program takes there.
fn checked<'a>(
    program: &Program,
    slot: Slot,
    kind: SlotKind,
    bound: Option<&'a Bound>,
) -> Result<Descriptor<'a>, Error> {
    let Some(bound) = bound else {
        return Err(Error::slot(Slot { element: 0, ..slot }, missing(slot)));
    };
    if bound.kind != kind {
        let (what, is) = (bound.resource.described(), bound.kind);
        let problem = format!("{what} is bound as a {is}, {:?} takes a {kind}", program.entry());
        return Err(Error::slot_rule(slot, problem, rule::KIND));
    }
    descriptor(bound)
        .ok_or_else(|| Error::slot_rule(slot, format!("{} is destroyed", bound.resource.described()), rule::DESTROYED))
}

/// Nothing is bound there.
pub(crate) fn missing(slot: Slot) -> String {
    match slot.element {
        0 => "no buffer is bound to it".to_owned(),
        element => format!("no buffer is bound to its element {element}"),
    }
}

/// Commands do not use what the host has mapped.
pub(crate) fn check_mapped(slot: Slot, bound: Option<&Bound>) -> Result<(), Error> {
    let Some(bound) = bound else { return Ok(()) };
    if bound.resource.state().maps.forbid_commands() {
        return Err(Error::slot_rule(slot, format!("{} is mapped", bound.resource.described()), rule::MAPPED));
    }
    Ok(())
}

/// The set of a group whose descriptors are given one by one, for one dispatch.
pub(crate) fn resolve(
    layout: &SetLayout,
    descriptors: &[(&Arc<crate::object::ResourceObject>, Range<u64>)],
    sets: &mut SetCache,
    share: &Share,
) -> Result<Arc<CachedSet>, Error> {
    let descriptors = descriptors.iter().map(|(object, range)| Descriptor { object, range });
    let keys: SmallVec<[Key; 8]> = descriptors.clone().map(|descriptor| descriptor.key()).collect();
    let hash = keys.iter().enumerate().fold(0u64, |sum, (at, key)| sum.wrapping_add(key.hash(at)));
    let number = sets.layout(&layout.layout);
    sets.set(share.device(), (number, layout), (&keys, hash), descriptors, &share.memory().counters)
}

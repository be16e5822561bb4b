//! The state of a program's descriptors in the slots of a context. It is checked and hashed once; after that, only
//! slots that have changed are looked at.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::cache::{CachedSet, SetCache};
use super::key::DescriptorKey;
use crate::barrier::{Touch, Use};
use crate::bindings::{Bindings, SlotId};
use crate::error::{Error, rule};
use crate::ids::{Access, Serial, Slot, SlotKind};
use crate::mappings::UseOrigin;
use crate::program::{Declared, Program, SetLayout};
use crate::share::Share;
use crate::slot_state::SlotState;
use crate::view::Part;

/// The largest number of programs whose state a context keeps.
const MAX_PROGRAMS: usize = 256;

/// The states of programs at their last dispatches from the slots of a context.
#[derive(Debug, Default)]
pub(crate) struct ProgramStates {
    states: HashMap<u64, ProgramState, FixedState>,
}

impl ProgramStates {
    /// The state of a program, created at the first request.
    pub(crate) fn of(&mut self, program: &Program, bindings: &mut Bindings, sets: &mut SetCache) -> &mut ProgramState {
        if self.states.len() >= MAX_PROGRAMS && !self.states.contains_key(&program.id()) {
            self.states.clear();
        }
        self.states.entry(program.id()).or_insert_with(|| ProgramState::new(program, |_| true, bindings, sets))
    }
}

/// The state of a program's descriptors.
#[derive(Debug)]
pub(crate) struct ProgramState {
    /// The number of the last change of a slot that was looked at; `None` before the first look.
    seen: Option<u64>,
    /// The number of this state, unique; a change of a descriptor gives it another one.
    pub(crate) number: u64,
    /// The batch that owns all objects, except those in `fresh`.
    entered: Serial,
    /// The uses that have changed since.
    fresh: SmallVec<[(SlotId, Access); 4]>,
    /// Whether the program writes anything: then two consecutive dispatches need a barrier.
    pub(crate) writes: bool,
    groups: Vec<DescriptorSetState>,
    /// By kind, the descriptors of that kind.
    descriptors: [Vec<DescriptorSlot>; SlotKind::COUNT],
    uses: Vec<(SlotId, Access)>,
    /// The accesses of a dispatch to the objects in the slots.
    touches: Vec<Touch>,
    /// Whether `touches` has exactly one access for each of `uses`.
    one_each: bool,
}

/// A descriptor of a program, and its slot.
#[derive(Clone, Copy, Debug)]
struct DescriptorSlot {
    group: usize,
    /// Its position among the set's descriptors.
    at: usize,
    /// Its position among all of the program's.
    number: usize,
    slot: SlotId,
    info: Declared,
}

/// The state of one set.
#[derive(Debug)]
struct DescriptorSetState {
    layout: usize,
    slots: Vec<SlotId>,
    keys: Vec<DescriptorKey>,
    hash: u64,
    set: Weak<CachedSet>,
    set_number: Option<u64>,
}

impl DescriptorSetState {
    fn put(&mut self, at: usize, key: DescriptorKey) {
        self.hash = self.hash.wrapping_sub(self.keys[at].hash(at)).wrapping_add(key.hash(at));
        self.keys[at] = key;
        self.set_number = None;
    }
}

/// A number for the state of a program's descriptors, unique.
pub(crate) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: numbers only have to differ.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl ProgramState {
    /// The state of the groups that take their descriptors from slots: those for which `has_slots` is true.
    pub(crate) fn new(
        program: &Program,
        has_slots: impl Fn(usize) -> bool,
        bindings: &mut Bindings,
        sets: &mut SetCache,
    ) -> Self {
        let mut state = Self {
            seen: None,
            number: next_number(),
            entered: 0,
            fresh: SmallVec::new(),
            writes: false,
            groups: Vec::new(),
            descriptors: Default::default(),
            uses: Vec::new(),
            touches: Vec::new(),
            one_each: false,
        };
        for (group, layout) in program.sets().iter().enumerate() {
            let mut ids = Vec::new();
            for info in layout.bindings.iter().filter(|_| has_slots(group)) {
                state.writes |= info.access().writes();
                for slot in info.slots() {
                    let slot = bindings.id(slot);
                    state.descriptors[info.slot_kind() as usize].push(DescriptorSlot {
                        group,
                        at: ids.len(),
                        number: state.uses.len(),
                        slot,
                        info: *info,
                    });
                    state.uses.push((slot, info.access()));
                    ids.push(slot);
                }
            }
            let keys = vec![DescriptorKey::default(); ids.len()];
            let hash = keys.iter().enumerate().fold(0u64, |sum, (at, key)| sum.wrapping_add(key.hash(at)));
            let layout = sets.layout(&layout.layout);
            state.groups.push(DescriptorSetState {
                layout,
                slots: ids,
                keys,
                hash,
                set: Weak::new(),
                set_number: None,
            });
        }
        state
    }

    /// Whether nothing has changed since the batch `serial` entered all uses.
    pub(crate) fn is_current(&self, bindings: &Bindings, serial: Serial) -> bool {
        self.entered == serial && self.fresh.is_empty() && self.seen == Some(bindings.now())
    }

    /// The uses that the batch `serial` must enter.
    pub(crate) fn new_uses<'a>(&self, bindings: &'a Bindings, serial: Serial) -> impl Iterator<Item = Use<'a>> + Clone {
        let slots = if self.entered == serial { &self.fresh[..] } else { &self.uses[..] };
        slots.iter().filter_map(|(slot, access)| Some((bindings.slot_state(*slot)?, *access))).flat_map(used)
    }

    /// Notes that the batch has entered all uses.
    pub(crate) fn entered(&mut self, serial: Serial) {
        self.entered = serial;
        self.fresh.clear();
    }

    /// Checks the slots that have changed since the last call and updates keys and accesses. After an error they are
    /// checked again by the next call.
    pub(crate) fn update(&mut self, program: &Program, bindings: &Bindings, share: &Share) -> Result<(), Error> {
        // A slot that was never bound has no change, so the first call checks all slots. If each descriptor has exactly
        // one range, as most do, changed accesses are replaced in place; otherwise the list is built again.
        let mut in_place = self.one_each;
        let known = self.fresh.len();
        let is_news = |change: u64| self.seen.is_none_or(|seen| change > seen);
        for kind in SlotKind::ALL {
            if !is_news(bindings.last_change(kind)) {
                continue;
            }
            for descriptor in &self.descriptors[kind as usize] {
                if is_news(bindings.changed(descriptor.slot)) {
                    let bound = bindings.slot_state(descriptor.slot);
                    if bound.is_none()
                        && let Some(error) = self.first_missing(program, bindings)
                    {
                        return Err(error);
                    }
                    let key =
                        DescriptorKey::of(checked(program, bindings.slot(descriptor.slot), descriptor.info, bound)?);
                    let group = &mut self.groups[descriptor.group];
                    if group.keys[descriptor.at] != key {
                        group.put(descriptor.at, key);
                        self.number = next_number();
                    }
                    let access = descriptor.info.access();
                    match bound.as_ref().map(|bound| (&bound.object, &*bound.ranges)) {
                        Some((Some(object), [range])) if in_place => {
                            self.touches[descriptor.number] =
                                Touch { object: object.id(), range: range.clone(), access };
                        }
                        _ => in_place = false,
                    }
                    self.fresh.push((descriptor.slot, access));
                }
            }
        }
        if share.has_mappings() {
            let slots = self.uses.iter().map(|(id, _)| *id);
            slots.clone().try_for_each(|id| check_mapped(bindings.slot(id), bindings.slot_state(id)))?;
        }
        self.seen = Some(bindings.now());
        if !in_place && self.fresh.len() > known {
            self.touches.clear();
            self.one_each = true;
            for (slot, access) in &self.uses {
                let Some(bound) = bindings.slot_state(*slot) else { continue };
                let touches = bound.object.iter().flat_map(|object| {
                    let touch =
                        |range: &Range<u64>| Touch { object: object.id(), range: range.clone(), access: *access };
                    bound.ranges.iter().map(touch)
                });
                let before = self.touches.len();
                self.touches.extend(touches);
                self.one_each &= self.touches.len() == before + 1;
            }
        }
        Ok(())
    }

    /// The error for the first of the program's slots that is empty, if any.
    fn first_missing(&self, program: &Program, bindings: &Bindings) -> Option<Error> {
        let groups = program.sets().iter().enumerate().filter(|(group, _)| self.uses_group(*group));
        let taken = groups.flat_map(|(_, set)| &set.bindings);
        let slots = taken.flat_map(|info| info.slots().map(move |slot| (slot, *info)));
        let empty = slots.zip(&self.uses).find(|(_, (id, _))| bindings.slot_state(*id).is_none());
        empty.map(|((slot, info), _)| missing(slot, info))
    }

    /// The accesses of a dispatch, as of the last [`ProgramState::update`].
    pub(crate) fn touches(&self) -> impl Iterator<Item = Touch> + Clone {
        self.touches.iter().cloned()
    }

    /// The number of the current set of a group; `None` if it was not looked up yet, or the program does not use the
    /// group.
    pub(crate) fn set_number(&self, group: usize) -> Option<u64> {
        self.groups[group].set_number
    }

    /// Whether the program has bindings in the group, and takes them from slots.
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
        let descriptors = group.slots.iter().filter_map(|slot| bindings.slot_state(*slot));
        let (state, counters) = ((&*group.keys, group.hash), &share.memory().counters);
        let set = sets.set(share.device(), (group.layout, layout), state, descriptors, counters)?;
        (group.set, group.set_number) = (Arc::downgrade(&set), Some(set.number));
        Ok(set)
    }
}

/// A command's uses of the state of a slot.
pub(crate) fn used((bound, access): (&SlotState, Access)) -> impl Iterator<Item = Use<'_>> + Clone {
    let resource = bound.resource.as_deref();
    let one = move |object, range: &Range<u64>| {
        let (range, origin) = (range.clone(), UseOrigin::Command);
        Use { object, resource, range, access, origin }
    };
    let ranges = move |object| bound.ranges.iter().map(move |range| one(object, range));
    bound.object.as_ref().into_iter().flat_map(ranges)
}

/// The state of a slot, if the program accepts it.
pub(crate) fn checked<'a>(
    program: &Program,
    slot: Slot,
    info: Declared,
    bound: Option<&'a SlotState>,
) -> Result<&'a SlotState, Error> {
    let Some(bound) = bound else { return Err(missing(slot, info)) };
    if bound.kind != info.slot_kind() || !info.takes(bound) {
        return Err(wrong_kind(slot, info, program, &bound.described(), bound.kind));
    }
    if bound.resource.is_some() && bound.object.is_none() {
        return Err(bound.no_object(slot));
    }
    info.check(slot, bound)?;
    if let (Some(contents), Part::Bytes(range)) = (bound.contents, &bound.part) {
        program.check_contents(slot, contents, range, || bound.described())?;
    }
    Ok(bound)
}

/// The error for a resource of another kind than the program declares.
pub(crate) fn wrong_kind(
    slot: Slot,
    info: Declared,
    program: &Program,
    what: &str,
    kind: impl std::fmt::Display,
) -> Error {
    let problem = format!("{what} is bound as a {kind}, {program} takes a {}", info.takes_name());
    Error::slot_rule(slot, problem, rule::KIND)
}

/// The error for an empty slot.
fn missing(slot: Slot, info: Declared) -> Error {
    let what = if info.takes_buffer() { "buffer" } else { info.takes_name() };
    let problem = match slot.element {
        0 => format!("no {what} is bound to it ({})", rule::BOUND),
        element => format!("no {what} is bound to its element {element} ({})", rule::BOUND),
    };
    Error::slot(Slot { element: 0, ..slot }, problem)
}

/// Checks that the resource in a slot is not mapped, except persistently.
pub(crate) fn check_mapped(slot: Slot, bound: Option<&SlotState>) -> Result<(), Error> {
    let Some(resource) = bound.and_then(|bound| bound.resource.as_ref()) else { return Ok(()) };
    if resource.state().mappings.forbid_commands() {
        return Err(Error::slot_rule(slot, format!("{} is mapped", resource.described()), rule::MAPPED));
    }
    Ok(())
}

/// The set of a group for the states of its descriptors, in the layout's order.
pub(crate) fn resolve(
    layout: &SetLayout,
    bound: &[SlotState],
    sets: &mut SetCache,
    share: &Share,
) -> Result<Arc<CachedSet>, Error> {
    let keys: SmallVec<[DescriptorKey; 8]> = bound.iter().map(DescriptorKey::of).collect();
    let hash = keys.iter().enumerate().fold(0u64, |sum, (at, key)| sum.wrapping_add(key.hash(at)));
    let number = sets.layout(&layout.layout);
    sets.set(share.device(), (number, layout), (&keys, hash), bound.iter(), &share.memory().counters)
}

//! The state of a program's descriptors in a context where some of its groups take them from sets.
//!
//! It is checked once; after that, only descriptors that have changed are looked at. It owns no object: the sets name
//! them, and batches own what they use.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::groups::OfProgram;
use super::names::{Names, Replaced};
use super::{SetInner, Wanted};
use crate::barrier::{Fresh, Touch, Use};
use crate::batch::{Batch, NotedUses, Refusal};
use crate::bindings::Bindings;
use crate::descriptors::{ProgramState, SetCache, check_mapped, checked, next_number, used};
use crate::error::Error;
use crate::events::EventLog;
use crate::ids::{Serial, Slot};
use crate::program::{Declared, Program, SetLayout};
use crate::share::Share;
use crate::submission::Clock;

/// The largest number of states that a context keeps.
const MAX_STATES: usize = 256;

/// A program, and for each of its groups the set, or 0.
type Key = (u64, SmallVec<[u64; 4]>);

/// The states of programs with their sets, at their last dispatches in a context.
#[derive(Debug, Default)]
pub(crate) struct SetStates {
    states: HashMap<Key, SetState, FixedState>,
}

impl SetStates {
    /// The state of a program with these sets, created at the first request. [`Error::Binding`] if a set lacks a
    /// descriptor of its group.
    pub(crate) fn of(
        &mut self,
        program: &Program,
        sets: &OfProgram<'_>,
        bindings: &mut Bindings,
        cache: &mut SetCache,
    ) -> Result<&mut SetState, Error> {
        let key = (program.id(), sets.iter().map(|set| set.map_or(0, |set| set.inner().id().0)).collect());
        if !self.states.contains_key(&key) {
            if self.states.len() >= MAX_STATES {
                self.states.clear();
            }
            self.states.insert(key.clone(), SetState::new(program, sets, bindings, cache)?);
        }
        // It has just been found or inserted.
        self.states.get_mut(&key).ok_or_else(|| Error::OutOfMemory(String::new()))
    }
}

/// The names that a dispatch has found in its sets. The caller drops it when no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    names: SmallVec<[Arc<Names>; 2]>,
    replaced: Replaced,
    /// Those of earlier attempts to record the dispatch.
    earlier: SmallVec<[Arc<Names>; 2]>,
}

impl Looked {
    /// Forgets the names that were found before, but keeps them.
    pub(crate) fn restart(&mut self) {
        self.earlier.append(&mut self.names);
    }

    /// What a set names now.
    pub(crate) fn at(&mut self, set: &SetInner) -> Arc<Names> {
        let (names, mut replaced) = set.look();
        self.replaced.append(&mut replaced);
        self.names.push(Arc::clone(&names));
        names
    }
}

/// The state of a program with its sets.
#[derive(Debug)]
pub(crate) struct SetState {
    /// The number of this state, unique; a change of a descriptor gives it another one.
    number: u64,
    /// Whether the program writes anything: then two consecutive dispatches need a barrier.
    pub(crate) writes: bool,
    /// The groups that have no set, and the number of their state at the last look.
    slots: ProgramState,
    slots_number: u64,
    groups: Vec<GroupState>,
    /// The number of the journal's last event at the last look.
    seen: u64,
    /// The batch that has entered all uses, except those that the groups have noted since.
    entered: Serial,
    /// The accesses of a dispatch to the objects that the sets name.
    touches: Vec<Touch>,
}

/// A group that takes its descriptors from a set.
#[derive(Debug)]
struct GroupState {
    group: u32,
    descriptors: Vec<(Declared, Slot)>,
    places: Box<[u32]>,
    /// [`Names::now`] at the last look, whose names the program accepts; `None` before the first.
    seen: Option<u64>,
    /// The same when the batch last entered the group's uses.
    entered: Option<u64>,
    /// [`Names::last_change`] of the names whose accesses are in the list.
    listed: Option<u64>,
}

/// A driver set to be bound: its group, and its number.
pub(crate) type ResolvedGroup = (u32, spelter_driver::DescriptorSet, u64);

impl GroupState {
    fn new(program: &Program, group: u32, set: &SetInner, layout: &SetLayout) -> Result<Self, Error> {
        let places = set.places(program, group, layout)?;
        let slots = layout.bindings.iter().flat_map(|info| info.slots().map(move |slot| (*info, slot)));
        Ok(Self { group, descriptors: slots.collect(), places, seen: None, entered: None, listed: None })
    }

    /// The descriptors, each with its place in the set.
    fn iter(&self) -> impl Iterator<Item = (&(Declared, Slot), u32)> + Clone {
        self.descriptors.iter().zip(self.places.iter().copied())
    }

    /// Checks the descriptors that have changed since the last look.
    fn check(&mut self, program: &Program, set: &SetInner, names: &Names, share: &Share) -> Result<(), Error> {
        for ((info, slot), place) in self.iter() {
            let state = names.state(place);
            if self.seen.is_none_or(|seen| names.changed_since(place, seen)) {
                checked(program, *slot, *info, state).map_err(|error| set.named(error))?;
            }
            if share.has_mappings() {
                check_mapped(*slot, state).map_err(|error| set.named(error))?;
            }
        }
        self.seen = Some(names.now());
        Ok(())
    }
}

impl SetState {
    fn new(
        program: &Program,
        sets: &OfProgram<'_>,
        bindings: &mut Bindings,
        cache: &mut SetCache,
    ) -> Result<Self, Error> {
        let groups = (0u32..).zip(program.sets()).zip(sets);
        let groups = groups.filter_map(|((group, layout), set)| Some((group, layout, set.as_ref()?)));
        let groups = groups.map(|(group, layout, set)| GroupState::new(program, group, set.inner(), layout));
        Ok(Self {
            number: next_number(),
            writes: program.declared().iter().any(|info| info.access().writes()),
            slots: ProgramState::new(program, |group| sets[group].is_none(), bindings, cache),
            slots_number: 0,
            groups: groups.collect::<Result<_, _>>()?,
            seen: 0,
            entered: 0,
            touches: Vec::new(),
        })
    }

    /// The number of the state, if nothing has changed since the batch `serial` entered all uses: no slot, no set, and
    /// no object.
    pub(crate) fn current(
        &self,
        sets: &OfProgram<'_>,
        bindings: &Bindings,
        serial: Serial,
        share: &Share,
    ) -> Option<u64> {
        let is_same =
            |group: &GroupState| sets[group.group as usize].is_some_and(|set| group.entered == Some(set.inner().now()));
        let is_current = self.entered == serial
            && self.seen == share.journal().count()
            && self.slots.is_current(bindings, serial)
            && self.groups.iter().all(is_same);
        is_current.then_some(self.number)
    }

    /// Looks at sets and slots, checks what has changed, and updates the accesses. After an error it is checked again
    /// by the next call.
    pub(crate) fn update(
        &mut self,
        program: &Program,
        sets: &OfProgram<'_>,
        bindings: &Bindings,
        (share, log): (&Share, &EventLog),
        looked: &mut Looked,
    ) -> Result<(), Error> {
        looked.restart();
        // Before the checks: an event that comes while they run makes the next call check again.
        let seen = share.journal().count();
        self.slots.update(program, bindings, share)?;
        let mut is_listed = true;
        for group in &mut self.groups {
            let Some(set) = sets[group.group as usize] else { continue };
            let names = looked.at(set.inner());
            set.inner().note_rebound(&names, log);
            group.check(program, set.inner(), &names, share)?;
            is_listed &= group.listed == Some(names.last_change());
        }
        if !is_listed {
            self.touches.clear();
            for (group, names) in self.groups.iter_mut().zip(&looked.names) {
                let states = group.iter().filter_map(|((info, _), place)| Some((names.state(place)?, info.access())));
                self.touches.extend(states.flat_map(used).map(Use::touch));
                group.listed = Some(names.last_change());
            }
        }
        // A batch that noted the old number skips the test of these accesses; a new number makes it test them.
        if !is_listed || self.slots.number != self.slots_number {
            (self.number, self.slots_number) = (next_number(), self.slots.number);
        }
        self.seen = seen;
        Ok(())
    }

    /// The driver sets of the groups with sets, each with its group and number. The batch uses them from now on.
    pub(crate) fn resolve(
        &self,
        program: &Program,
        sets: &OfProgram<'_>,
        looked: &Looked,
        batch: (&Arc<Clock>, Serial),
        log: &EventLog,
    ) -> Result<SmallVec<[ResolvedGroup; 2]>, Refusal> {
        let mut resolved = SmallVec::new();
        for (group, names) in self.groups.iter().zip(&looked.names) {
            let Some(set) = sets[group.group as usize] else { continue };
            let wanted = Wanted { layout: &program.sets()[group.group as usize], places: &group.places };
            let (driver_set, number) = set.inner().resolve(names, wanted, batch, log)?;
            resolved.push((group.group, driver_set, number));
        }
        Ok(resolved)
    }

    /// Notes that the batch uses the objects of sets and slots, as far as it has not entered them.
    pub(crate) fn enter<'a>(
        &self,
        batch: &mut Batch,
        clock: &Arc<Clock>,
        bindings: &'a Bindings,
        looked: &'a Looked,
    ) -> Result<(NotedUses<'a>, Fresh), Refusal> {
        let serial = batch.serial();
        let mut uses = SmallVec::<[Use<'a>; 8]>::new();
        // By use, its place among the accesses.
        let mut touches = SmallVec::<[usize; 8]>::new();
        let mut at = 0;
        for (group, names) in self.groups.iter().zip(&looked.names) {
            for ((info, _), place) in group.iter() {
                let is_new = self.entered != serial || group.entered.is_none_or(|then| names.noted_since(place, then));
                for one in names.state(place).map(|state| (state, info.access())).into_iter().flat_map(used) {
                    if is_new {
                        uses.push(one);
                        touches.push(at);
                    }
                    at += 1;
                }
            }
        }
        let entries = batch.enter(clock, uses.iter().cloned().chain(self.slots.new_uses(bindings, serial)))?;
        let mut fresh = Fresh::default();
        let is_fresh = |(number, _): &(usize, &usize)| entries.fresh.has(*number);
        touches.iter().enumerate().filter(is_fresh).for_each(|(_, at)| fresh.note(*at));
        Ok((entries, fresh))
    }

    /// Notes that the batch has entered all uses.
    pub(crate) fn entered(&mut self, serial: Serial, looked: &Looked) {
        self.entered = serial;
        self.slots.entered(serial);
        for (group, names) in self.groups.iter_mut().zip(&looked.names) {
            group.entered = Some(names.now());
        }
    }

    /// The accesses of a dispatch: those of the sets first, as [`SetState::enter`] counts them.
    pub(crate) fn touches(&self) -> impl Iterator<Item = Touch> + Clone {
        self.touches.iter().cloned().chain(self.slots.touches())
    }

    /// The state of the groups without sets.
    pub(crate) fn slots(&mut self) -> &mut ProgramState {
        &mut self.slots
    }

    /// The number of the state, for repetitions.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

//! The shared part of a set's handles: what it names, and its driver sets, under one lock.
//!
//! Two steps make a dispatch's view of a set: [`SetInner::look`] gives the names, and [`SetInner::resolve`] the driver
//! set that holds them. A command that is recorded again calls both again.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use spelter_locks::Mutex;

use super::driver_sets::{DriverSets, Wanted};
use super::names::{Names, Replaced, Tracked};
use crate::batch::Refusal;
use crate::bind::Bind;
use crate::error::{Error, rule};
use crate::events::{Event, EventLog};
use crate::ids::{ResourceId, Serial, SetId, Slot};
use crate::named_by::NamedBy;
use crate::program::{Declared, Program, SetLayout};
use crate::share::{Holder, Share};
use crate::slot_state::SlotState;
use crate::submission::Clock;

/// The shared part of a set's handles.
pub(crate) struct SetInner {
    /// Unique.
    id: SetId,
    share: Arc<Share>,
    pub(super) label: Option<Box<str>>,
    /// By binding, each with the place of its element 0.
    pub(super) layout: Vec<(Declared, u32)>,
    pub(super) updatable: bool,
    /// [`Names::now`], for contexts that do not lock the set.
    now: AtomicU64,
    /// Locked after a context's state, before any resource; a thread never locks two sets.
    state: Mutex<SetContents>,
}

#[derive(Debug)]
struct SetContents {
    tracked: Tracked,
    driver: DriverSets,
}

/// A descriptor to be written: binding, element, contents.
pub(super) type Write = (u32, u32, Bind);

impl SetInner {
    pub(super) fn new(
        share: &Arc<Share>,
        label: Option<Box<str>>,
        layout: Vec<Declared>,
        updatable: bool,
    ) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut count = 0;
        let first = |info: Declared| {
            let first = count;
            count += info.count;
            (info, first)
        };
        let layout = layout.into_iter().map(first).collect();
        let tracked = Tracked::new(count as usize, share.journal().count());
        let state = Mutex::new(SetContents { tracked, driver: DriverSets::default() });
        // Relaxed: numbers only have to differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = SetId(number);
        let inner =
            Arc::new(Self { id, share: Arc::clone(share), label, layout, updatable, now: AtomicU64::new(0), state });
        let holder: Weak<Self> = Arc::downgrade(&inner);
        share.register_set(number, holder);
        inner
    }

    /// Its unique number.
    pub(crate) fn id(&self) -> SetId {
        self.id
    }

    /// [`Names::now`] when the set was last written, or looked at after an event.
    pub(crate) fn now(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`; a thread that finds the old number runs before the change.
        self.now.load(Ordering::Acquire)
    }

    /// Publishes a change of the names. The caller holds the lock.
    fn publish(&self, names: &Names) {
        // Release: pairs with the Acquire in `now`.
        self.now.store(names.now(), Ordering::Release);
    }

    pub(crate) fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.share, share)
    }

    /// "descriptor set `label`", or "a descriptor set".
    pub(crate) fn described(&self) -> String {
        described(self.label.as_deref())
    }

    /// The same error, with the set before the problem.
    pub(crate) fn named(&self, error: Error) -> Error {
        match error {
            Error::Binding { group, binding, name, problem } => {
                Error::Binding { group, binding, name, problem: format!("{}: {problem}", self.described()) }
            }
            error => error,
        }
    }

    /// The number of descriptors that were written so far.
    pub(crate) fn writes(&self) -> u64 {
        self.state.lock().tracked.names().writes()
    }

    /// What the set names now, and states that it does not name any more, to be dropped when no lock is held.
    pub(crate) fn look(&self) -> (Arc<Names>, Replaced) {
        let mut state = self.state.lock();
        let replaced = state.tracked.catch_up(&self.share);
        let names = state.tracked.names();
        self.publish(names);
        (Arc::clone(names), replaced)
    }

    /// The driver set with these names for a group of a program, with its number, for a command of the open batch
    /// `serial`. If another thread has changed the set since it was looked at, the caller looks again.
    pub(crate) fn resolve(
        &self,
        names: &Names,
        wanted: Wanted<'_>,
        batch: (&Arc<Clock>, Serial),
        log: &EventLog,
    ) -> Result<(spelter_driver::DescriptorSet, u64), Refusal> {
        let mut state = self.state.lock();
        let SetContents { tracked, driver } = &mut *state;
        if tracked.names().last_change() != names.last_change() {
            return Err(Refusal::Again);
        }
        let (taken, written) = driver.take(&self.share, names, wanted, batch).map_err(|error| self.named(error))?;
        if let Some(in_place) = written {
            log.note(|| Event::SetWritten { set: self.id, in_place });
        }
        Ok(taken)
    }

    /// Notes each descriptor that names another object than when the log's context last looked.
    pub(crate) fn note_rebound(&self, names: &Names, log: &EventLog) {
        let Some(since) = log.seen_of_set(self.id, names.last_rebound()) else { return };
        for (info, first) in &self.layout {
            for element in (0..info.count).filter(|element| names.rebound_since(first + element, since)) {
                let Some(state) = names.state(first + element) else { continue };
                let Some(resource) = &state.resource else { continue };
                log.note(|| Event::SetRebound {
                    set: self.id,
                    binding: info.binding,
                    element,
                    kind: state.kind,
                    resource: resource.id(),
                    object: state.object.as_ref().map(|object| object.id()),
                });
            }
        }
    }

    /// For each descriptor of a program's group, its place in the set. [`Error::Binding`] if the set lacks one.
    pub(crate) fn places(&self, program: &Program, group: u32, layout: &SetLayout) -> Result<Box<[u32]>, Error> {
        let mut places = Vec::new();
        for info in &layout.bindings {
            let slot = Slot::from((group, info.binding));
            let wrong =
                |problem| Err(Error::slot(slot, format!("{}{problem} ({})", self.described(), rule::SET_LAYOUT)));
            let Some((own, first)) = self.layout.iter().find(|(own, _)| own.binding == info.binding) else {
                let list: Vec<_> = self.layout.iter().map(|(own, _)| own.binding.to_string()).collect();
                return wrong(format!(" has no such binding; it has {}", list.join(", ")));
            };
            let takes = || format!("{program} takes");
            if own.kind != info.kind {
                return wrong(format!(" has a {} there, {} a {}", own.takes_name(), takes(), info.takes_name()));
            }
            if own.count < info.count {
                return wrong(format!(" has {} elements there, {} {}", own.count, takes(), info.count));
            }
            places.extend((0..info.count).map(|element| first + element));
        }
        Ok(places.into_boxed_slice())
    }

    /// Writes all of these descriptors, or none.
    pub(super) fn put(&self, writes: Vec<Write>) -> Result<(), Error> {
        let mut old = Replaced::new();
        let mut state = self.state.lock();
        let tracked = &mut state.tracked;
        old.extend(tracked.catch_up(&self.share));
        // Made under the lock, so that events of their resources from now on are still to come.
        let made = writes.iter().map(|write| self.made(tracked.names(), write)).collect::<Result<Vec<_>, _>>();
        let put = |made: Vec<_>| {
            let made = made.into_iter().flatten();
            made.for_each(|(place, new)| old.extend(tracked.put(place, new)));
        };
        let result = made.map(put);
        self.publish(state.tracked.names());
        drop(state);
        drop((old, writes)); // when no lock is held
        result
    }

    /// The new state of a descriptor, with its place; `None` if it has that state.
    fn made(&self, names: &Names, (binding, element, what): &Write) -> Result<Option<(u32, SlotState)>, Error> {
        let Some((info, first)) = self.layout.iter().find(|(info, _)| info.binding == *binding) else {
            let list: Vec<_> = self.layout.iter().map(|(info, _)| info.binding.to_string()).collect();
            let problem = format!("{}: its layout has no such binding; it has {}", what.described(), list.join(", "));
            return Err(self.broken(*binding, problem, rule::SET_DECLARED));
        };
        if *element >= info.count {
            let count = info.count;
            let problem = format!("{}: it has {count} elements, there is no element {element}", what.described());
            return Err(self.broken(*binding, problem, rule::SET_DECLARED));
        }
        let place = first + element;
        let is_current =
            |state: &SlotState| state.binds_alike(what) && (state.resource.is_none() || state.object.is_some());
        if names.state(place).is_some_and(is_current) {
            return Ok(None);
        }
        let slot = Slot { group: 0, binding: *binding, element: *element };
        let state = SlotState::new(&self.share, slot, what).map_err(|error| self.refused(error))?;
        if state.kind != info.slot_kind() || !info.takes(&state) {
            let (what, kind, takes) = (what.described(), state.kind, info.takes_name());
            let problem = format!("{what} is bound as a {kind}, the set takes a {takes}");
            return Err(self.broken(*binding, problem, rule::SET_KIND));
        }
        info.check(slot, &state).map_err(|error| self.refused(error))?;
        Ok(Some((place, state)))
    }

    /// The descriptors that were written, by binding and element.
    pub(crate) fn descriptors<'a>(&'a self, names: &'a Names) -> impl Iterator<Item = (u32, u32, &'a SlotState)> {
        let places = self.layout.iter().flat_map(|(info, first)| (0..info.count).map(move |at| (info, at, first + at)));
        places.filter_map(|(info, element, place)| Some((info.binding, element, names.state(place)?)))
    }

    /// The first descriptor that was never written, as binding and element.
    pub(super) fn first_missing(&self) -> Option<(&Declared, u32)> {
        let state = self.state.lock();
        let all = self.layout.iter().flat_map(|(info, first)| (0..info.count).map(move |at| (info, at, first + at)));
        let mut missing = all.filter(|(.., place)| state.tracked.names().state(*place).is_none());
        missing.next().map(|(info, element, _)| (info, element))
    }

    /// A binding of the set breaks a rule.
    pub(super) fn broken(&self, binding: u32, problem: impl fmt::Display, rule: &str) -> Error {
        Error::Set(format!("{}, binding {binding}: {problem} (rule: {rule})", self.described()))
    }

    /// The error for a slot as one of this set.
    fn refused(&self, error: Error) -> Error {
        match error {
            Error::Binding { binding, problem, .. } => {
                Error::Set(format!("{}, binding {binding}: {problem}", self.described()))
            }
            error => error,
        }
    }
}

pub(super) fn described(label: Option<&str>) -> String {
    label.map_or_else(|| "a descriptor set".to_owned(), |label| format!("descriptor set `{label}`"))
}

impl Holder for SetInner {
    fn drop_lost(&self) {
        let Some(mut state) = self.state.try_lock() else { return };
        let replaced = state.tracked.catch_up(&self.share);
        let SetContents { tracked, driver } = &mut *state;
        driver.drop_older(tracked.names(), &self.share);
        self.publish(tracked.names());
        drop(state);
        drop(replaced); // when no lock is held
    }

    fn named_by(&self, resource: ResourceId) -> Vec<NamedBy> {
        let (names, _replaced) = self.look();
        let is_it = |state: &SlotState| state.resource.as_ref().is_some_and(|own| own.id() == resource);
        let all = self.descriptors(&names).filter(|(.., state)| is_it(state));
        let named = all.map(|(binding, element, _)| NamedBy::Set {
            set: self.id,
            label: self.label.as_deref().map(str::to_owned),
            binding,
            element,
        });
        named.collect()
    }
}

impl Drop for SetInner {
    fn drop(&mut self) {
        self.share.forget_set(self.id.0);
    }
}

impl fmt::Debug for SetInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described())
    }
}

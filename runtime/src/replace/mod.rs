//! Renaming and invalidation: the only module that changes a resource's storage.
//!
//! The rules are zink's. A resource without valid data needs nothing. An idle resource forgets its contents and keeps
//! its object. A resource in use gets a new object like the old one: all its slots are rebound and cached descriptor
//! sets that name the old object are dropped. The old object lives until the last batch that uses it has retired; then
//! its storage is spare.

mod backing;
#[cfg(all(test, loom))]
mod loom_commands;
#[cfg(all(test, loom))]
mod loom_tests;
mod part;
mod respecify;

pub(crate) use backing::{Added, Backing, CommandUse, Fate, Refusal, WriterId};
pub(crate) use part::invalidate_part;
pub(crate) use respecify::respecify;

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use spelter_driver::ImageInfo;

use crate::context_state::ContextState;
use crate::error::Error;
use crate::events::{Event, EventLog};
use crate::ids::{Access, ObjectId, ResourceId, SlotKind};
use crate::journal::{self, Journal, News};
use crate::memory::Template;
use crate::object::{InitialContents, ResourceObject};
use crate::outcome::Action;
use crate::recordings::LostRecording;
use crate::resource::{Resource, ResourceState};
use crate::serial::Object;
use crate::share::Share;
use crate::valid::Valid;
use crate::view;

/// The result of an invalidation.
#[derive(Debug)]
#[must_use = "the old object is dropped when no lock is held"]
pub(crate) enum Invalidated {
    /// The resource, or the part of it, holds no defined data. If the object was in use and was replaced, this holds
    /// the old one.
    Done(Action, Garbage),
    /// The object is in use and was not replaced. Nothing has changed.
    Kept(KeptReason),
}

/// The reason why an object in use was not replaced.
#[derive(Clone, Debug)]
pub(crate) enum KeptReason {
    /// The host has it mapped.
    Mapped,
    /// There is no memory for another object: the caller waits for this one
    /// ([`ContextInner::wait_without_memory`](crate::context::ContextInner)), when no lock is held.
    Memory(Arc<ResourceObject>),
    /// Replaced objects take too much memory: the caller makes room first
    /// ([`ContextInner::room_for`](crate::context::ContextInner)), when no lock is held.
    Room,
}

/// Whether a rename tests if the replaced object fits into the budget of pending memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// If there is no room, nothing is done.
    Wanted,
    /// The caller has waited for room. Others may have taken it since, but no rename waits twice.
    Made,
    /// There was no memory, and the caller has waited for the object. If it is in use again it stays, and its contents
    /// are forgotten in order.
    Never,
}

/// Handles to be dropped when no lock is held: dropping the last one frees memory.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    _objects: Vec<Arc<ResourceObject>>,
    _recordings: Vec<LostRecording>,
}

/// Invalidates a resource. The slots of `state`'s context name the new object at once, those of other contexts at their
/// next dispatch.
///
/// `inner` is the locked state of the resource, so the condition for which it may be replaced still holds. A caller
/// that gives the resource new contents reserves the bytes before it unlocks, so that no thread finds the resource
/// empty between the old and the new contents.
pub(crate) fn invalidate(
    share: &Share,
    state: &mut ContextState,
    (resource, inner): (&Resource, &mut ResourceState),
    room: Room,
) -> Result<Invalidated, Error> {
    let counters = &share.memory().counters;
    let old = Arc::clone(inner.object(resource, "invalidate")?);
    match inner.fate() {
        Fate::Nothing => {
            counters.invalidations_empty.one();
            return Ok(Invalidated::Done(Action::NothingValid, Garbage::default()));
        }
        Fate::Mapped => {
            counters.invalidations_refused.one();
            return Ok(Invalidated::Kept(KeptReason::Mapped));
        }
        Fate::Idle => {
            forget(share, resource, inner, resource.whole())?;
            counters.invalidations_idle.one();
            state.log.note(|| Event::Forgotten { resource: resource.id(), in_order: false });
            return Ok(Invalidated::Done(Action::Forgotten, Garbage::default()));
        }
        Fate::InUse if room == Room::Never => {
            forget_in_use(share, (resource, inner), &[resource.whole()], &state.log);
            return Ok(Invalidated::Done(Action::ForgottenInOrder, Garbage::default()));
        }
        Fate::InUse => {}
    }
    // Batches that have retired meanwhile release storage for the new object.
    state.timeline.retire();
    match another(share, (resource, &old), room)? {
        Ok(new) => {
            share.memory().counters.renames.one();
            let (action, garbage) = swap(share, state, (resource, inner), (new, Valid::new()));
            Ok(Invalidated::Done(action, garbage))
        }
        Err(reason) => Ok(Invalidated::Kept(reason)),
    }
}

/// A new object like the resource's current one, or the reason why there is none: no memory, or too much pending
/// memory.
fn another(
    share: &Share,
    (resource, old): (&Resource, &Arc<ResourceObject>),
    room: Room,
) -> Result<Result<Arc<ResourceObject>, KeptReason>, Error> {
    let memory = share.memory();
    if room == Room::Wanted && !memory.has_room(resource.size()) {
        return Ok(Err(KeptReason::Room));
    }
    let (template, spares) = (resource.template(), resource.spares());
    let make = || ResourceObject::new(memory, Some(resource.id()), &template, InitialContents::Undefined, &spares);
    let made = match make() {
        Err(Error::OutOfMemory(_)) => {
            // Free the spare storage of all resources, and try again.
            memory.spare.free();
            make()
        }
        made => made,
    };
    match made {
        Ok(new) => Ok(Ok(Arc::new(new))),
        Err(Error::OutOfMemory(_)) => Ok(Err(KeptReason::Memory(Arc::clone(old)))),
        Err(error) => Err(error),
    }
}

/// Gives a locked resource another object with the given valid ranges, and rebinds the slots that name the old one.
fn swap(
    share: &Share,
    state: &mut ContextState,
    (resource, inner): (&Resource, &mut ResourceState),
    (new, valid): (Arc<ResourceObject>, Valid),
) -> (Action, Garbage) {
    let (spares, new_id) = (resource.spares(), new.id());
    let old = exchange((resource.id(), inner), (new, valid), share.journal(), &mut state.journal_seen);
    old.iter().for_each(|old| old.recycle_into(&spares));
    state.trace_instant(|| format!("rename {}", resource.described()));
    let action = Action::Replaced { old: old.as_ref().map_or(new_id, |old| old.id()), new: new_id };
    (action, replaced(share, state, (resource, inner), old))
}

/// The resource has lost its object `old`: rebinds the slots that name it, and drops the descriptor sets and recorded
/// commands that do.
fn replaced(
    share: &Share,
    state: &mut ContextState,
    (resource, inner): (&Resource, &mut ResourceState),
    old: Option<Arc<ResourceObject>>,
) -> Garbage {
    // The open batch may keep the old object alive: a batch that keeps much memory is submitted early.
    if let (Some(batch), Some(old)) = (state.timeline.open(), &old) {
        batch.retain_bytes(old.size());
    }
    if let (Some(old), Some(new)) = (&old, inner.storage()) {
        state.log.note(|| Event::Replaced { resource: resource.id(), old: old.id(), new: new.id() });
    }
    let mut garbage = rebind(share, state, (resource, &mut *inner));
    old.iter().for_each(|old| drop_sets(share, state, old.id()));
    if let Some(old) = old.as_ref().filter(|_| inner.recorded) {
        garbage._recordings = share.recordings().lose(old.id());
    }
    garbage._objects.extend(old);
    garbage
}

/// Drops the cached descriptor sets that name a lost object.
fn drop_sets(share: &Share, state: &mut ContextState, object: ObjectId) {
    let before = state.sets.len();
    state.sets.drop_object(object, &share.memory().counters);
    let sets = (before - state.sets.len()) as u64;
    if sets > 0 {
        state.log.note(|| Event::SetsDropped { object, sets });
    }
}

/// Gives a locked resource another object and notes the event in the journal: a thread that finds the new object finds
/// the event. `seen` is the number of events that the caller's context has handled, including this one on return.
fn exchange<O: Object>(
    (resource, backing): (ResourceId, &mut Backing<O>),
    (new, valid): (Arc<O>, Valid),
    journal: &Journal,
    seen: &mut u64,
) -> Option<Arc<O>> {
    let old = backing.swap(new, valid);
    if backing.bound {
        let number = journal.note(journal::ResourceChange { resource, lost: old.as_ref().map(|old| old.id()) });
        if *seen + 1 == number {
            *seen = number;
        }
    }
    old
}

/// Forgets the contents of a range of an idle resource. Ranges that are bound where kernels can write become valid
/// again at the next dispatch, when its context reads the event in the journal.
///
/// With poisoning the bytes are overwritten.
pub(crate) fn forget(
    share: &Share,
    resource: &Resource,
    state: &mut ResourceState,
    range: Range<u64>,
) -> Result<(), Error> {
    if !state.valid().intersects(&range) {
        return Ok(());
    }
    // A host read in progress gets the old contents, so they are not overwritten.
    let poisons = share.memory().poison && !state.is_copied(&range, Access::Write);
    if let Some(object) = state.storage().filter(|_| poisons) {
        match resource.template() {
            Template::Buffer(_) => object.storage().poison_range(range.clone())?,
            Template::Image(info) => range.clone().try_for_each(|number| poison(object, &info, number))?,
        }
    }
    state.forget(range);
    notify(share, resource, state);
    Ok(())
}

/// Forgets the contents of ranges of a resource in use; later writes there come after the current users.
fn forget_in_use(
    share: &Share,
    (resource, state): (&Resource, &mut ResourceState),
    part: &[Range<u64>],
    log: &EventLog,
) {
    log.note(|| Event::Forgotten { resource: resource.id(), in_order: true });
    part.iter().for_each(|range| state.forget_in_use(range.clone()));
    share.memory().counters.invalidations_in_order.one();
    notify(share, resource, state);
}

/// Makes contexts check their slots again.
fn notify(share: &Share, resource: &Resource, state: &ResourceState) {
    if state.bound {
        share.journal().note(journal::ResourceChange { resource: resource.id(), lost: None });
    }
}

/// Overwrites a level of a layer of an image.
fn poison(object: &ResourceObject, info: &ImageInfo, number: u64) -> Result<(), Error> {
    let (vk::ImageSubresourceLayers { mip_level, base_array_layer, .. }, _) = view::subresource(info, number);
    let vk::SubresourceLayout { offset, size, .. } = object.image()?.subresource_layout(mip_level, base_array_layer);
    object.storage().poison_range(offset..offset + size)
}

/// Rebinds the slots that a locked resource occupies in this context to its current object.
#[must_use = "dropped when no lock is held"]
fn rebind(share: &Share, state: &mut ContextState, (resource, inner): (&Resource, &mut ResourceState)) -> Garbage {
    let object = inner.storage().cloned();
    let mut garbage = Garbage::default();
    for kind in SlotKind::ALL {
        for at in 0..state.bindings.slots_of(resource.id(), kind).len() {
            let id = state.bindings.slots_of(resource.id(), kind)[at];
            let Some(bound) = state.bindings.slot_state(id) else { continue };
            if bound.object.as_ref().map(|object| object.id()) == object.as_ref().map(|object| object.id()) {
                if kind.can_write() && object.is_some() {
                    // The kernel may write there, so the range counts as valid.
                    bound.ranges.iter().for_each(|range| inner.add(range.clone()));
                }
                continue;
            }
            share.memory().counters.rebound(kind);
            // Without one the resource is destroyed, or too small now for what is bound: a dispatch reports that.
            let slot = state.bindings.slot(id);
            let backed = object.as_ref().and_then(|object| bound.backed_by(slot, resource, object).ok());
            if let Some(backed) = backed.as_ref().filter(|_| kind.can_write()) {
                backed.ranges.iter().for_each(|range| inner.add(range.clone()));
            }
            let event = (resource.id(), backed.as_ref().map(|backed| backed.object.id()));
            garbage._objects.extend(state.bindings.rename(id, backed));
            state.log.note(|| Event::Rebound { slot, kind, resource: event.0, object: event.1 });
        }
    }
    garbage
}

/// Handles the journal's new events: changes of resources by other contexts.
#[must_use = "dropped when no lock is held"]
pub(crate) fn catch_up(share: &Share, state: &mut ContextState) -> Option<Garbage> {
    if share.journal().count() == state.journal_seen {
        return None;
    }
    // The number is read with the events. What comes after it is found by the next command.
    let (seen, news) = share.journal().since(state.journal_seen);
    state.journal_seen = seen;
    let resources: Vec<ResourceId> = match news {
        News::Events(events) => {
            for lost in events.iter().filter_map(|event| event.lost) {
                drop_sets(share, state, lost);
            }
            let mut resources: Vec<_> = events.into_iter().map(|event| event.resource).collect();
            resources.sort_unstable();
            resources.dedup();
            resources
        }
        // Some events were dropped: any cached set may name a lost object, and any slot may hold a changed resource.
        News::TooMany => {
            state.sets.clear(&share.memory().counters);
            state.bindings.resources()
        }
    };
    let mut garbage = Garbage::default();
    for id in resources {
        if let Some(resource) = state.bindings.resource(id).cloned() {
            let mut rebound = rebind(share, state, (&resource, &mut resource.state()));
            garbage._objects.append(&mut rebound._objects);
        }
    }
    Some(garbage)
}

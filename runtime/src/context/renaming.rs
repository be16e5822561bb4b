//! The attempts of a rename, which host writes, mappings and invalidations have in common: each call releases its locks
//! before it waits for memory or drops the old object, then locks again, and either tries again or uses the object that
//! stays.

use std::sync::Arc;

use spelter_locks::MutexGuard;

use super::ContextInner;
use crate::context_state::ContextState;
use crate::error::Error;
use crate::object::ResourceObject;
use crate::outcome::{Action, Outcome, Waits};
use crate::replace::{self, Invalidated, KeptReason, Room};
use crate::resource::{Resource, ResourceState};

/// A call that renames a resource if it can.
pub(crate) struct Renaming<'a> {
    context: &'a ContextInner,
    resource: &'a Resource,
    /// Whether the call discards the contents, also those that it does not overwrite.
    discards: bool,
    /// Whether the next attempt tests if the replaced object fits into the budget of pending memory.
    room: Room,
    /// Whether another attempt may follow.
    pub(crate) may_rename: bool,
    /// Whether the call found the object in use.
    pub(crate) busy: bool,
    /// Why the call waited.
    pub(crate) waits: Waits,
}

/// The result of an attempt. No lock is held any more.
#[must_use]
pub(crate) enum Attempt<T> {
    /// The resource is invalidated, and has what the caller claimed in the same step.
    Claimed(Action, T),
    /// The call waited for memory, or others use the object again: the caller looks at the resource again.
    Again,
    /// The host has the resource mapped: it keeps its object and its contents.
    Kept,
}

/// A context and a resource, locked in this order.
type Locked<'l> = (MutexGuard<'l, ContextState>, MutexGuard<'l, ResourceState>);

impl<'a> Renaming<'a> {
    pub(crate) fn new(context: &'a ContextInner, resource: &'a Resource, discards: bool) -> Self {
        let (room, waits) = (Room::Wanted, Waits::empty());
        Self { context, resource, discards, room, may_rename: true, busy: false, waits }
    }

    /// Invalidates the resource. If no batch uses its object then, `claim` notes the caller's access in the same step:
    /// a thread that looks from now on finds that access.
    pub(crate) fn attempt<T>(
        &mut self,
        (mut state, mut inner): Locked<'_>,
        claim: impl FnOnce(Arc<ResourceObject>, &mut ResourceState) -> T,
    ) -> Result<Attempt<T>, Error> {
        let share = &self.context.share;
        let invalidated = replace::invalidate(share, &mut state, (self.resource, &mut inner), self.room)?;
        let claimed = match &invalidated {
            Invalidated::Done(..) => idle_object(&inner).map(|object| claim(object, &mut inner)),
            Invalidated::Kept(_) => None,
        };
        drop((inner, state));
        self.settle(invalidated, claimed)
    }

    /// Tries until the resource is invalidated or mapped. `invalidate` takes the locks that it needs; it may wait, and
    /// then adds the reasons.
    pub(super) fn run(
        mut self,
        mut invalidate: impl FnMut(Room, &mut Waits) -> Result<Invalidated, Error>,
    ) -> Result<Outcome, Error> {
        let action = loop {
            let invalidated = invalidate(self.room, &mut self.waits)?;
            match self.settle(invalidated, Some(()))? {
                Attempt::Claimed(action, ()) => break action,
                Attempt::Again => {}
                Attempt::Kept => break Action::Refused,
            }
        };
        Ok(self.finish(action))
    }

    /// Drops the old object, or waits for memory if that is why there is no new one. The caller holds no lock.
    fn settle<T>(&mut self, invalidated: Invalidated, claimed: Option<T>) -> Result<Attempt<T>, Error> {
        match invalidated {
            Invalidated::Done(action, garbage) => {
                drop(garbage);
                if let Some(claimed) = claimed {
                    return Ok(Attempt::Claimed(action, claimed));
                }
                // Other contexts use it again. Slots that kernels can write through make it valid at once, so it is not
                // discarded again.
                self.may_rename = false;
            }
            Invalidated::Kept(KeptReason::Room) => {
                let waited = self.context.room_for(self.resource, self.resource.size())?;
                self.waits.note(Waits::BUDGET, waited);
                self.room = Room::Made;
            }
            Invalidated::Kept(KeptReason::Memory(object)) => {
                let waited = self.context.wait_without_memory((self.resource, &object))?;
                self.waits.note(Waits::NO_MEMORY, waited);
                // The object stays, and discarded contents are forgotten in place. If other contexts use it again,
                // later writes are ordered after those uses. A call that discards nothing uses the object as it is.
                (self.may_rename, self.room) = (self.discards, Room::Never);
            }
            Invalidated::Kept(KeptReason::Mapped) => {
                self.may_rename = false;
                return Ok(Attempt::Kept);
            }
        }
        Ok(Attempt::Again)
    }

    /// The result of the call, which is counted: also as a stall if it waited, or as one that was avoided if it found
    /// the object in use and did not wait.
    pub(crate) fn finish(self, action: Action) -> Outcome {
        let counters = &self.context.share.memory().counters;
        match (self.busy, self.waits.stalls()) {
            (_, true) => counters.stalls_taken.one(),
            (true, false) => counters.stalls_avoided.one(),
            (false, false) => {}
        }
        self.context.outcome(self.resource, action, self.waits)
    }
}

/// The object of a resource, if no unfinished batch uses it.
fn idle_object(state: &ResourceState) -> Option<Arc<ResourceObject>> {
    if state.is_busy() { None } else { state.storage().cloned() }
}

//! The shared part of a context's handles: its locked state, and the loop that records commands and waits for what they
//! depend on.

use std::sync::{Arc, Weak};
use std::time::Instant;

use spelter_locks::{Mutex, MutexGuard};

use crate::batch::Refusal;
use crate::context_state::ContextState;
use crate::error::Error;
use crate::events::{Event, EventLog};
use crate::ids::{Access, ContextId, ResourceId, Serial};
use crate::object::ResourceObject;
use crate::outcome::{Action, Outcome, OutcomeCounts, Waits};
use crate::replace;
use crate::resource::Resource;
use crate::share::{Member, Share};
use crate::stats::Counters;
use crate::submission::{Clock, MustPrecede, Submission, TimelinePoint};
use crate::trace::About;

/// The shared part of a context's handles.
pub(crate) struct ContextInner {
    pub(crate) share: Arc<Share>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) log: Arc<EventLog>,
    /// The results of calls.
    pub(crate) outcomes: OutcomeCounts,
    /// Locked before any resource.
    state: Mutex<ContextState>,
}

impl ContextInner {
    /// A context on a device, registered with the device.
    pub(super) fn new(share: &Arc<Share>) -> Arc<Self> {
        let (clock, queue) = share.clock();
        let id = clock.id();
        let log = Arc::new(EventLog::new(ContextId(id)));
        let state = Mutex::new(ContextState::new(share, queue, &clock, &log));
        let outcomes = OutcomeCounts::default();
        let inner = Arc::new(Self { share: Arc::clone(share), clock, log, outcomes, state });
        let member: Weak<Self> = Arc::downgrade(&inner);
        share.register(id, member);
        inner
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ContextState> {
        self.state.lock()
    }

    /// What `ask` finds in the context's state after that has caught up with the changes of other contexts, as before a
    /// dispatch.
    pub(crate) fn with_current_state<T>(&self, ask: impl FnOnce(&ContextState) -> T) -> T {
        let mut state = self.state.lock();
        let garbage = replace::catch_up(&self.share, &mut state);
        let found = ask(&state);
        drop(state);
        drop(garbage); // when no lock is held
        found
    }

    /// Records commands, after the batches of other contexts and the host copies that must come first. `record` may be
    /// called several times; only its last call records.
    pub(crate) fn record<T>(&self, record: impl FnMut(&mut ContextState) -> Result<T, Refusal>) -> Result<T, Error> {
        self.record_noting(&mut Waits::empty(), record)
    }

    /// Like [`ContextInner::record`]; adds the reasons of waits to `waits`.
    pub(crate) fn record_noting<T>(
        &self,
        waits: &mut Waits,
        mut record: impl FnMut(&mut ContextState) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        loop {
            let mut state = self.state.lock();
            if let Some(serial) = state.timeline.too_far_ahead() {
                drop(state);
                *waits |= Waits::BATCHES;
                self.throttle(serial)?;
                continue;
            }
            let garbage = replace::catch_up(&self.share, &mut state);
            let result = record(&mut state);
            drop(state);
            drop(garbage);
            match result {
                Ok(value) => return Ok(value),
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::MustPrecede(MustPrecede::Done(point))) => self.order_after(&point)?,
                Err(Refusal::MustPrecede(MustPrecede::Submitted(point))) => self.share.submit(&point)?,
                Err(Refusal::Copying(seen, of)) => *waits |= self.wait_for_copy(seen, (of, String::new)),
                Err(Refusal::Again) => {}
            }
        }
    }

    /// Submits a batch of another context, and orders later submissions of this context after it: by the queue if both
    /// use the same one, else by a semaphore wait.
    fn order_after(&self, point: &TimelinePoint) -> Result<(), Error> {
        self.share.submit(point)?;
        if point.clock.queue.index != self.clock.queue.index {
            self.share.memory().counters.context_waits.one();
            self.state.lock().timeline.order_after(point)?;
        }
        Ok(())
    }

    /// Waits for a batch, and so for all before it, because too many are in flight.
    #[cold]
    fn throttle(&self, serial: Serial) -> Result<(), Error> {
        let start = Instant::now();
        let point = TimelinePoint { clock: Arc::clone(&self.clock), serial };
        self.wait_points((Waits::BATCHES, None), std::slice::from_ref(&point))?;
        self.share.memory().counters.batches_throttled.one();
        if let Some(trace) = self.share.trace() {
            let about = About { batch: Some(point.id()), ..About::default() };
            trace.call("wait: batches in flight", self.clock.id(), about, start);
        }
        Ok(())
    }

    /// Waits until more than `seen` host copies have ended. The caller waits for a copy of a resource, and holds no
    /// lock. The resource's description is for the timeline, which has the resource's number if the description is
    /// empty.
    pub(crate) fn wait_for_copy(
        &self,
        seen: u64,
        (resource, described): (Option<ResourceId>, impl FnOnce() -> String),
    ) -> Waits {
        let (why, start) = (Waits::HOST_COPY, Instant::now());
        self.log.note(|| Event::WaitBegan { why, resource, batches: Vec::new() });
        self.share.gate().wait(seen);
        self.log.note(|| Event::Waited { why, resource });
        if let Some(trace) = self.share.trace() {
            let described = Some(described()).filter(|text| !text.is_empty());
            let described = described.or_else(|| Some(resource?.to_string()));
            let about = About { resource: described.as_deref(), ..About::default() };
            trace.call("wait: host copy", self.clock.id(), about, start);
        }
        why
    }

    /// Waits for batches, for a use of a resource if it is about one. The caller locks no context.
    fn wait_points(&self, (why, resource): (Waits, Option<ResourceId>), points: &[TimelinePoint]) -> Result<(), Error> {
        self.log.note(|| Event::WaitBegan { why, resource, batches: points.iter().map(TimelinePoint::id).collect() });
        let waited = points.iter().try_for_each(|point| self.share.wait(point));
        self.log.note(|| Event::Waited { why, resource });
        waited
    }

    pub(super) fn drop_retired(&self, mut state: MutexGuard<'_, ContextState>) {
        state.timeline.retire();
        let garbage = replace::catch_up(&self.share, &mut state);
        drop(state);
        drop(garbage); // when no lock is held
    }

    /// Waits for the batches that conflict with a host access to the object of a resource. Returns whether there were
    /// any. The caller locks no context.
    pub(crate) fn wait_for(
        &self,
        (resource, object): (&Resource, &ResourceObject),
        access: Access,
        (reason, why): (Waits, &str),
    ) -> Result<bool, Error> {
        let points = object.usage.conflicting(access);
        if points.is_empty() {
            return Ok(false);
        }
        let start = Instant::now();
        self.wait_points((reason, Some(resource.id())), &points)?;
        if let Some(trace) = self.share.trace() {
            let of = resource.described();
            let about = About { resource: Some(&of), batch: points.last().map(TimelinePoint::id), bytes: None };
            trace.call(&format!("wait: {why}"), self.clock.id(), about, start);
        }
        Ok(true)
    }

    /// The result of a call, which it counts.
    pub(crate) fn outcome(&self, resource: &Resource, action: Action, waits: Waits) -> Outcome {
        let outcome = Outcome::new(action, waits);
        resource.outcomes.note(&outcome);
        self.outcomes.note(&outcome);
        outcome
    }

    /// Waits for an object because there is no memory for a new one in its place. Returns whether it waited.
    pub(crate) fn wait_without_memory(&self, of: (&Resource, &ResourceObject)) -> Result<bool, Error> {
        let waited = self.wait_for(of, Access::Write, (Waits::NO_MEMORY, "no memory for a new object"))?;
        if waited {
            self.share.memory().counters.renames_without_memory.one();
        }
        Ok(waited)
    }

    /// Waits until the `bytes` more bytes that a resource needs may be pending, or until no pending object has
    /// unfinished batches. It waits for the oldest objects first, whichever contexts use them. Returns whether it
    /// waited. The caller locks no context.
    pub(crate) fn room_for(&self, resource: &Resource, bytes: u64) -> Result<bool, Error> {
        let memory = self.share.memory();
        if memory.has_room(bytes) {
            return Ok(false);
        }
        self.flush()?;
        self.share.retire_all();
        let start = Instant::now();
        let mut waited = false;
        for object in memory.pending_objects() {
            if memory.has_room(bytes) {
                break;
            }
            let Some(object) = object.upgrade() else { continue };
            let points = object.usage().conflicting(Access::Write);
            drop(object); // so that the batch's retirement frees it
            for point in &points {
                waited = true;
                self.wait_points((Waits::BUDGET, Some(resource.id())), std::slice::from_ref(point))?;
            }
            self.share.retire_all();
        }
        if waited {
            memory.counters.renames_throttled.one();
            if let Some(trace) = self.share.trace() {
                let of = resource.described();
                let about = About { resource: Some(&of), bytes: Some(bytes), batch: None };
                trace.call("wait: memory of replaced objects", self.clock.id(), about, start);
            }
        }
        Ok(waited)
    }
}

impl Member for ContextInner {
    fn flush(&self) -> Result<Serial, Error> {
        self.state.lock().timeline.flush()
    }

    fn retire(&self) {
        if let Some(state) = self.state.try_lock() {
            self.drop_retired(state);
        }
    }

    fn release_memory(&self) -> Result<bool, Error> {
        let (serial, counters) = (self.flush()?, &self.share.memory().counters);
        let waits = self.clock.retired() < serial;
        if waits {
            counters.pressure_waits.one();
            let start = Instant::now();
            let point = TimelinePoint { clock: Arc::clone(&self.clock), serial };
            self.wait_points((Waits::PRESSURE, None), std::slice::from_ref(&point))?;
            if let Some(trace) = self.share.trace() {
                let about = About { batch: Some(point.id()), ..About::default() };
                trace.call("wait: out of memory", self.clock.id(), about, start);
            }
        }
        let mut state = self.state.lock();
        state.sets.clear(counters);
        self.drop_retired(state);
        Ok(waits)
    }

    fn count(&self, counters: &Counters) {
        if let Some(batch) = self.lock().timeline.open() {
            batch.count(counters);
        }
    }
}

impl Drop for ContextInner {
    /// Submits the recorded commands, since other contexts may use their results, and waits for them: batches own their
    /// objects until they have retired.
    fn drop(&mut self) {
        let serial = self.flush();
        if let Ok(serial) = serial {
            // The thread that drops the context may be the one that would open a hold.
            self.clock.submission(serial).inspect(Submission::open_holds);
            // An error means that the device is lost; every other call reports that.
            let _ = self.share.wait(&TimelinePoint { clock: Arc::clone(&self.clock), serial });
        }
        self.share.forget(self.clock.id());
    }
}

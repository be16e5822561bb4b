//! What the handles of a context name: its slots, caches and batches behind a lock, and how commands get into them.

use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use crate::batch::{Clock, First, Refusal, TimelinePoint};
use crate::context_state::ContextState;
use crate::error::Error;
use crate::ids::{Access, Serial};
use crate::object::ResourceObject;
use crate::replace;
use crate::share::{Member, Share};
use crate::stats::Counters;

/// What the handles of a context name.
pub(crate) struct ContextInner {
    pub(crate) share: Arc<Share>,
    pub(crate) clock: Arc<Clock>,
    /// Locked before any resource.
    state: Mutex<ContextState>,
}

impl ContextInner {
    /// A context on a device, known to the others from now on.
    pub(super) fn new(share: &Arc<Share>) -> Arc<Self> {
        let (clock, queue) = share.clock();
        let state = ContextState::new(share, queue, &clock);
        let id = clock.id();
        let inner = Arc::new(Self { share: Arc::clone(share), clock, state: Mutex::new(state) });
        let member: Weak<Self> = Arc::downgrade(&inner);
        share.register(id, member);
        inner
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ContextState> {
        self.state.lock()
    }

    /// Records commands, after what other contexts must have done before them. `record` may be called several times;
    /// only its last call records.
    pub(crate) fn record<T>(
        &self,
        mut record: impl FnMut(&mut ContextState) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        loop {
            let mut state = self.state.lock();
            if let Some(serial) = state.timeline.too_far_ahead() {
                drop(state);
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
                Err(Refusal::First(First::Done(point))) => self.come_after(&point)?,
                Err(Refusal::First(First::Submitted(point))) => self.share.submit(&point)?,
                Err(Refusal::Copying(seen)) => self.share.gate().wait(seen),
                Err(Refusal::Again) => {}
            }
        }
    }

    /// Sees to it that what is submitted from now on runs after a batch of another context.
    fn come_after(&self, point: &TimelinePoint) -> Result<(), Error> {
        self.share.submit(point)?;
        if point.clock.queue.index != self.clock.queue.index {
            self.share.memory().counters.context_waits.one();
            self.state.lock().timeline.come_after(point)?;
        }
        Ok(())
    }

    /// Too many batches are on their way: waits for one of them, and so for all before it.
    #[cold]
    fn throttle(&self, serial: Serial) -> Result<(), Error> {
        let start = Instant::now();
        self.share.wait(&TimelinePoint { clock: Arc::clone(&self.clock), serial })?;
        self.share.memory().counters.batches_throttled.one();
        if let Some(trace) = self.share.trace() {
            trace.span(self.clock.id(), "wait: batches on their way".to_owned(), start, serde_json::Value::Null);
        }
        Ok(())
    }

    pub(super) fn drop_retired(&self, mut state: MutexGuard<'_, ContextState>) {
        state.timeline.retire();
        let garbage = replace::catch_up(&self.share, &mut state);
        drop(state);
        drop(garbage); // when no lock is held
    }

    /// Waits for what stands in the way of an access of the host; whether anything did. No context is locked by the
    /// caller.
    pub(crate) fn wait_for(&self, object: &ResourceObject, access: Access, why: &str) -> Result<bool, Error> {
        let points = object.usage.conflicting(access);
        if points.is_empty() {
            return Ok(false);
        }
        let start = Instant::now();
        points.iter().try_for_each(|point| self.share.wait(point))?;
        if let Some(trace) = self.share.trace() {
            trace.span(self.clock.id(), format!("wait: {why}"), start, serde_json::Value::Null);
        }
        Ok(true)
    }

    /// No memory could be had for another object in the place of this one, which is therefore waited for.
    pub(crate) fn wait_without_memory(&self, object: &ResourceObject) -> Result<bool, Error> {
        let waited = self.wait_for(object, Access::Write, "no memory for a new object")?;
        if waited {
            self.share.memory().counters.renames_without_memory.one();
        }
        Ok(waited)
    }

    /// Waits until so many bytes more may be pending, or until nothing that is pending can be waited for; whether it
    /// waited. Oldest objects first, whichever context's batches use them. No context is locked by the caller.
    pub(crate) fn room_for(&self, bytes: u64) -> Result<bool, Error> {
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
            drop(object); // the batch may be all that keeps it besides
            for point in &points {
                waited = true;
                self.share.wait(point)?;
            }
            self.share.retire_all();
        }
        if waited {
            memory.counters.renames_throttled.one();
            if let Some(trace) = self.share.trace() {
                let args = serde_json::json!({ "bytes": bytes });
                trace.span(self.clock.id(), "wait: memory of replaced objects".to_owned(), start, args);
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

    fn relieve(&self) -> Result<bool, Error> {
        let (serial, counters) = (self.flush()?, &self.share.memory().counters);
        let waits = self.clock.retired() < serial;
        if waits {
            counters.pressure_waits.one();
            let start = Instant::now();
            self.share.wait(&TimelinePoint { clock: Arc::clone(&self.clock), serial })?;
            if let Some(trace) = self.share.trace() {
                trace.span(self.clock.id(), "wait: memory is used up".to_owned(), start, serde_json::Value::Null);
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
    /// Submits what was recorded, since others may share its results, and waits for it: what batches own is theirs
    /// until they have retired.
    fn drop(&mut self) {
        let serial = self.flush();
        if let Ok(serial) = serial {
            // An error is the loss of the device, which everybody else is told of.
            let _ = self.share.wait(&TimelinePoint { clock: Arc::clone(&self.clock), serial });
        }
        self.share.forget(self.clock.id());
    }
}

//! State that the contexts of one device share: memory, counters, the journal, and the list of contexts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use spelter_driver::CheckedByEnvironment;
use spelter_driver::profile::Profile;
use spelter_driver::{Device, Queue};
use spelter_locks::Mutex;

use crate::error::Error;
use crate::gate::Gate;
use crate::holds::Holds;
use crate::ids::{ResourceId, Serial};
use crate::journal::Journal;
use crate::memory::Memory;
use crate::named_by::NamedBy;
use crate::recordings::Recordings;
use crate::stats::{Counters, Stats};
use crate::submission::{Clock, ContextQueue, TimelinePoint};
use crate::trace::Trace;

/// What the device's shared state asks of each context.
pub(crate) trait Member: Send + Sync {
    /// Submits the recorded commands. Returns the serial of the last submitted batch.
    fn flush(&self) -> Result<Serial, Error>;

    /// Drops what retired batches own, and what slots and descriptor sets name that is lost, unless the context is
    /// locked: then it does so itself when it next records or submits.
    fn retire(&self);

    /// Submits and awaits all batches and drops what can be made again. Returns whether it waited.
    fn release_memory(&self) -> Result<bool, Error>;

    /// Adds the commands of the open batch to the counters.
    fn count(&self, counters: &Counters);
}

/// What keeps objects between its uses, and belongs to no context: a descriptor set.
pub(crate) trait Holder: Send + Sync {
    /// Drops what it keeps of objects that their resources have lost, unless it is locked: the next use does so.
    fn drop_lost(&self);

    /// The descriptors that name a resource. The caller holds no lock.
    fn named_by(&self, resource: ResourceId) -> Vec<NamedBy>;
}

/// A device and the shared state of its contexts.
#[derive(Debug)]
pub(crate) struct Share {
    device: Device,
    queues: Vec<Queue>,
    memory: Arc<Memory>,
    journal: Journal,
    gate: Gate,
    recordings: Recordings,
    holds: Holds,
    trace: Option<Arc<Trace>>,
    profile: Option<Arc<Profile>>,
    /// By number of their clocks. A leaf lock.
    contexts: Mutex<HashMap<u64, Weak<dyn Member>>>,
    /// Descriptor sets, by number. A leaf lock.
    sets: Mutex<HashMap<u64, Weak<dyn Holder>>>,
    next: AtomicU64,
    next_queue: AtomicUsize,
    /// Mappings that forbid commands on their resource.
    mappings: AtomicUsize,
    /// Set if the environment turned checked mode on: then errors that it finds are a panic at the end.
    checked: Option<CheckedByEnvironment>,
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(by_environment) = &self.checked {
            by_environment.deny(&self.device);
        }
    }
}

impl Share {
    pub(crate) fn new(
        device: Device,
        poison: bool,
        (trace, profile): (Option<Arc<Trace>>, Option<Arc<Profile>>),
        checked: Option<CheckedByEnvironment>,
    ) -> Arc<Self> {
        Arc::new(Self {
            queues: device.queues(),
            memory: Arc::new(Memory::new(&device, poison)),
            journal: Journal::new(),
            gate: Gate::default(),
            recordings: Recordings::default(),
            holds: Holds::default(),
            trace,
            profile,
            contexts: Mutex::default(),
            sets: Mutex::default(),
            next: AtomicU64::new(1),
            next_queue: AtomicUsize::new(0),
            mappings: AtomicUsize::new(0),
            checked,
            device,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Waits for the end of host copies.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Batches that tests hold back.
    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }

    /// The command buffers that name objects.
    pub(crate) fn recordings(&self) -> &Recordings {
        &self.recordings
    }

    pub(crate) fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.as_ref()
    }

    pub(crate) fn profile(&self) -> Option<&Arc<Profile>> {
        self.profile.as_ref()
    }

    /// Whether any resource is mapped so that commands must not use it.
    pub(crate) fn has_mappings(&self) -> bool {
        // Relaxed: a thread sees its own mappings, and those of threads that it has synchronised with.
        self.mappings.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn mapped(&self) {
        // Relaxed: other threads synchronise through the resource's lock, which is held (`Batch::enter`).
        self.mappings.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unmapped(&self) {
        // Relaxed: as in `mapped`.
        self.mappings.fetch_sub(1, Ordering::Relaxed);
    }

    /// The clock of a new context, and its queue: contexts use the device's queues round-robin.
    pub(crate) fn clock(&self) -> (Arc<Clock>, Queue) {
        // Relaxed: numbers only have to differ, and queues to be shared evenly.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let index = self.next_queue.fetch_add(1, Ordering::Relaxed) % self.queues.len();
        let context_queue = ContextQueue { index, done: self.device.create_timeline_semaphore(0) };
        (Arc::new(Clock::new(id, context_queue)), self.queues[index].clone())
    }

    pub(crate) fn register(&self, clock: u64, context: Weak<dyn Member>) {
        self.contexts.lock().insert(clock, context);
    }

    pub(crate) fn forget(&self, clock: u64) {
        self.contexts.lock().remove(&clock);
    }

    pub(crate) fn register_set(&self, id: u64, set: Weak<dyn Holder>) {
        self.sets.lock().insert(id, set);
    }

    pub(crate) fn forget_set(&self, id: u64) {
        self.sets.lock().remove(&id);
    }

    /// Makes descriptor sets drop what they keep of lost objects.
    fn drop_lost(&self) {
        let sets: Vec<_> = self.sets.lock().values().filter_map(Weak::upgrade).collect();
        sets.iter().for_each(|set| set.drop_lost());
    }

    /// The descriptor sets and command buffers that name a resource, each kind in the order in which they were made.
    /// The caller holds no lock.
    pub(crate) fn named_by(&self, resource: ResourceId) -> Vec<NamedBy> {
        let mut sets: Vec<_> = self.sets.lock().iter().filter_map(|(id, set)| Some((*id, set.upgrade()?))).collect();
        sets.sort_unstable_by_key(|(id, _)| *id);
        let named = sets.iter().flat_map(|(_, set)| set.named_by(resource));
        named.chain(self.recordings.named_by(resource)).collect()
    }

    fn context(&self, clock: u64) -> Option<Arc<dyn Member>> {
        self.contexts.lock().get(&clock).and_then(Weak::upgrade)
    }

    /// A batch of that context has retired: drops the objects that it owned, unless the context is locked and drops
    /// them itself.
    pub(crate) fn retire(&self, clock: u64) {
        if let Some(context) = self.context(clock) {
            context.retire();
        }
    }

    /// All live contexts.
    fn contexts(&self) -> Vec<Arc<dyn Member>> {
        self.contexts.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// The counters, including commands that are recorded and not submitted. The caller locks no context.
    pub(crate) fn stats(&self) -> Stats {
        let counters = &self.memory.counters;
        self.contexts().iter().for_each(|context| context.count(counters));
        counters.read()
    }

    /// Makes sure that a batch of any context is submitted. The caller locks no context.
    pub(crate) fn submit(&self, point: &TimelinePoint) -> Result<(), Error> {
        while point.serial > point.clock.submitted() {
            match self.context(point.clock.id()) {
                Some(context) => {
                    context.flush()?;
                }
                // Its last handle is being dropped, which submits.
                None => std::thread::yield_now(),
            }
        }
        Ok(())
    }

    /// Returns when a batch of any context has retired; executes work of its queue meanwhile. The caller locks no
    /// context.
    pub(crate) fn wait(&self, point: &TimelinePoint) -> Result<(), Error> {
        self.submit(point)?;
        if let Some(submission) = point.clock.submission(point.serial) {
            let counters = &self.memory.counters;
            counters.waits_begun.one();
            let waited = submission.wait();
            counters.waits_ended.one();
            waited?;
        }
        self.retire(point.clock.id());
        self.check_alive()
    }

    /// [`Error::DeviceLost`] with the reason, if the device is lost.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        if self.device.is_lost() { Ok(self.queues[0].wait_idle()?) } else { Ok(()) }
    }

    /// Makes contexts drop retired batches, and slots and descriptor sets that name lost objects. A context or set that
    /// is locked does so itself later.
    pub(crate) fn retire_all(&self) {
        self.contexts().iter().for_each(|context| context.retire());
        self.drop_lost();
    }

    /// Frees memory: submits and awaits all batches, drops cached descriptor sets and spare storage. Returns whether it
    /// waited. The caller locks no context.
    pub(crate) fn release_memory(&self) -> Result<bool, Error> {
        self.memory.counters.pressure_flushes.one();
        let mut waited = false;
        for context in self.contexts() {
            waited |= context.release_memory()?;
        }
        self.drop_lost();
        self.memory.spare.free();
        Ok(waited)
    }

    /// Runs `run`, which needs memory; if there is none, once more after [`Share::release_memory`].
    pub(crate) fn with_pressure_relieved<T>(&self, run: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        self.noting_pressure(&mut false, run)
    }

    /// Like [`Share::with_pressure_relieved`]; sets `waited` if it waited.
    pub(crate) fn noting_pressure<T>(&self, waited: &mut bool, run: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        match run() {
            Err(Error::OutOfMemory(_)) => {
                *waited |= self.release_memory()?;
                run()
            }
            result => result,
        }
    }
}

//! What the contexts of one device share: memory, counters, the journal, and each other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use spelter_driver::{Device, Queue};

use crate::batch::{Clock, Line, Moment};
use crate::context::Inner;
use crate::error::Error;
use crate::gate::Gate;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::stats::Stats;
use crate::trace::Trace;

/// A device, for the contexts that share it.
#[derive(Debug)]
pub(crate) struct Share {
    device: Device,
    queues: Vec<Queue>,
    memory: Arc<Memory>,
    journal: Journal,
    gate: Gate,
    trace: Option<Arc<Trace>>,
    /// By number of their clocks. A leaf lock.
    contexts: Mutex<HashMap<u64, Weak<Inner>>>,
    next: AtomicU64,
    turn: AtomicUsize,
    /// Mappings during which commands must leave their resource alone.
    mappings: AtomicUsize,
}

impl Share {
    pub(crate) fn new(device: Device, poison: bool, trace: Option<Arc<Trace>>) -> Arc<Self> {
        Arc::new(Self {
            queues: device.queues(),
            memory: Arc::new(Memory::new(&device, poison)),
            journal: Journal::new(),
            gate: Gate::default(),
            trace,
            contexts: Mutex::default(),
            next: AtomicU64::new(1),
            turn: AtomicUsize::new(0),
            mappings: AtomicUsize::new(0),
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

    /// Opens whenever a copy of the host has ended.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.as_ref()
    }

    /// Whether any resource is mapped so that commands must leave it alone.
    pub(crate) fn has_mappings(&self) -> bool {
        // Relaxed: a thread sees its own mappings, and those of others that it has synchronised with.
        self.mappings.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn mapped(&self) {
        // Relaxed: the resource's lock, which is held, tells others (`Batch::enter`).
        self.mappings.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unmapped(&self) {
        // Relaxed: as in `mapped`.
        self.mappings.fetch_sub(1, Ordering::Relaxed);
    }

    /// The clock of a new context, and its queue: contexts take turns with those that the device has.
    pub(crate) fn clock(&self) -> (Arc<Clock>, Queue) {
        // Relaxed: numbers only have to differ, and turns to be fair.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let queue = self.turn.fetch_add(1, Ordering::Relaxed) % self.queues.len();
        let line = Line { queue, done: self.device.create_timeline_semaphore(0) };
        (Arc::new(Clock::new(id, line)), self.queues[queue].clone())
    }

    pub(crate) fn register(&self, clock: u64, context: &Weak<Inner>) {
        self.contexts.lock().insert(clock, Weak::clone(context));
    }

    pub(crate) fn forget(&self, clock: u64) {
        self.contexts.lock().remove(&clock);
    }

    fn context(&self, clock: u64) -> Option<Arc<Inner>> {
        self.contexts.lock().get(&clock).and_then(Weak::upgrade)
    }

    /// A batch of that context has retired: what it owned goes, unless the context is at work and sees to that itself.
    pub(crate) fn retire(&self, clock: u64) {
        if let Some(context) = self.context(clock) {
            context.retire();
        }
    }

    /// All contexts that there are.
    fn contexts(&self) -> Vec<Arc<Inner>> {
        self.contexts.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// The counters, with what contexts have recorded and not submitted. No context is locked by the caller.
    pub(crate) fn stats(&self) -> Stats {
        let counters = &self.memory.counters;
        for context in self.contexts() {
            if let Some(batch) = context.lock().timeline.open() {
                batch.count(counters);
            }
        }
        counters.read()
    }

    /// Makes sure that a batch of any context is submitted. No context is locked by the caller.
    pub(crate) fn submit(&self, moment: &Moment) -> Result<(), Error> {
        while moment.serial > moment.clock.submitted() {
            match self.context(moment.clock.id()) {
                Some(context) => {
                    context.flush()?;
                }
                // Its last handle is being dropped, which submits.
                None => std::thread::yield_now(),
            }
        }
        Ok(())
    }

    /// Returns when a batch of any context has retired; helps meanwhile. No context is locked by the caller.
    pub(crate) fn wait(&self, moment: &Moment) -> Result<(), Error> {
        self.submit(moment)?;
        if let Some(flight) = moment.clock.flight(moment.serial) {
            flight.wait()?;
        }
        self.retire(moment.clock.id());
        self.check_alive()
    }

    /// [`Error::DeviceLost`] with the reason, if the device is lost.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        if self.device.is_lost() { Ok(self.queues[0].wait_idle()?) } else { Ok(()) }
    }

    /// Lets contexts go of what they keep for nothing: batches that have retired, slots and descriptor sets that name
    /// objects which are gone. Those that are at work do so themselves.
    pub(crate) fn retire_all(&self) {
        self.contexts().iter().for_each(|context| context.retire());
    }

    /// Gives back what can be: submits and awaits all batches, drops cached descriptor sets; whether it waited. No context is
    /// locked by the caller.
    pub(crate) fn relieve(&self) -> Result<bool, Error> {
        self.memory.counters.pressure_flushes.one();
        let mut waited = false;
        for context in self.contexts() {
            waited |= context.relieve()?;
        }
        self.memory.spare.free();
        Ok(waited)
    }

    /// Runs what needs memory; if there is none, once more after all that can be given back was.
    pub(crate) fn with_pressure_relieved<T>(&self, run: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        self.noting_pressure(&mut false, run)
    }

    /// As [`Share::with_pressure_relieved`]; `waited` tells whether it waited for that.
    pub(crate) fn noting_pressure<T>(&self, waited: &mut bool, run: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        match run() {
            Err(Error::OutOfMemory(_)) => {
                *waited |= self.relieve()?;
                run()
            }
            result => result,
        }
    }
}

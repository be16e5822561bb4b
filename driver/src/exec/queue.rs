//! A queue: takes batches, which one conductor at a time runs.

mod batch_run;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Instant;

use self::batch_run::{BatchPosition, ConductorStop};
use super::cpu_time::ThreadNumber;
use super::line::{Conductor, Line};
use super::observe::{SemaphoreSignal, SemaphoreWait, SubmissionId, SubmissionSize};
use super::phase;
use super::progress::{ProgressSnapshot, QueueProgress};
use super::recording::{Batch, Recording};
use super::run::panic_message;
use super::shared::{Shared, Slot};
use super::visit::Visit;
use super::work::Work;
use crate::error::DeviceError;
use crate::sync::primitives::{Mutex, spin_until};
use crate::sync::{Counter, Helper, Target, WAIT_SPIN, Wake};

/// Number of times that a waiter looks for work before it sleeps.
const WAIT_TRIES: u32 = 3;

/// A queue of an executor.
#[derive(Debug)]
pub(crate) struct QueueState {
    /// Its index among the queues of the device.
    number: usize,
    shared: Arc<Shared>,
    line: Line<Submitted>,
    progress: Arc<QueueProgress>,
}

/// A batch in line.
#[derive(Debug)]
struct Submitted {
    serial: u64,
    batch: Batch,
    /// The position at which to continue.
    position: Mutex<BatchPosition>,
}

impl QueueState {
    pub(super) fn new(shared: &Arc<Shared>, number: usize) -> Arc<Self> {
        let progress = Arc::new(QueueProgress::new(shared.workers()));
        let queue = Arc::new(Self { number, shared: Arc::clone(shared), line: Line::new(), progress });
        shared.register(&queue);
        queue
    }

    /// Puts a batch in line and returns its serial, which counts up from 1. A tiny batch on an idle queue has usually
    /// run when this returns; in any case it blocks for some 100 µs at most. On a lost device the fence gets the error,
    /// too.
    pub(crate) fn submit(self: &Arc<Self>, batch: Batch) -> Result<u64, DeviceError> {
        if let Err(lost) = self.check() {
            batch.fence.inspect(|fence| fence.settle(Err(lost.clone())));
            return Err(lost);
        }
        let helper = || Arc::downgrade(self) as Weak<dyn Helper>;
        if let Some(fence) = &batch.fence {
            fence.attach(helper());
        }
        batch.signals.iter().for_each(|(counter, _)| counter.attach(helper()));
        let commands = || batch.recordings.iter().flat_map(|recording| recording.phases.commands());
        let visit = Visit::new(&self.shared.costs, commands());
        let observer = self.shared.observer.as_ref();
        let reported = observer.map(|observer| (observer, size(commands()), Instant::now()));
        let pushed = self.line.push(|serial| {
            self.shared.log.as_ref().inspect(|log| log.submitted(self.id(serial), &batch));
            Arc::new(Submitted { serial, batch, position: Mutex::default() })
        });
        // Outside of the line's lock, so that a leaf stays one.
        if let Some((observer, size, start)) = reported {
            observer.submitted(self.id(pushed.serial), size, start);
        }
        if pushed.was_idle && !(visit.is_some() && self.serve_inline(visit)) && !self.shared.post(self) {
            self.serve_inline(None);
        }
        Ok(pushed.serial)
    }

    /// Its index among the queues of the device.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    fn id(&self, serial: u64) -> SubmissionId {
        SubmissionId { queue: self.number, serial }
    }

    fn check(&self) -> Result<(), DeviceError> {
        self.shared.loss.check()?;
        if self.shared.board.is_shut() {
            return Err(DeviceError::DeviceLost("the device was destroyed".to_owned()));
        }
        Ok(())
    }

    /// Runs batches on this thread, or as much as a `visit` allows, if a slot is free and the line has no other
    /// conductor. `false` if no slot is free: then the caller must see to a conductor.
    fn serve_inline(self: &Arc<Self>, mut visit: Option<Visit>) -> bool {
        loop {
            let Some(mut held) = self.shared.claim() else { return false };
            let Some(role) = self.line.claim() else { return true };
            let wanted = self.conduct(role, held.slot(), || false, visit.as_mut());
            // The slot first: it may be the one that the next conductor lacks.
            drop(held);
            if !wanted || self.shared.post(self) {
                return true;
            }
            // No thread could be started, so this one continues.
            visit = None;
        }
    }

    /// Runs the queue's batches on a worker, until the line is empty or other queues wait.
    pub(super) fn serve(self: &Arc<Self>, slot: &mut Slot) {
        if let Some(role) = self.line.claim()
            && self.conduct(role, slot, || !self.shared.board.is_crowded(), None)
        {
            self.hand_over(slot);
        }
    }

    /// Runs batches in order, at least one. Stops when `stay` returns false, when a batch must wait for a semaphore or
    /// event, or when the `visit` is over. Returns true if batches are left: the caller must then see to another
    /// conductor.
    fn conduct<'a>(
        self: &'a Arc<Self>,
        mut role: Conductor<'a, Submitted>,
        slot: &mut Slot,
        mut stay: impl FnMut() -> bool,
        mut visit: Option<&mut Visit>,
    ) -> bool {
        self.shared.wake_watchdog();
        let _running = self.progress.enter(slot.number);
        let mut wanted = false;
        loop {
            let Some(submitted) = role.front() else { break };
            let started = self.shared.observer.as_ref().map(|_| Instant::now());
            let ran = self.run(&submitted, slot, visit.as_deref_mut());
            if let (Some(observer), Some(started)) = (&self.shared.observer, started) {
                let done = matches!(ran, ConductorStop::Done(_));
                let Batch { waits, signals, .. } = &submitted.batch;
                // On a lost device nothing is signalled, and waits have not ended by signals.
                let has_run = matches!(ran, ConductorStop::Done(Ok(())));
                if has_run && !(waits.is_empty() && signals.is_empty()) {
                    let waits: Vec<_> = waits.iter().map(awaited).collect();
                    let signals: Vec<_> = signals.iter().map(signalled).collect();
                    observer.synchronized(self.id(submitted.serial), &waits, &signals);
                }
                observer.ran(self.id(submitted.serial), done, started, Instant::now());
            }
            match ran {
                ConductorStop::Done(result) => self.retire(&role, submitted, result),
                ConductorStop::Until((counter, value)) => {
                    drop(submitted);
                    let Some(again) = self.suspend(role, &counter, value) else { break };
                    role = again;
                    continue;
                }
                // Dropped now, so that the next conductor's handle is the last.
                ConductorStop::Visited => drop(submitted),
            }
            if !stay() {
                wanted = role.leave();
                break;
            }
        }
        self.shared.nap().end();
        wanted
    }

    /// Leaves the role until a counter has a value. If it has the value by now, returns the role.
    fn suspend<'a>(
        self: &'a Arc<Self>,
        role: Conductor<'a, Submitted>,
        counter: &Counter,
        value: u64,
    ) -> Option<Conductor<'a, Submitted>> {
        role.suspend();
        let waker = Arc::clone(self) as Arc<dyn Wake>;
        // The loss is tested after the line is suspended, and `Shared::lose` resumes lines after the loss is set: one
        // sees the other.
        if counter.watch(value, &waker) && !self.shared.loss.is_lost() {
            return None;
        }
        if self.line.resume() { self.line.claim() } else { None }
    }

    /// Calls a conductor for the batches that are left; this thread keeps its slot.
    fn hand_over(self: &Arc<Self>, slot: &mut Slot) {
        // No thread could be started, so this one continues.
        if !self.shared.post(self)
            && let Some(role) = self.line.claim()
        {
            self.conduct(role, slot, || true, None);
        }
    }

    /// Progress of this queue; for the watchdog.
    pub(super) fn mark(&self) -> ProgressSnapshot {
        self.progress.mark()
    }

    /// The threads that run units of this queue; for the watchdog.
    pub(super) fn threads(&self) -> Vec<ThreadNumber> {
        self.progress.threads()
    }

    /// The running command ran too long; the watchdog calls this before it ends it.
    pub(super) fn blame(&self) {
        self.progress.blame();
    }

    /// Names of the running commands; for the watchdog.
    pub(super) fn running(&self) -> String {
        let (recording, phase) = self.progress.running();
        let names = self.line.with_front(|submitted| {
            let recording = submitted.batch.recordings.get(recording);
            recording.map(|recording| names(recording, phase)).unwrap_or_default()
        });
        names.filter(|names| !names.is_empty()).unwrap_or_else(|| "a transfer".to_owned())
    }

    /// Waits until all batches submitted so far have retired and their fences are signalled; works meanwhile.
    pub(crate) fn wait_idle(self: &Arc<Self>) -> Result<(), DeviceError> {
        self.shared.loss.check_not_forked()?;
        let serial = self.line.submitted();
        if !Arc::clone(self).help(&|| self.line.settled() >= serial) {
            self.line.wait_settled(serial);
        }
        self.shared.loss.check()
    }

    /// Serial of the last batch that has retired: what it owned is dropped, unless it has other owners. Never
    /// decreases.
    pub(crate) fn retired(&self) -> u64 {
        self.line.retired()
    }

    /// Becomes conductor or joins the running phase; whether there was work.
    fn help_once(self: &Arc<Self>, done: &dyn Fn() -> bool) -> bool {
        let Some(mut held) = self.shared.claim() else { return false };
        if let Some(role) = self.line.claim() {
            if self.conduct(role, held.slot(), || !done() && !self.shared.board.is_crowded(), None) {
                self.hand_over(held.slot());
            }
            return true;
        }
        let Some(member) = self.shared.board.join(phase::owner(&self.progress)) else { return false };
        phase::member_of(&self.shared, member, held.slot());
        true
    }

    /// Drops what the batch owns, then publishes that it has retired, then signals its semaphores and its fence, then
    /// wakes the threads that wait for an idle queue. README.md, "Life of a batch", relies on this order.
    fn retire(&self, role: &Conductor<'_, Submitted>, submitted: Arc<Submitted>, result: Result<(), DeviceError>) {
        role.pop();
        let (serial, batch) = (submitted.serial, &submitted.batch);
        let (fence, signals) = (batch.fence.clone(), batch.signals.clone());
        // A destructor that panics must not end the queue.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(submitted)));
        role.retire(serial);
        // On a lost device the loss wakes their waiters.
        if !self.shared.loss.is_lost() {
            signals.iter().for_each(|(counter, value)| counter.raise(*value));
        }
        let result = result.and_then(|()| {
            dropped
                .map_err(|panic| DeviceError::DeviceLost(format!("a destructor panicked: {}", panic_message(&*panic))))
        });
        fence.inspect(|fence| fence.settle(result));
        role.settle(serial);
    }
}

impl Helper for QueueState {
    fn help(self: Arc<Self>, done: &dyn Fn() -> bool) -> bool {
        for _ in 0..WAIT_TRIES {
            while !done() && self.help_once(done) {
                if self.shared.board.is_crowded() {
                    return done(); // make room: others wait for the slots
                }
            }
            if spin_until(WAIT_SPIN, done) {
                return true;
            }
        }
        false
    }
}

impl Wake for QueueState {
    /// The counter that the batch in front waits for may have its value, or the device is lost.
    fn wake(self: Arc<Self>) {
        if self.line.resume() && !self.shared.post(&self) {
            self.serve_inline(None);
        }
    }
}

/// A wait of a batch, for observers.
fn awaited((counter, value): &Target) -> SemaphoreWait {
    SemaphoreWait { semaphore: counter.serial(), value: *value }
}

/// A signal of a batch that has not happened yet, for observers.
fn signalled((counter, value): &Target) -> SemaphoreSignal {
    SemaphoreSignal { semaphore: counter.serial(), before: counter.value(), value: *value }
}

/// What a batch holds.
fn size<'a>(commands: impl Iterator<Item = &'a Work>) -> SubmissionSize {
    commands.fold(SubmissionSize::default(), |SubmissionSize { commands, bytes }, work| SubmissionSize {
        commands: commands + 1,
        bytes: bytes.saturating_add(work.touched_bytes()),
    })
}

/// The first few kernels of a phase, without repetitions.
fn names(recording: &Recording, phase: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    if phase >= recording.phases.len() {
        return String::new();
    }
    for work in &recording.phases[phase] {
        if let Work::Dispatch(dispatch) = work
            && !names.contains(&&*dispatch.state.name)
        {
            names.push(&dispatch.state.name);
        }
        if names.len() > 3 {
            break;
        }
    }
    names.iter().map(|name| format!("kernel `{name}`")).collect::<Vec<_>>().join(" or ")
}

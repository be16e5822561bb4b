//! A queue: takes batches, and is served by one conductor at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::cpu_time::Thread;
use super::line::{Conductor, Line};
use super::phase::{self, Left};
use super::progress::{Mark, Progress};
use super::run::said;
use super::shared::{Shared, Slot};
use super::sync::{Mutex, spin_until};
use super::visit::Visit;
use super::work::{Batch, Recording, Work};
use crate::error::DeviceError;
use crate::sync::{Counter, Target, Wake};

/// How long a waiter spins before it sleeps.
pub(crate) const WAIT_SPIN: std::time::Duration = std::time::Duration::from_micros(20);
/// Looks for work that a waiter makes in vain before it sleeps.
const WAIT_LOOKS: u32 = 3;

/// A queue of an executor.
#[derive(Debug)]
pub(crate) struct QueueState {
    /// Its place among the queues of the device.
    number: usize,
    shared: Arc<Shared>,
    line: Line<Submitted>,
    progress: Arc<Progress>,
}

/// A batch in line.
#[derive(Debug)]
struct Submitted {
    serial: u64,
    batch: Batch,
    /// Where to go on.
    at: Mutex<At>,
}

/// A place in a batch.
#[derive(Debug, Default)]
struct At {
    recording: usize,
    phase: usize,
    /// What is left of the phase, if it was begun.
    left: Option<Left>,
}

/// How far a conductor came with a batch.
enum Ran {
    /// To its end.
    Done(Result<(), DeviceError>),
    /// Up to something that waits for this.
    Until(Target),
    /// As far as a visitor goes.
    Visited,
}

impl QueueState {
    pub(super) fn new(shared: &Arc<Shared>, number: usize) -> Arc<Self> {
        let progress = Arc::new(Progress::new(shared.workers()));
        let queue = Arc::new(Self { number, shared: Arc::clone(shared), line: Line::new(), progress });
        shared.register(&queue);
        queue
    }

    /// Puts a batch in line and returns its serial, which counts up from 1. A tiny batch on an idle queue has mostly run
    /// when this returns, which is soon in any case. On a lost device the fence, too, is told so.
    pub(crate) fn submit(self: &Arc<Self>, batch: Batch) -> Result<u64, DeviceError> {
        if let Err(lost) = self.check() {
            batch.fence.inspect(|fence| fence.settle(Err(lost.clone())));
            return Err(lost);
        }
        if let Some(fence) = &batch.fence {
            fence.attach(self);
        }
        batch.signals.iter().for_each(|(counter, _)| counter.attach(self));
        let commands = || batch.recordings.iter().flat_map(|recording| recording.phases.commands());
        let visit = Visit::new(&self.shared.costs, commands());
        let pushed = self.line.push(|serial| Arc::new(Submitted { serial, batch, at: Mutex::default() }));
        if pushed.was_idle && !(visit.is_some() && self.serve_inline(visit)) && !self.shared.post(self) {
            self.serve_inline(None);
        }
        Ok(pushed.serial)
    }

    fn check(&self) -> Result<(), DeviceError> {
        self.shared.loss.check()?;
        if self.shared.board.is_shut() {
            return Err(DeviceError::DeviceLost("the device was destroyed".to_owned()));
        }
        Ok(())
    }

    /// Runs one batch on this thread, or what of it a visitor runs, if a slot is free and nobody else has come. Whoever
    /// goes on is called.
    fn serve_inline(self: &Arc<Self>, mut visit: Option<Visit>) -> bool {
        loop {
            let Some(mut held) = self.shared.claim() else { return false };
            let Some(role) = self.line.claim() else { return true };
            let wanted = self.conduct(role, &mut held.slot, || false, visit.as_mut());
            // First the slot: it may be the one that is missing.
            drop(held);
            if !wanted || self.shared.post(self) {
                return true;
            }
            // No thread could be started: there is nobody but us.
            visit = None;
        }
    }

    /// Serves the queue, on a worker, until the line is empty or other queues wait.
    pub(super) fn serve(self: &Arc<Self>, slot: &mut Slot) {
        if let Some(role) = self.line.claim()
            && self.conduct(role, slot, || !self.shared.board.is_crowded(), None)
        {
            self.hand_over(slot);
        }
    }

    /// Runs batches in order, at least one, or what of it a visitor runs; after each, leaves unless it is to `stay`. Leaves
    /// a batch that has to wait. Whether there are more: then the caller sees to a conductor.
    fn conduct<'a>(
        self: &'a Arc<Self>,
        mut role: Conductor<'a, Submitted>,
        slot: &mut Slot,
        mut stay: impl FnMut() -> bool,
        mut visit: Option<&mut Visit>,
    ) -> bool {
        self.shared.wake_watchdog();
        let mut wanted = false;
        loop {
            let Some(submitted) = role.front() else { break };
            let started = self.shared.observer.as_ref().map(|_| Instant::now());
            let ran = self.run(&submitted, slot, visit.as_deref_mut());
            if let (Some(observer), Some(started)) = (&self.shared.observer, started) {
                observer.ran(self.number, submitted.serial, started, Instant::now());
            }
            match ran {
                Ran::Done(result) => self.retire(&role, submitted, result),
                Ran::Until((counter, value)) => {
                    drop(submitted);
                    let Some(again) = self.park(role, &counter, value) else { break };
                    role = again;
                    continue;
                }
                // The next conductor's handle is to be the last.
                Ran::Visited => drop(submitted),
            }
            if !stay() {
                wanted = role.leave();
                break;
            }
        }
        self.shared.nap().end();
        wanted
    }

    /// Leaves the role until a counter has a value. If it has it by now, the role is back.
    fn park<'a>(
        self: &'a Arc<Self>,
        role: Conductor<'a, Submitted>,
        counter: &Counter,
        value: u64,
    ) -> Option<Conductor<'a, Submitted>> {
        role.park();
        let who = Arc::clone(self) as Arc<dyn Wake>;
        // The loss is looked at after the line is parked, and `Shared::lose` looks for parked lines after it is there.
        if counter.watch(value, &who) && !self.shared.loss.is_lost() {
            return None;
        }
        if self.line.unpark() { self.line.claim() } else { None }
    }

    /// A conductor is wanted after this thread, which keeps its slot.
    fn hand_over(self: &Arc<Self>, slot: &mut Slot) {
        // No thread could be started: there is nobody but us.
        if !self.shared.post(self)
            && let Some(role) = self.line.claim()
        {
            self.conduct(role, slot, || true, None);
        }
    }

    /// Runs a batch from where it was left; not at all on a lost device.
    fn run(self: &Arc<Self>, submitted: &Submitted, slot: &mut Slot, mut visit: Option<&mut Visit>) -> Ran {
        if let Err(lost) = self.shared.loss.check() {
            return Ran::Done(Err(lost));
        }
        if let Some(target) = submitted.batch.waits.iter().find(|(counter, value)| !counter.reached(*value)) {
            return Ran::Until(target.clone());
        }
        // Conductors come one after the other: nobody waits for the lock.
        let At { recording: first, mut phase, mut left } = std::mem::take(&mut *submitted.at.lock());
        for (r, recording) in submitted.batch.recordings.iter().enumerate().skip(first) {
            for p in phase..recording.phases.len() {
                if let Err(lost) = self.shared.loss.check() {
                    return Ran::Done(Err(lost));
                }
                if let Some(counter) = unset_event(&recording.phases[p]) {
                    *submitted.at.lock() = At { recording: r, phase: p, left: None };
                    return Ran::Until((counter, 1));
                }
                if let Some(visit) = &mut visit {
                    if visit.is_over() {
                        return self.end_visit(submitted, At { recording: r, phase: p, left: None });
                    }
                    if !submitted.ends_with(r, p) {
                        visit.started();
                    }
                }
                make_ready(&recording.phases[p]);
                self.progress.begin(r, p);
                let work = (recording, p, left.take());
                let left = phase::run(&self.shared, work, &self.progress, slot, visit.as_deref_mut());
                self.progress.end();
                if left.is_some() {
                    return self.end_visit(submitted, At { recording: r, phase: p, left });
                }
            }
            phase = 0;
        }
        Ran::Done(self.shared.loss.check())
    }

    /// Notes where the next conductor goes on with a batch that takes longer than was thought.
    fn end_visit(&self, submitted: &Submitted, at: At) -> Ran {
        *submitted.at.lock() = at;
        for work in submitted.batch.recordings.iter().flat_map(|recording| recording.phases.commands()) {
            if let Work::Dispatch(dispatch) = work {
                self.shared.costs.forget(&dispatch.bound.code);
            }
        }
        Ran::Visited
    }

    /// How far this queue is; for the watchdog.
    pub(super) fn mark(&self) -> Mark {
        self.progress.mark()
    }

    /// The threads that run units of this queue; for the watchdog.
    pub(super) fn threads(&self) -> Vec<Thread> {
        self.progress.threads()
    }

    /// What runs now ran too long; for the watchdog, before it ends it.
    pub(super) fn blame(&self) {
        self.progress.blame();
    }

    /// Names what is running; for the watchdog.
    pub(super) fn running(&self) -> String {
        let (recording, phase) = self.progress.place();
        let names = self.line.look(|submitted| {
            let recording = submitted.batch.recordings.get(recording);
            recording.map(|recording| names(recording, phase)).unwrap_or_default()
        });
        names.filter(|names| !names.is_empty()).unwrap_or_else(|| "a transfer".to_owned())
    }

    /// Waits until everything submitted so far has retired and its fences are signalled; works meanwhile.
    pub(crate) fn wait_idle(self: &Arc<Self>) -> Result<(), DeviceError> {
        self.shared.loss.check_origin()?;
        let serial = self.line.submitted();
        if !self.help(&|| self.line.settled() >= serial) {
            self.line.wait_settled(serial);
        }
        self.shared.loss.check()
    }

    /// Serial of the last batch that has retired: what it owned is dropped, unless others own it too. Never goes back.
    pub(crate) fn retired(&self) -> u64 {
        self.line.retired()
    }

    /// Works on this queue until `done`. `false` if there was nothing to do for this thread: it may sleep.
    pub(crate) fn help(self: &Arc<Self>, done: &dyn Fn() -> bool) -> bool {
        for _ in 0..WAIT_LOOKS {
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

    /// Becomes conductor or joins the phase that runs; whether there was something to do.
    fn help_once(self: &Arc<Self>, done: &dyn Fn() -> bool) -> bool {
        let Some(mut held) = self.shared.claim() else { return false };
        if let Some(role) = self.line.claim() {
            if self.conduct(role, &mut held.slot, || !done() && !self.shared.board.is_crowded(), None) {
                self.hand_over(&mut held.slot);
            }
            return true;
        }
        let Some(member) = self.shared.board.join(phase::owner(&self.progress)) else { return false };
        phase::member_of(&self.shared, member, &mut held.slot);
        true
    }

    /// Drops what the batch owns, then says that it has retired, then signals its semaphores and its fence, then lets go who
    /// waits for idle.
    fn retire(&self, role: &Conductor<'_, Submitted>, submitted: Arc<Submitted>, result: Result<(), DeviceError>) {
        role.pop();
        let (serial, batch) = (submitted.serial, &submitted.batch);
        let (fence, signals) = (batch.fence.clone(), batch.signals.clone());
        // A destructor that panics must not take the queue with it.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(submitted)));
        role.retire(serial);
        // On a lost device the loss wakes who waits for them.
        if !self.shared.loss.is_lost() {
            signals.iter().for_each(|(counter, value)| counter.raise(*value));
        }
        let result = result.and_then(|()| {
            dropped.map_err(|panic| DeviceError::DeviceLost(format!("a destructor panicked: {}", said(&*panic))))
        });
        fence.inspect(|fence| fence.settle(result));
        role.settle(serial);
    }
}

impl Submitted {
    /// Whether nothing comes after this phase.
    fn ends_with(&self, recording: usize, phase: usize) -> bool {
        let recordings = &self.batch.recordings;
        recording + 1 == recordings.len() && phase + 1 == recordings[recording].phases.len()
    }
}

impl Wake for QueueState {
    /// What the batch in front waits for may have happened, or the device is lost.
    fn wake(self: Arc<Self>) {
        if self.line.unpark() && !self.shared.post(&self) {
            self.serve_inline(None);
        }
    }
}

/// Compiles what the phase runs and what is not compiled yet: that takes as long as it takes, and counts for no time limit.
fn make_ready(phase: &[Work]) {
    for work in phase {
        if let Work::Dispatch(dispatch) = work {
            // Who runs the kernel meets the same panic, and loses the device.
            let _ = catch_unwind(AssertUnwindSafe(|| dispatch.bound.code.make_ready()));
        }
    }
}

/// An event that the phase waits for, and that is not set.
fn unset_event(phase: &[Work]) -> Option<Arc<Counter>> {
    let Some(Work::WaitEvents(events)) = phase.first() else { return None };
    events.iter().find(|event| !event.reached(1)).cloned()
}

/// The kernels of a phase, each once, the first few.
fn names(recording: &Recording, phase: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    if phase >= recording.phases.len() {
        return String::new();
    }
    for work in &recording.phases[phase] {
        if let Work::Dispatch(dispatch) = work
            && !names.contains(&&*dispatch.bound.name)
        {
            names.push(&dispatch.bound.name);
        }
        if names.len() > 3 {
            break;
        }
    }
    names.iter().map(|name| format!("kernel `{name}`")).collect::<Vec<_>>().join(" or ")
}

//! Runs one phase: alone if it is small, with a crew if it is worth waking other threads.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::crew::{Crew, Member};
use super::observe::Observer;
use super::plan::PhasePlan;
use super::progress::QueueProgress;
use super::recording::Recording;
use super::run::{BatchPart, Halt, Run};
use super::shared::{Shared, Slot};
use super::visit::Visit;
use super::work::Work;

/// Nanoseconds of work worth waking a sleeping thread for: waking alone takes some 40 µs.
pub(super) const SHARE_COLD: u64 = 60_000;
/// Nanoseconds of work worth sharing with a thread that spins for it.
const SHARE_WARM: u64 = 15_000;
/// Nanoseconds of work per additional thread.
const PER_MEMBER: u64 = 20_000;
/// Units that one thread may take at once before their cost is known, even if fewer would be left for others.
const MIN_CHUNK_UNITS: u64 = 4;

/// A phase that a visit left in the middle.
#[derive(Debug)]
pub(super) struct PartialPhase {
    plan: PhasePlan,
    /// The number of units that have run: the first ones.
    done: u64,
}

/// Payload of a crew.
#[derive(Debug)]
pub(super) struct SharedPhase {
    recording: Arc<Recording>,
    phase: usize,
    of: BatchPart,
    plan: PhasePlan,
    progress: Arc<QueueProgress>,
}

/// Identifies a queue on the board, by the address of its progress.
pub(super) fn owner(progress: &Arc<QueueProgress>) -> usize {
    Arc::as_ptr(progress).addr()
}

/// A phase that a conductor runs, with the conductor's slot and what the phase needs of the queue and the executor.
pub(super) struct PhaseRun<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) recording: &'a Arc<Recording>,
    /// Index of the phase in the recording.
    pub(super) phase: usize,
    /// Its commands.
    pub(super) commands: &'a [Work],
    /// The batch, for observers.
    pub(super) of: &'a BatchPart,
    /// The queue's.
    pub(super) progress: &'a Arc<QueueProgress>,
    pub(super) slot: &'a mut Slot,
    /// The submitter's time, if the conductor is the thread that submitted the batch.
    pub(super) visit: Option<&'a mut Visit>,
}

impl PhaseRun<'_> {
    /// Runs the phase, or the rest of it that was `left`, to its end or until the device is lost. A visit that runs out
    /// of time leaves the rest there.
    pub(super) fn run(mut self, left: &mut Option<PartialPhase>) {
        let mut done = 0;
        // A phase that was left keeps its plan: indirect sizes must not be read again.
        match left.take() {
            Some(left) => (self.slot.plan, done) = (left.plan, left.done),
            None => self.slot.plan.count(self.commands),
        }
        let units = self.slot.plan.units();
        let _working = Working::new(self.shared, self.slot.number);
        // A visitor calls no other threads.
        let seats = if self.visit.is_some() { 0 } else { self.seats(units - done) };
        if seats == 0 {
            done = self.alone(done..units);
        }
        if done < units && !self.shared.loss.is_lost() {
            if self.visit.is_some() {
                *left = Some(PartialPhase { plan: std::mem::take(&mut self.slot.plan), done });
                return;
            }
            let seats = seats.max(max_seats(self.shared, units - done));
            self.with_crew(done..units, seats);
        }
    }

    /// How many threads to call: none if the phase is known to be small. Unknown kernels are assumed to be long.
    fn seats(&self, units: u64) -> usize {
        let shared = self.shared;
        if units < 2 || shared.workers() == 1 {
            return 0;
        }
        let max = max_seats(shared, units);
        let enough = PER_MEMBER.saturating_mul(max as u64).saturating_add(SHARE_COLD);
        let threshold = if shared.board.has_spinners() { SHARE_WARM } else { SHARE_COLD };
        match shared.costs.phase(self.commands, &self.slot.plan, enough) {
            Some(cost) if cost < threshold => 0,
            Some(cost) => max.min((cost / PER_MEMBER).max(1) as usize),
            None => max,
        }
    }

    /// Runs units alone until all are done, until they prove to be worth a crew, or until the visit is over. Returns
    /// the first unit that has not run.
    fn alone(&mut self, Range { start, end: units }: Range<u64>) -> u64 {
        let Self { shared, recording, phase, commands, of, progress, ref mut slot, ref mut visit } = *self;
        let (several, workers) = (units - start > 1, shared.workers() as u64);
        // A visitor that is out of time leaves even the last unit; otherwise a single unit cannot be shared.
        let (max_units, min_left) = visit.as_ref().map_or((u64::MAX, 2), |visit| (visit.max_units(), 1));
        let started = match visit {
            Some(visit) if several => Some(visit.started()),
            None if several && workers > 1 => Some(Instant::now()),
            _ => None,
        };
        let (mut done, mut chunk) = (start, if started.is_some() { 1 } else { units - start });
        while done < units {
            let end = units.min(done + chunk);
            let run = Run { shared, recording, phase, commands, of, plan: &slot.plan, progress, slot: slot.number };
            if let Err(halt) = run.units(done..end, &mut slot.scratch, &mut slot.count) {
                report(shared, halt);
                break;
            }
            done = end;
            if done == units {
                break;
            }
            // At most what a crew's thread would take, since the cost of the next units is unknown.
            chunk = chunk.saturating_mul(2).min(((units - done) / (4 * workers)).max(MIN_CHUNK_UNITS)).min(max_units);
            if units - done >= min_left && started.is_some_and(|at| at.elapsed() > Duration::from_nanos(SHARE_COLD)) {
                break;
            }
        }
        done
    }

    /// Runs units together with up to `seats` other threads.
    fn with_crew(self, units: Range<u64>, seats: usize) {
        let Self { shared, recording, phase, of, progress, slot, .. } = self;
        let plan = std::mem::take(&mut slot.plan);
        let payload = Arc::new(SharedPhase {
            recording: Arc::clone(recording),
            phase,
            of: *of,
            plan,
            progress: Arc::clone(progress),
        });
        let crew = Crew::new(units, seats + 1, Arc::clone(&payload));
        let spawn = shared.board.open(&crew, seats, owner(&payload.progress));
        shared.spawn(spawn);
        while let Some(range) = crew.take() {
            if !payload.run(shared, range, slot) {
                break;
            }
        }
        // No thread can enter after this, so `disband` waits for a number of members that only falls.
        shared.board.close(&crew);
        crew.disband();
    }
}

/// Reports to the observer, if there is one, that a worker is in a phase, until the drop.
struct Working<'a> {
    observer: Option<&'a dyn Observer>,
    worker: usize,
}

impl<'a> Working<'a> {
    fn new(shared: &'a Shared, worker: usize) -> Self {
        let observer = shared.observer.as_deref();
        observer.inspect(|observer| observer.working(worker, true));
        Self { observer, worker }
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.observer.inspect(|observer| observer.working(self.worker, false));
    }
}

/// Number of threads that could help with this many units.
fn max_seats(shared: &Shared, units: u64) -> usize {
    (shared.workers() - 1).min(usize::try_from(units - 1).unwrap_or(usize::MAX))
}

/// Works as a member of a crew until its units are taken, or until another queue wants a conductor.
pub(super) fn member_of(shared: &Arc<Shared>, member: Member<SharedPhase>, slot: &mut Slot) {
    let Some(payload) = member.payload() else { return };
    let _working = Working::new(shared, slot.number);
    let _running = payload.progress.enter(slot.number);
    while let Some(range) = member.crew().take() {
        if !payload.run(shared, range, slot) {
            break;
        }
        if shared.board.is_crowded() {
            shared.board.vacate(member.crew());
            break;
        }
    }
}

impl SharedPhase {
    /// Runs a range of units; whether to continue.
    fn run(&self, shared: &Shared, range: Range<u64>, slot: &mut Slot) -> bool {
        let Self { recording, phase, of, plan, progress } = self;
        let commands = &recording.phases[*phase];
        let run = Run { shared, recording, phase: *phase, commands, of, plan, progress, slot: slot.number };
        match run.units(range, &mut slot.scratch, &mut slot.count) {
            Ok(()) => !shared.loss.is_lost(),
            Err(halt) => {
                report(shared, halt);
                false
            }
        }
    }
}

/// Loses the device, unless it is lost already and that is why the kernel ended.
fn report(shared: &Shared, halt: Halt) {
    shared.lose(match halt {
        Halt::Stopped(name) => format!("kernel `{name}` was stopped"),
        Halt::OutOfMemory(name) => format!("no memory for a worker to run kernel `{name}`"),
        Halt::Panicked(why) => why,
    });
}

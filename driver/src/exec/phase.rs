//! Runs one phase: alone if it is small, with a crew if it is worth waking somebody.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::crew::{Crew, Member};
use super::plan::Plan;
use super::progress::Progress;
use super::run::{Halt, Run};
use super::shared::{Shared, Slot};
use super::work::Recording;

/// Work worth waking a sleeping thread for: that alone takes some 40 µs.
const SHARE_COLD: u64 = 60_000;
/// Work worth sharing with a thread that spins for it.
const SHARE_WARM: u64 = 15_000;
/// Work for which one more thread is called.
const PER_MEMBER: u64 = 20_000;

/// What the members of a crew need.
#[derive(Debug)]
pub(super) struct SharedPhase {
    recording: Arc<Recording>,
    phase: usize,
    plan: Plan,
    progress: Arc<Progress>,
}

/// Tells on the board whose phase it is.
pub(super) fn owner(progress: &Arc<Progress>) -> usize {
    Arc::as_ptr(progress).addr()
}

/// Runs a phase to its end, or until the device is lost. `progress` is the queue's.
pub(super) fn run(
    shared: &Arc<Shared>,
    recording: &Arc<Recording>,
    phase: usize,
    progress: &Arc<Progress>,
    slot: &mut Slot,
) {
    let work = &recording.phases[phase];
    slot.plan.count(work);
    let units = slot.plan.units();
    let seats = seats(shared, recording, phase, &slot.plan, units);
    let done = if seats > 0 { 0 } else { alone(shared, (recording, phase), progress, slot, units) };
    if done < units && !shared.loss.is_lost() {
        let seats = seats.max(most_seats(shared, units - done));
        let plan = std::mem::take(&mut slot.plan);
        let payload =
            Arc::new(SharedPhase { recording: Arc::clone(recording), phase, plan, progress: Arc::clone(progress) });
        with_crew(shared, payload, done..units, seats, slot);
    }
}

/// Threads that could help with so many units.
fn most_seats(shared: &Shared, units: u64) -> usize {
    (shared.workers() - 1).min(usize::try_from(units - 1).unwrap_or(usize::MAX))
}

/// How many threads to call: none if the phase is known to be small. Unknown kernels are taken to be long.
fn seats(shared: &Shared, recording: &Recording, phase: usize, plan: &Plan, units: u64) -> usize {
    if units < 2 || shared.workers() == 1 {
        return 0;
    }
    let most = most_seats(shared, units);
    let enough = PER_MEMBER.saturating_mul(most as u64).saturating_add(SHARE_COLD);
    let threshold = if shared.board.has_spinners() { SHARE_WARM } else { SHARE_COLD };
    match shared.costs.phase(&recording.phases[phase], plan, enough) {
        Some(cost) if cost < threshold => 0,
        Some(cost) => most.min((cost / PER_MEMBER).max(1) as usize),
        None => most,
    }
}

/// Runs units alone, until all are done or it turns out that help is worth while; how many are done.
fn alone(
    shared: &Shared,
    (recording, phase): (&Recording, usize),
    progress: &Progress,
    slot: &mut Slot,
    units: u64,
) -> u64 {
    let started = (units > 1 && shared.workers() > 1).then(Instant::now);
    let (mut done, mut chunk) = (0, if started.is_some() { 1 } else { units });
    while done < units {
        let end = units.min(done + chunk);
        let run = Run { shared, recording, phase, plan: &slot.plan, progress, slot: slot.number };
        if let Err(halt) = run.units(done..end, &mut slot.scratch, &mut slot.count) {
            report(shared, halt);
            break;
        }
        done = end;
        chunk = chunk.saturating_mul(2);
        if units - done > 1 && started.is_some_and(|at| at.elapsed() > Duration::from_nanos(SHARE_COLD)) {
            break;
        }
    }
    done
}

fn with_crew(
    shared: &Arc<Shared>,
    payload: Arc<SharedPhase>,
    units: std::ops::Range<u64>,
    seats: usize,
    slot: &mut Slot,
) {
    let crew = Crew::new(units, seats + 1, Arc::clone(&payload));
    let spawn = shared.board.open(&crew, seats, owner(&payload.progress));
    shared.spawn(spawn);
    while let Some(range) = crew.take() {
        if !payload.run(shared, range, slot) {
            break;
        }
    }
    shared.board.close(&crew);
    crew.disband();
}

/// Works as a member of a crew until its units are gone, or a queue elsewhere wants a conductor.
pub(super) fn member_of(shared: &Arc<Shared>, member: Member<SharedPhase>, slot: &mut Slot) {
    let Some(payload) = member.payload() else { return };
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
    /// Runs a range of units; whether to go on.
    fn run(&self, shared: &Shared, range: std::ops::Range<u64>, slot: &mut Slot) -> bool {
        let (recording, phase) = (&self.recording, self.phase);
        let run = Run { shared, recording, phase, plan: &self.plan, progress: &self.progress, slot: slot.number };
        match run.units(range, &mut slot.scratch, &mut slot.count) {
            Ok(()) => !shared.loss.is_lost(),
            Err(halt) => {
                report(shared, halt);
                false
            }
        }
    }
}

/// Loses the device, unless it is lost already and the kernel ended because of that.
fn report(shared: &Shared, halt: Halt) {
    shared.lose(match halt {
        Halt::Stopped(name) => format!("kernel `{name}` was stopped"),
        Halt::OutOfMemory(name) => format!("no memory for a worker to run kernel `{name}`"),
        Halt::Panicked(why) => why,
    });
}

//! Runs one phase: alone if it is small, with a crew if it is worth waking somebody.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::crew::{Crew, Member};
use super::plan::Plan;
use super::progress::Progress;
use super::run::{Halt, Run};
use super::shared::{Shared, Slot};
use super::visit::Visit;
use super::work::Recording;

/// Work worth waking a sleeping thread for: that alone takes some 40 µs.
pub(super) const SHARE_COLD: u64 = 60_000;
/// Work worth sharing with a thread that spins for it.
const SHARE_WARM: u64 = 15_000;
/// Work for which one more thread is called.
const PER_MEMBER: u64 = 20_000;
/// Units that one thread may take alone before it knows that they are long, whatever is left for others.
const FEW_UNITS: u64 = 4;

/// A phase that was left in the middle.
#[derive(Debug)]
pub(super) struct Left {
    plan: Plan,
    /// Units that have been run, the first ones.
    done: u64,
}

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

/// Runs a phase, or what was `left` of it, to its end, or until the device is lost. `progress` is the queue's. On a visit
/// what is left when that is over comes back.
pub(super) fn run(
    shared: &Arc<Shared>,
    (recording, phase, left): (&Arc<Recording>, usize, Option<Left>),
    progress: &Arc<Progress>,
    slot: &mut Slot,
    visit: Option<&mut Visit>,
) -> Option<Left> {
    let mut done = 0;
    match left {
        Some(left) => (slot.plan, done) = (left.plan, left.done),
        None => slot.plan.count(&recording.phases[phase]),
    }
    let (units, visits) = (slot.plan.units(), visit.is_some());
    let seats = if visits { 0 } else { seats(shared, recording, phase, &slot.plan, units - done) };
    if seats == 0 {
        done = alone(shared, (recording, phase), progress, slot, done..units, visit);
    }
    if done < units && !shared.loss.is_lost() {
        let plan = std::mem::take(&mut slot.plan);
        if visits {
            return Some(Left { plan, done });
        }
        let seats = seats.max(most_seats(shared, units - done));
        let payload =
            Arc::new(SharedPhase { recording: Arc::clone(recording), phase, plan, progress: Arc::clone(progress) });
        with_crew(shared, payload, done..units, seats, slot);
    }
    None
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

/// Runs units alone, until all are done, it turns out that help is worth while, or the visit is over; up to which one.
fn alone(
    shared: &Shared,
    (recording, phase): (&Recording, usize),
    progress: &Progress,
    slot: &mut Slot,
    Range { start, end: units }: Range<u64>,
    visit: Option<&mut Visit>,
) -> u64 {
    let (several, workers) = (units - start > 1, shared.workers() as u64);
    // At the end a visitor leaves the last unit, too; of others nobody could help with one.
    let (most, least) = visit.as_ref().map_or((u64::MAX, 2), |visit| (visit.most_units(), 1));
    let started = match visit {
        Some(visit) if several => Some(visit.started()),
        None if several && workers > 1 => Some(Instant::now()),
        _ => None,
    };
    let (mut done, mut chunk) = (start, if started.is_some() { 1 } else { units - start });
    while done < units {
        let end = units.min(done + chunk);
        let run = Run { shared, recording, phase, plan: &slot.plan, progress, slot: slot.number };
        if let Err(halt) = run.units(done..end, &mut slot.scratch, &mut slot.count) {
            report(shared, halt);
            break;
        }
        done = end;
        // No more than a crew's thread would take, since nobody knows of the next units what they take.
        chunk = chunk.saturating_mul(2).min(((units - done) / (4 * workers)).max(FEW_UNITS)).min(most);
        if units - done >= least && started.is_some_and(|at| at.elapsed() > Duration::from_nanos(SHARE_COLD)) {
            break;
        }
    }
    done
}

fn with_crew(shared: &Arc<Shared>, payload: Arc<SharedPhase>, units: Range<u64>, seats: usize, slot: &mut Slot) {
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
    fn run(&self, shared: &Shared, range: Range<u64>, slot: &mut Slot) -> bool {
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

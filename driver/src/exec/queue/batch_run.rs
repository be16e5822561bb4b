//! One run of a batch: its phases in order, from where the conductor before left it, until it is done or must be left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{QueueState, Submitted};
use crate::error::DeviceError;
use crate::exec::observe::CommandId;
use crate::exec::phase::{PartialPhase, PhaseRun};
use crate::exec::run::BatchPart;
use crate::exec::shared::Slot;
use crate::exec::visit::Visit;
use crate::exec::work::Work;
use crate::sync::{Counter, Target};

/// A position in a batch.
#[derive(Debug, Default)]
pub(super) struct BatchPosition {
    recording: usize,
    phase: usize,
    /// The rest of the phase, if it was begun.
    left: Option<PartialPhase>,
}

/// Why a conductor stopped running a batch.
pub(super) enum ConductorStop {
    /// The batch is done, or the device is lost.
    Done(Result<(), DeviceError>),
    /// The batch or its next phase waits for this counter value.
    Until(Target),
    /// The visit is over.
    Visited,
}

impl QueueState {
    /// Runs a batch from where it was left; does nothing on a lost device.
    pub(super) fn run(
        self: &Arc<Self>,
        submitted: &Submitted,
        slot: &mut Slot,
        mut visit: Option<&mut Visit>,
    ) -> ConductorStop {
        if let Err(lost) = self.shared.loss.check() {
            return ConductorStop::Done(Err(lost));
        }
        if let Some(target) = submitted.batch.waits.iter().find(|(counter, value)| !counter.reached(*value)) {
            return ConductorStop::Until(target.clone());
        }
        let (id, log) = (self.id(submitted.serial), self.shared.log.as_deref());
        log.inspect(|log| log.started(id, &submitted.batch));
        // Uncontended: one conductor follows the other.
        let BatchPosition { recording: first, mut phase, mut left } = std::mem::take(&mut *submitted.position.lock());
        for (r, recording) in submitted.batch.recordings.iter().enumerate().skip(first) {
            let of = BatchPart { submission: id, recording: r };
            for p in phase..recording.phases.len() {
                if self.shared.loss.is_lost() {
                    return ConductorStop::Done(self.shared.loss.check());
                }
                let commands = &recording.phases[p];
                if let Some(counter) = unset_event(commands) {
                    *submitted.position.lock() = BatchPosition { recording: r, phase: p, left: None };
                    return ConductorStop::Until((counter, 1));
                }
                if let Some(visit) = &mut visit {
                    if visit.is_over() {
                        return self.end_visit(submitted, BatchPosition { recording: r, phase: p, left: None });
                    }
                    if !submitted.ends_with(r, p) {
                        visit.started();
                    }
                }
                if let (Some(log), None) = (log, &left) {
                    log.phase(CommandId { submission: id, recording: r, phase: p, command: 0 }, recording);
                }
                if let (Some(observer), Some(Work::WaitEvents(events)), None) =
                    (&self.shared.observer, commands.first(), &left)
                {
                    let wait = CommandId { submission: id, recording: r, phase: p, command: 0 };
                    observer.waited_for_events(wait, &events.iter().map(|event| event.serial()).collect::<Vec<_>>());
                }
                make_ready(commands);
                self.progress.begin(r, p);
                let run = PhaseRun {
                    shared: &self.shared,
                    recording,
                    phase: p,
                    commands,
                    of: &of,
                    progress: &self.progress,
                    slot: &mut *slot,
                    visit: visit.as_deref_mut(),
                };
                run.run(&mut left);
                self.progress.end();
                if left.is_some() {
                    return self.end_visit(submitted, BatchPosition { recording: r, phase: p, left });
                }
            }
            phase = 0;
            let phases = recording.phases.len();
            log.inspect(|log| {
                log.phase(CommandId { submission: id, recording: r, phase: phases, command: 0 }, recording)
            });
        }
        log.inspect(|log| log.ended(id, &submitted.batch));
        ConductorStop::Done(self.shared.loss.check())
    }

    /// Notes where the next conductor continues with a batch that takes longer than was estimated.
    fn end_visit(&self, submitted: &Submitted, position: BatchPosition) -> ConductorStop {
        *submitted.position.lock() = position;
        for work in submitted.batch.recordings.iter().flat_map(|recording| recording.phases.commands()) {
            if let Work::Dispatch(dispatch) = work {
                self.shared.costs.forget(&dispatch.state.code);
            }
        }
        ConductorStop::Visited
    }
}

impl Submitted {
    /// Whether this phase is the last.
    fn ends_with(&self, recording: usize, phase: usize) -> bool {
        let recordings = &self.batch.recordings;
        recording + 1 == recordings.len() && phase + 1 == recordings[recording].phases.len()
    }
}

/// Compiles kernels of the phase that are not compiled yet. Done before the phase starts, so that no time limit counts
/// it.
fn make_ready(phase: &[Work]) {
    for work in phase {
        if let Work::Dispatch(dispatch) = work {
            // The thread that runs the kernel meets the same panic, and loses the device.
            let _ = catch_unwind(AssertUnwindSafe(|| dispatch.state.code.make_ready()));
        }
    }
}

/// An event that the phase waits for and that is not set.
fn unset_event(phase: &[Work]) -> Option<Arc<Counter>> {
    let Some(Work::WaitEvents(events)) = phase.first() else { return None };
    events.iter().find(|event| !event.reached(1)).cloned()
}

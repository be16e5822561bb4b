//! Runs units of a phase on the calling thread.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Instant;

use spelter_shaders::abi::{DispatchArgs, Outcome, Stop};
use spelter_shaders::back::{Scratch, Workgroups};

use super::observe::{Chunk, CommandId, DispatchInfo, SubmissionId};
use super::plan::{CommandRange, PhasePlan, UNIT_BYTES, rows_of_unit};
use super::progress::QueueProgress;
use super::recording::Recording;
use super::shared::Shared;
use super::work::{DispatchWork, Work};

/// Why units have not run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// This kernel saw the stop flag.
    Stopped(Arc<str>),
    /// There was no memory for what a worker needs to run this kernel.
    OutOfMemory(Arc<str>),
    /// A kernel panicked, which is a bug of this driver; the panic's message.
    Panicked(String),
}

/// A recording of a batch, for observers.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchPart {
    pub(super) submission: SubmissionId,
    /// Index of the recording in the batch.
    pub(super) recording: usize,
}

/// A phase that runs.
pub(super) struct Run<'a> {
    /// The executor, for its stop flag and costs.
    pub(super) shared: &'a Shared,
    /// The recording that has the phase.
    pub(super) recording: &'a Recording,
    /// Index of the phase.
    pub(super) phase: usize,
    /// The commands of the phase.
    pub(super) commands: &'a [Work],
    /// The batch, for observers.
    pub(super) of: &'a BatchPart,
    /// Their units.
    pub(super) plan: &'a PhasePlan,
    /// The counts for the watchdog.
    pub(super) progress: &'a QueueProgress,
    /// Number of the thread's slot.
    pub(super) slot: usize,
}

impl Run<'_> {
    /// Runs a range of units in order. Units of a command that was halted may have run in part. `count` is the caller's
    /// counter of measurements.
    pub(super) fn units(&self, range: Range<u64>, scratch: &mut Scratch, count: &mut u64) -> Result<(), Halt> {
        self.plan.split(range).try_for_each(|range| self.observed(&range, scratch, count))
    }

    fn observed(&self, range: &CommandRange, scratch: &mut Scratch, count: &mut u64) -> Result<(), Halt> {
        let Some(observer) = &self.shared.observer else { return self.run(range, scratch, count) };
        let (command, groups) = (range.command, range.groups);
        let BatchPart { submission, recording } = *self.of;
        let (work, id) = (&self.commands[command], CommandId { submission, recording, phase: self.phase, command });
        let (units, start) = (range.units.end - range.units.start, Instant::now());
        if let Work::Event { event, set: true } = work
            && units > 0
            && !event.reached(1)
        {
            observer.sets_event(Some(id), event.serial());
        }
        let result = self.run(range, scratch, count);
        if units > 0 {
            let dispatch = match work {
                Work::Dispatch(dispatch) => Some(DispatchInfo { pipeline: dispatch.state.pipeline, groups }),
                _ => None,
            };
            observer.worked(&Chunk {
                worker: self.slot,
                command: id,
                name: &self.recording.name(self.phase, command),
                dispatch,
                bytes: work.touched_bytes(),
                units,
                start,
                end: Instant::now(),
            });
        }
        result
    }

    fn run(&self, range: &CommandRange, scratch: &mut Scratch, count: &mut u64) -> Result<(), Halt> {
        if range.units.start == 0 && !range.units.is_empty() {
            // Only one thread gets the first unit, so each command is counted once.
            self.progress.enter_command(self.slot);
            if let Some(log) = &self.shared.log {
                let BatchPart { submission, recording } = *self.of;
                log.command(
                    CommandId { submission, recording, phase: self.phase, command: range.command },
                    self.recording,
                );
            }
        }
        let (at, len) = (range.units.start * UNIT_BYTES, (range.units.end - range.units.start) * UNIT_BYTES);
        match &self.commands[range.command] {
            Work::Dispatch(dispatch) => return self.dispatch(dispatch, range, scratch, count),
            Work::Copy { from, to } => to.copy_from(at, *from, at, len),
            Work::Fill { to, word } => to.fill(at, len, *word),
            Work::Update { to, bytes } => to.write(0, bytes),
            Work::Event { event, set: true } => event.raise(1),
            Work::Event { event, set: false } => event.reset(),
            Work::WaitEvents(_) => {}
            Work::Query(query) => query.run(),
            Work::Rows(work) => {
                for row in rows(&range.units, work.to.rows, work.row_bytes) {
                    work.to.slice.copy_from(work.to.at(row), work.from.slice, work.from.at(row), work.row_bytes);
                }
            }
            Work::Clear(work) => {
                for row in rows(&range.units, work.to.rows, work.row.len() as u64) {
                    work.to.slice.write(work.to.at(row), &work.row);
                }
            }
        }
        Ok(())
    }

    fn dispatch(
        &self,
        work: &DispatchWork,
        range: &CommandRange,
        scratch: &mut Scratch,
        count: &mut u64,
    ) -> Result<(), Halt> {
        let (groups, code) = (range.units.end - range.units.start, &work.state.code);
        let clock = self.shared.costs.start(code, count);
        // A kernel that panicked leaves its scratch and its buffers in any state, but the device is lost, so they are
        // not read.
        let result = catch_unwind(AssertUnwindSafe(|| run_workgroups(work, range, self.shared, scratch)));
        if matches!(result, Ok(Err(Halt::Stopped(_)))) && self.shared.loss.is_lost() && self.progress.is_blamed() {
            self.shared.loss.explain(&where_it_was(work, scratch.stopped.take()));
        }
        if let Some(started) = clock {
            self.shared.costs.stop(code, started.elapsed(), groups);
        }
        result.unwrap_or_else(|panic| {
            Err(Halt::Panicked(format!("kernel `{}` panicked: {}", work.state.name, panic_message(&*panic))))
        })
    }
}

/// Location of a kernel that ran too long: its loop and invocation.
fn where_it_was(work: &DispatchWork, stopped: Option<Stop>) -> String {
    let Some(Stop { word, workgroup, invocation }) = stopped else { return String::new() };
    let triple = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    let source = work.state.source.as_ref().and_then(Weak::upgrade);
    // A panic while the shader is read again must not lose the rest of the message.
    let place = || word.and_then(|word| source?.location(word));
    let place =
        catch_unwind(AssertUnwindSafe(place)).ok().flatten().map_or(String::new(), |place| format!(" at {place}"));
    match invocation {
        Some(invocation) => format!(": a loop{place} did not end in invocation {}", triple(invocation)),
        None => format!(": a loop{place} did not end in workgroup {}", triple(workgroup)),
    }
}

/// The rows of a range of units.
fn rows(units: &Range<u64>, all: u64, row_bytes: u64) -> Range<u64> {
    let each = rows_of_unit(row_bytes);
    (units.start * each).min(all)..(units.end * each).min(all)
}

fn run_workgroups(
    work: &DispatchWork,
    range: &CommandRange,
    shared: &Shared,
    scratch: &mut Scratch,
) -> Result<(), Halt> {
    let state = &*work.state;
    // Read now: buffers may be created and destroyed while commands are in flight.
    let with_ranges =
        state.addresses.as_ref().map(|heap| [&*state.buffers, &*heap.addresses().address_ranges()].concat());
    let args = DispatchArgs {
        buffers: with_ranges.as_deref().unwrap_or(&state.buffers),
        images: &state.images,
        push: &state.push,
        num_workgroups: range.groups,
        stop: shared.loss.stop(),
    };
    let workgroups = Workgroups::new(range.units.clone(), range.groups, work.base).scheduled(shared.schedule());
    let outcome = state.code.run_all(&args, workgroups, scratch);
    state.code.settle();
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Stopped => Err(Halt::Stopped(Arc::clone(&state.name))),
        Outcome::OutOfMemory => Err(Halt::OutOfMemory(Arc::clone(&state.name))),
    }
}

/// The message of a panic, if it was text.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

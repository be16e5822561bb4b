//! Runs units of a phase on the calling thread.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Weak};
use std::time::Instant;

use spelter_shaders::abi::{DispatchArgs, Outcome, Stop};
use spelter_shaders::back::{Scratch, Workgroups};

use super::plan::{PIECE, Piece, Plan, rows_of_unit};
use super::progress::Progress;
use super::shared::Shared;
use super::work::{DispatchWork, Recording, Work};

/// Why units were left undone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// This kernel saw the stop flag.
    Stopped(Arc<str>),
    /// There was no memory for what a worker needs to run this kernel.
    OutOfMemory(Arc<str>),
    /// A kernel panicked, which is a fault of ours; what it said.
    Panicked(String),
}

/// A phase that runs.
pub(super) struct Run<'a> {
    /// Whose stop flag and costs.
    pub(super) shared: &'a Shared,
    /// The commands are of this recording.
    pub(super) recording: &'a Recording,
    /// The number of their phase.
    pub(super) phase: usize,
    /// Their units.
    pub(super) plan: &'a Plan,
    /// What the watchdog looks at.
    pub(super) progress: &'a Progress,
    /// The number of the thread's slot.
    pub(super) slot: usize,
}

impl Run<'_> {
    /// Runs a range of units in order. The units of a command that was halted may have run in part. `count` is the
    /// caller's count of measurements.
    pub(super) fn units(&self, range: Range<u64>, scratch: &mut Scratch, count: &mut u64) -> Result<(), Halt> {
        self.progress.enter(self.slot);
        let result = self.plan.pieces(range).try_for_each(|piece| self.piece(piece, scratch, count));
        self.progress.leave(self.slot);
        result
    }

    fn piece(&self, piece: Piece, scratch: &mut Scratch, count: &mut u64) -> Result<(), Halt> {
        let Some(observer) = &self.shared.observer else { return self.run(piece, scratch, count) };
        let (command, units, start) = (piece.command, piece.units.end - piece.units.start, Instant::now());
        let result = self.run(piece, scratch, count);
        if units > 0 {
            observer.worked(self.slot, &self.recording.name(self.phase, command), units, start, Instant::now());
        }
        result
    }

    fn run(&self, piece: Piece, scratch: &mut Scratch, count: &mut u64) -> Result<(), Halt> {
        if piece.units.start == 0 && !piece.units.is_empty() {
            // One thread gets the first unit: each command is counted once.
            self.progress.enter_command(self.slot);
        }
        let (at, len) = (piece.units.start * PIECE, (piece.units.end - piece.units.start) * PIECE);
        match &self.recording.phases[self.phase][piece.command] {
            Work::Dispatch(dispatch) => return self.dispatch(dispatch, piece, scratch, count),
            Work::Copy { from, to } => to.copy_from(at, *from, at, len),
            Work::Fill { to, word } => to.fill(at, len, *word),
            Work::Update { to, bytes } => to.write(0, bytes),
            Work::Event { event, set: true } => event.raise(1),
            Work::Event { event, set: false } => event.reset(),
            Work::WaitEvents(_) => {}
            Work::Query(query) => query.run(),
            Work::Rows(work) => {
                for row in rows(&piece.units, work.to.rows, work.row_bytes) {
                    work.to.slice.copy_from(work.to.at(row), work.from.slice, work.from.at(row), work.row_bytes);
                }
            }
            Work::Clear(work) => {
                for row in rows(&piece.units, work.to.rows, work.row.len() as u64) {
                    work.to.slice.write(work.to.at(row), &work.row);
                }
            }
        }
        Ok(())
    }

    fn dispatch(&self, work: &DispatchWork, piece: Piece, scratch: &mut Scratch, count: &mut u64) -> Result<(), Halt> {
        let (groups, code) = (piece.units.end - piece.units.start, &work.bound.code);
        let clock = self.shared.costs.start(code, count);
        // A kernel that panicked leaves its scratch and its buffers in any state: the device is lost, nobody reads them.
        let result = catch_unwind(AssertUnwindSafe(|| run_workgroups(work, piece, self.shared.loss.stop(), scratch)));
        if matches!(result, Ok(Err(Halt::Stopped(_)))) && self.shared.loss.is_lost() && self.progress.is_blamed() {
            self.shared.loss.explain(&where_it_was(work, scratch.stopped.take()));
        }
        if let Some(started) = clock {
            self.shared.costs.stop(code, started.elapsed(), groups);
        }
        result.unwrap_or_else(|panic| {
            Err(Halt::Panicked(format!("kernel `{}` panicked: {}", work.bound.name, said(&*panic))))
        })
    }
}

/// Where a kernel was that ran too long.
fn where_it_was(work: &DispatchWork, stopped: Option<Stop>) -> String {
    let Some(Stop { word, workgroup, invocation }) = stopped else { return String::new() };
    let triple = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    let source = work.bound.source.as_ref().and_then(Weak::upgrade);
    // Reading the shader again must not lose what is known.
    let place = || word.and_then(|word| source?.place(word));
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

fn run_workgroups(work: &DispatchWork, piece: Piece, stop: &AtomicU32, scratch: &mut Scratch) -> Result<(), Halt> {
    let bound = &*work.bound;
    // As they are now: buffers may come and go while commands are on their way.
    let with_pieces = bound.addresses.as_ref().map(|heap| [&*bound.buffers, &*heap.addresses().pieces()].concat());
    let args = DispatchArgs {
        buffers: with_pieces.as_deref().unwrap_or(&bound.buffers),
        images: &bound.images,
        push: &bound.push,
        num_workgroups: piece.groups,
        stop,
    };
    let workgroups = Workgroups::new(piece.units, piece.groups, work.base);
    let outcome = bound.code.run_all(&args, workgroups, scratch);
    bound.code.settle();
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Stopped => Err(Halt::Stopped(Arc::clone(&bound.name))),
        Outcome::OutOfMemory => Err(Halt::OutOfMemory(Arc::clone(&bound.name))),
    }
}

/// What a panic said, if it was text.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

//! Runs units of a phase on the calling thread.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::Scratch;

use super::plan::{PIECE, Piece, Plan};
use super::work::{DispatchWork, Work};

/// Why units were left undone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The stop flag was seen.
    Stopped,
    /// A kernel panicked, which is a fault of ours; what it said.
    Panicked(String),
}

/// Runs the units `range` of a phase, in order. Units of a command that was halted may have run in part.
pub(super) fn run(
    phase: &[Work],
    plan: &Plan,
    range: Range<u64>,
    stop: &AtomicU32,
    scratch: &mut Scratch,
) -> Result<(), Halt> {
    plan.pieces(range).try_for_each(|piece| run_piece(&phase[piece.command], piece, stop, scratch))
}

fn run_piece(work: &Work, piece: Piece, stop: &AtomicU32, scratch: &mut Scratch) -> Result<(), Halt> {
    let bytes = (piece.units.start * PIECE, (piece.units.end - piece.units.start) * PIECE);
    match work {
        Work::Dispatch(dispatch) => return run_caught(dispatch, piece, stop, scratch),
        Work::Copy { from, to } => to.copy_from(bytes.0, *from, bytes.0, bytes.1),
        Work::Fill { to, word } => to.fill(bytes.0, bytes.1, *word),
        Work::Update { to, bytes } => to.write(0, bytes),
    }
    Ok(())
}

fn run_caught(work: &DispatchWork, piece: Piece, stop: &AtomicU32, scratch: &mut Scratch) -> Result<(), Halt> {
    // A kernel that panicked leaves its scratch and its buffers in any state: the device is lost, nobody reads them.
    let result = catch_unwind(AssertUnwindSafe(|| run_workgroups(work, piece, stop, scratch)));
    result.unwrap_or_else(|panic| Err(Halt::Panicked(format!("kernel `{}` panicked: {}", work.name, said(&*panic)))))
}

fn run_workgroups(work: &DispatchWork, piece: Piece, stop: &AtomicU32, scratch: &mut Scratch) -> Result<(), Halt> {
    let args = DispatchArgs { buffers: &work.buffers, push: &work.push, num_workgroups: piece.groups, stop };
    let mut at = position(piece.units.start, piece.groups);
    for _ in piece.units {
        let workgroup = std::array::from_fn(|i| work.base[i].wrapping_add(at[i]));
        if work.code.run(&args, workgroup, scratch) == Outcome::Stopped {
            return Err(Halt::Stopped);
        }
        step(&mut at, piece.groups);
    }
    Ok(())
}

/// The workgroup with a number: x runs fastest.
fn position(unit: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [unit % x, unit / x % y, unit / x / y].map(|at| at as u32)
}

fn step(at: &mut [u32; 3], groups: [u32; 3]) {
    at[0] += 1;
    if at[0] == groups[0] {
        (at[0], at[1]) = (0, at[1] + 1);
    }
    if at[1] == groups[1] {
        (at[1], at[2]) = (0, at[2] + 1);
    }
}

/// What a panic said, if it was text.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stepping_agrees_with_positions() {
        let groups = [3, 2, 4];
        let mut at = [0; 3];
        for unit in 0..24 {
            assert_eq!(at, position(unit, groups));
            step(&mut at, groups);
        }
    }
}

//! Ways to run a kernel: one trait, one implementation for each.

pub mod interp;
mod workgroups;
pub mod x86;

pub use workgroups::Workgroups;

use crate::abi::{DispatchArgs, Outcome, Stop};
use crate::host::Host;

/// A kernel made ready to run on this machine.
pub trait Code: Send + Sync + std::fmt::Debug {
    /// Runs one workgroup to its end, or until the stop flag is seen. `workgroup` is the `WorkgroupId`, the dispatch's
    /// base included; below [`MAX_WORKGROUPS`](crate::abi::MAX_WORKGROUPS) in each dimension.
    fn run(&self, args: &DispatchArgs<'_>, workgroup: [u32; 3], scratch: &mut Scratch) -> Outcome;

    /// Runs workgroups one after the other, until all are done or one is not.
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        let mut outcomes = workgroups.map(|workgroup| self.run(args, workgroup, scratch));
        outcomes.find(|&outcome| outcome != Outcome::Done).unwrap_or(Outcome::Done)
    }

    /// Steps that a workgroup takes at most, whatever its data, if that is known: a step takes a nanosecond, and mostly far less.
    fn most_steps(&self) -> Option<u64> {
        None
    }

    /// Returns when workgroups can run at once: what compiles behind its callers' backs may not be there yet.
    fn make_ready(&self) {}

    /// Orders what this thread's workgroups wrote before all that the thread writes from now on: to be called after the last
    /// of them, before another thread is told that they are done.
    fn settle(&self) {}

    /// Bytes of which another process can make the same code ([`x86::Program::load`]), if it is machine code.
    fn store(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Memory that a worker keeps between workgroups: shared memory, private memory, registers. Grows to what the largest
/// kernel needs; belongs to one worker at a time.
#[derive(Debug, Default)]
pub struct Scratch {
    /// What kernels may ask for while they run.
    pub host: Host,
    /// Words for the back end to lay out as it likes.
    pub words: Vec<u64>,
    /// For machine code with large frames.
    pub stack: x86::Stack,
    /// Where the kernel was that was last stopped in a loop ([`Outcome::Stopped`]).
    pub stopped: Option<Stop>,
}

/// Makes at least so many words; nothing if there is no memory for them.
fn grow(words: &mut Vec<u64>, needed: usize) -> Option<()> {
    words.try_reserve(needed.saturating_sub(words.len())).ok()?;
    words.resize(needed.max(words.len()), 0);
    Some(())
}

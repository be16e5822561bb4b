//! Back ends: one trait for compiled kernels, one implementation per back end.

pub mod bytes;
pub mod interp;
pub(crate) mod watch;
mod workgroups;
pub mod x86;

pub use workgroups::Workgroups;

use crate::abi::{DispatchArgs, Outcome, Stop};
use crate::check::observer::Observer;
use crate::host::Host;

/// A kernel that is ready to run on this machine.
pub trait Code: Send + Sync + std::fmt::Debug {
    /// Runs one workgroup until it ends or the stop flag is set. `workgroup` is the `WorkgroupId`, including the
    /// dispatch's base; it is below [`MAX_WORKGROUPS`](crate::abi::MAX_WORKGROUPS) in each dimension.
    fn run(&self, args: &DispatchArgs<'_>, workgroup: [u32; 3], scratch: &mut Scratch) -> Outcome {
        self.run_all(args, Workgroups::one(workgroup), scratch)
    }

    /// Runs workgroups in order until all are done or one ends with another outcome. Their schedule is also that of
    /// subgroups and lanes; machine code follows it if it was compiled with
    /// [`Kernel::takes_schedule`](crate::ir::Kernel::takes_schedule).
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome;

    /// Upper bound of the steps of one workgroup for any data, if known. A step takes at most a nanosecond, mostly far
    /// less.
    fn max_steps(&self) -> Option<u64> {
        None
    }

    /// Blocks until workgroups can run immediately: a back end that compiles in the background may not have finished.
    fn make_ready(&self) {}

    /// Orders all stores of this thread's workgroups before its later stores. To be called after the last of these
    /// workgroups and before their completion is reported to another thread.
    fn settle(&self) {}

    /// Serialized machine code from which another process can build the same program ([`x86::MachineCode::load`]);
    /// `None` for back ends without machine code.
    fn store(&self) -> Option<Vec<u8>> {
        None
    }
}

/// A kernel with checks that is ready to run on this machine.
pub trait ObservedCode: Send + Sync + std::fmt::Debug {
    /// As [`Code::run_all`]; what the checks of the kernel see is reported to the observer, as it happens.
    fn run_observed(
        &self,
        args: &DispatchArgs<'_>,
        workgroups: Workgroups,
        scratch: &mut Scratch,
        observer: &mut dyn Observer,
    ) -> Outcome;
}

/// Memory that a worker reuses across workgroups: shared memory, private memory, registers. It grows to the needs of
/// the largest kernel and belongs to one worker at a time.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Host services for running kernels: clock, printing.
    pub host: Host,
    /// Words of scratch memory; each back end has its own layout.
    pub words: Vec<u64>,
    /// Stack for machine code with large frames.
    pub stack: x86::Stack,
    /// Where the kernel was when it was last stopped in a loop ([`Outcome::Stopped`]).
    pub stopped: Option<Stop>,
}

/// Grows `words` to at least `needed`; `None` if the allocation fails.
fn grow(words: &mut Vec<u64>, needed: usize) -> Option<()> {
    words.try_reserve(needed.saturating_sub(words.len())).ok()?;
    words.resize(needed.max(words.len()), 0);
    Some(())
}

//! The interpreter: runs the scalar IR, one invocation at a time. It is the reference for all other back ends.
//!
//! [`Program::new`] assigns registers to values (`slots`), turns block arguments into moves (`moves`) and instructions
//! into small steps, each with the function that executes it (`decode`). Running (`run`) calls the steps of a block and
//! follows its end to the next block. There is one register file: at a barrier, the live registers are saved to the
//! invocation's frame and the next invocation uses the file. Subgroup operations run when all their participants wait
//! at the same sync point (`reconvergence`).

mod atomic;
mod code;
mod decode;
mod env;
mod image;
mod memory;
mod moves;
mod pure;
mod reconvergence;
mod run;
mod slots;
mod watch;
mod wide;

use super::watch::Watch;
use super::{Code, ObservedCode, Scratch, Workgroups};
use crate::abi::{DispatchArgs, Outcome};
use crate::check::observer::Observer;
use crate::float_mode;
use crate::ir::{Kernel, VERIFIES, verify};
use code::{CodeBlock, End, Tables};

/// A kernel in the interpreter's form.
#[derive(Debug)]
pub struct Program {
    blocks: Vec<CodeBlock>,
    tables: Tables,
    sync_points: reconvergence::SyncPoints,
    /// Initial contents of the register file.
    constants: Vec<u64>,
    registers: usize,
    workgroup_size: [u32; 3],
    shared_words: usize,
    private_words: usize,
    /// Number of registers that an invocation saves at a barrier, at most; `None` for kernels without barriers.
    kept: Option<usize>,
}

impl Program {
    /// Translates a kernel. It must be valid according to [`verify`]; an invalid one may panic, and does in builds
    /// that verify (`VERIFIES`).
    pub fn new(kernel: &Kernel) -> Self {
        if VERIFIES {
            assert_eq!(verify(kernel), Ok(()), "{kernel}");
        }
        let nest = reconvergence::LoopNest::new(kernel);
        let slots = slots::assign(kernel, nest.as_ref().map_or(0, reconvergence::LoopNest::depth));
        let (blocks, tables, sync_points) = decode::decode(kernel, &slots, nest.as_ref());
        let live = |block: &CodeBlock| match block.end {
            End::Barrier { live, .. } => Some(live as usize),
            _ => None,
        };
        Self {
            kept: blocks.iter().filter_map(live).max(),
            blocks,
            tables,
            sync_points,
            registers: slots.count as usize,
            constants: slots.constants,
            workgroup_size: kernel.workgroup_size,
            shared_words: kernel.shared_bytes() as usize / 4,
            private_words: kernel.private_bytes() as usize / 4,
        }
    }

    fn invocations(&self) -> u32 {
        self.workgroup_size.iter().product()
    }
}

impl Code for Program {
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        float_mode::with_default(|| {
            let schedule = workgroups.schedule();
            let mut outcomes =
                workgroups.map(|workgroup| run::workgroup(self, args, (workgroup, schedule), scratch, None));
            outcomes.find(|&outcome| outcome != Outcome::Done).unwrap_or(Outcome::Done)
        })
    }
}

impl ObservedCode for Program {
    fn run_observed(
        &self,
        args: &DispatchArgs<'_>,
        mut workgroups: Workgroups,
        scratch: &mut Scratch,
        observer: &mut dyn Observer,
    ) -> Outcome {
        float_mode::with_default(|| {
            let schedule = workgroups.schedule();
            while let Some(workgroup) = workgroups.next() {
                let watch = Watch::new(observer, workgroups.number_of(workgroup));
                let outcome = run::workgroup(self, args, (workgroup, schedule), scratch, Some(watch));
                if outcome != Outcome::Done {
                    return outcome;
                }
            }
            Outcome::Done
        })
    }
}

//! The interpreter: runs the scalar IR, one invocation at a time. The oracle of all other back ends.
//!
//! [`Program::new`] gives values registers (`slots`), puts block arguments into moves (`moves`) and instructions into
//! small steps, each with the function that does it (`decode`). Running (`run`) is then: call the steps of a block,
//! look at how it ends, go on. A kernel needs one register file; at a barrier the registers that are alive are copied
//! to the invocation's frame, and the next invocation takes the file. Operations of subgroups are done when all that take part
//! wait for each other (`meeting`).

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
mod wide;

use super::{Code, Scratch};
use crate::abi::{DispatchArgs, Outcome};
use crate::float_mode;
use crate::ir::{Kernel, verify};
use code::{CodeBlock, End, Tables};

/// A kernel as the interpreter runs it.
#[derive(Debug)]
pub struct Program {
    blocks: Vec<CodeBlock>,
    tables: Tables,
    meetings: reconvergence::Meetings,
    /// First contents of the register file.
    constants: Vec<u64>,
    registers: usize,
    workgroup_size: [u32; 3],
    shared_words: usize,
    private_words: usize,
    /// Registers that an invocation keeps over a barrier, at most; `None` for kernels without barriers.
    kept: Option<usize>,
}

impl Program {
    /// Prepares a kernel. It must be one that [`verify`] accepts; another one may panic, and does in debug builds.
    pub fn new(kernel: &Kernel) -> Self {
        debug_assert_eq!(verify(kernel), Ok(()), "{kernel}");
        let ways = reconvergence::Ways::new(kernel);
        let slots = slots::assign(kernel, ways.as_ref().map_or(0, reconvergence::Ways::depth));
        let (blocks, tables, meetings) = decode::decode(kernel, &slots, ways.as_ref());
        let live = |block: &CodeBlock| match block.end {
            End::Barrier { live, .. } => Some(live as usize),
            _ => None,
        };
        Self {
            kept: blocks.iter().filter_map(live).max(),
            blocks,
            tables,
            meetings,
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
    fn run(&self, args: &DispatchArgs<'_>, workgroup: [u32; 3], scratch: &mut Scratch) -> Outcome {
        float_mode::with_default(|| run::workgroup(self, args, workgroup, scratch))
    }
}

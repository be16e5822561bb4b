//! The interpreter: runs the scalar IR, one invocation at a time.

use super::{Code, Scratch};
use crate::abi::{DispatchArgs, Outcome};
use crate::ir::Kernel;

/// A kernel as the interpreter runs it.
#[derive(Debug)]
pub struct Program {}

impl Program {
    /// Prepares a kernel.
    pub fn new(_kernel: &Kernel) -> Self {
        unimplemented!()
    }
}

impl Code for Program {
    fn run(&self, _args: &DispatchArgs<'_>, _workgroup: [u32; 3], _scratch: &mut Scratch) -> Outcome {
        unimplemented!()
    }
}

//! What the interpreter runs: blocks of small steps, each with the function that does it.

use crate::host::Message;
use crate::image::ImageOp;
use crate::ir::op::MAX_STEP_ARGS;
use crate::ir::{AtomicOp, VariableSpace};
use std::sync::atomic::Ordering;

use super::env::Env;

/// Does one step: reads registers, writes at most the register `dest`, after all reads.
pub(super) type Run = fn(&Step, &mut [u64], &mut Env<'_>);

/// One instruction. The meaning of `args` and `extra` belongs to the function: registers, mostly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub run: Run,
    pub dest: u32,
    pub args: [u32; MAX_STEP_ARGS],
    pub extra: u32,
}

impl Step {
    /// Bits of operand `index`.
    #[inline(always)]
    pub(super) fn arg(&self, regs: &[u64], index: usize) -> u64 {
        regs[self.args[index] as usize]
    }

    /// Operand `index` as a 32-bit word.
    #[inline(always)]
    pub(super) fn word(&self, regs: &[u64], index: usize) -> u32 {
        self.arg(regs, index) as u32
    }

    /// Writes the result.
    #[inline(always)]
    pub(super) fn set(&self, regs: &mut [u64], bits: u64) {
        regs[self.dest as usize] = bits;
    }
}

/// Steps without a branch between them.
#[derive(Debug)]
pub(super) struct CodeBlock {
    pub steps: Box<[Step]>,
    pub end: End,
}

/// How a code block ends. Numbers are those of code blocks, except for registers.
#[derive(Clone, Debug)]
pub(super) enum End {
    Jump(u32),
    /// A back edge: looks at the stop flag, then jumps. The loop is at that word of the module; 0 where there is none.
    Loop {
        to: u32,
        at: u32,
    },
    Branch {
        condition: u32,
        then: u32,
        otherwise: u32,
    },
    /// Cases are sorted by literal.
    Switch {
        selector: u32,
        default: u32,
        cases: Box<[(u32, u32)]>,
    },
    /// Waits for others. `live` registers from the first that is not a constant are saved.
    Barrier {
        wait: Wait,
        next: u32,
        live: u32,
    },
    Return,
}

/// Who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Invocations of the subgroup, at the meeting of that number.
    Meeting(u32),
    Workgroup,
}

/// What steps look up by `extra`.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub bindings: Vec<BindingRange>,
    /// Of all bindings; what comes after them in the list is device memory.
    pub descriptors: usize,
    pub variables: Vec<VariableRange>,
    /// Contents of the constant ones.
    pub words: Vec<u32>,
    pub atomics: Vec<AtomicStep>,
    pub fences: Vec<Ordering>,
    pub images: Vec<ImageStep>,
    /// Messages, and what prints them: the message and the registers of its words.
    pub messages: Vec<Message>,
    pub prints: Vec<(u32, Box<[u32]>)>,
}

/// An image instruction with the registers of its operands.
#[derive(Clone, Debug)]
pub(super) struct ImageStep {
    pub op: ImageOp,
    pub image: u32,
    /// The image's register again, where there is no sampler.
    pub sampler: u32,
    pub args: Box<[u32]>,
}

/// The descriptors of a binding in the flattened list.
#[derive(Clone, Copy, Debug)]
pub(super) struct BindingRange {
    pub first: u64,
    pub count: u32,
}

/// Where a variable lies: in shared memory, relative to the invocation's private memory, or among [`Tables::words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct VariableRange {
    pub space: VariableSpace,
    pub first_word: usize,
    pub bytes: u32,
}

/// What an atomic does and in which order.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicStep {
    pub op: AtomicOp,
    pub order: Ordering,
    pub failure: Ordering,
    pub variable: Option<VariableRange>,
}

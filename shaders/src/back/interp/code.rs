//! The interpreter's code: blocks of small steps, each with the function that executes it.

use crate::host::Message;
use crate::image::ImageOp;
use crate::ir::op::MAX_STEP_ARGS;
use crate::ir::{AtomicOp, Observed, ObservedVariable, Site, VariableSpace};
use std::sync::atomic::Ordering;

use super::env::Env;

/// Executes one step: reads its operand registers first, then writes at most the register `dest`.
pub(super) type StepFn = fn(&Step, &mut [u64], &mut Env<'_>);

/// One instruction. The function defines the meaning of `args` (usually registers) and `extra`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub run: StepFn,
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

/// How a code block ends. Numbers are indices of code blocks, unless they are registers.
#[derive(Clone, Debug)]
pub(super) enum End {
    Jump(u32),
    /// A back edge: checks the stop flag, then jumps. `word` is the index of the SPIR-V word of the loop; 0 if unknown.
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
    /// Waits at a barrier or sync point. The `live` registers after the constants are saved.
    Barrier {
        wait: Wait,
        next: u32,
        live: u32,
    },
    Return,
}

/// The set of invocations that a barrier synchronizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Invocations of the subgroup, at the sync point with that index.
    SyncPoint(u32),
    Workgroup,
}

/// Tables that steps index with `extra`.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub bindings: Vec<BindingRange>,
    /// Number of descriptors of all bindings; the buffers after them in the list are address ranges of device memory.
    pub descriptors: usize,
    pub variables: Vec<VariableRange>,
    /// Contents of the constant variables.
    pub words: Vec<u32>,
    pub atomics: Vec<AtomicStep>,
    pub fences: Vec<Ordering>,
    pub images: Vec<ImageStep>,
    /// What checked mode observes, with the variable unless it is in a buffer.
    pub checks: Vec<(Observed, Option<ObservedVariable>)>,
    pub image_checks: Vec<(Site, ImageStep)>,
    /// Messages; a print step passes a message and the registers of its words.
    pub messages: Vec<Message>,
    pub prints: Vec<(u32, Box<[u32]>)>,
}

/// An image instruction with the registers of its operands.
#[derive(Clone, Debug)]
pub(super) struct ImageStep {
    pub op: ImageOp,
    pub image: u32,
    /// The sampler's register; the image's register if there is no sampler.
    pub sampler: u32,
    pub args: Box<[u32]>,
}

/// The descriptors of a binding in the flattened list.
#[derive(Clone, Copy, Debug)]
pub(super) struct BindingRange {
    pub first: u64,
    pub count: u32,
}

/// Where a variable is stored: in shared memory, at an offset in the invocation's private memory, or in
/// [`Tables::words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct VariableRange {
    pub space: VariableSpace,
    pub first_word: usize,
    pub bytes: u32,
}

/// Operation and memory ordering of an atomic.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicStep {
    pub op: AtomicOp,
    pub order: Ordering,
    pub failure: Ordering,
    pub variable: Option<VariableRange>,
}

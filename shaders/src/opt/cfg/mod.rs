//! Control flow graph simplification: branch folding, jump threading, merging of blocks, unused parameters.
//!
//! A construct keeps its annotation as long as control can diverge in it: the blocks that it names stay, or the block
//! that they are merged into takes their role. No two constructs come to share a merge block. An unreachable merge
//! block stays as a lone `unreachable` while its construct has two targets. Every step is linear; they repeat until
//! nothing changes.

mod constructs;
mod edges;
mod fold;
mod jump_threading;
mod members;
mod merge_blocks;
mod params;

use crate::ir::{Block, Inst, InstData, Kernel, Merge, Type, Value, reverse_postorder};
pub(super) use edges::Edges;

/// Maximum number of repetitions; longer chains stay partly simplified.
const ROUNDS: usize = 8;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    for _ in 0..ROUNDS {
        let before = kernel.layout.len();
        let mut changed = fold::terminators(kernel);
        changed |= constructs::tidy(kernel);
        changed |= params::simplify(kernel);
        changed |= jump_threading::jumps(kernel);
        changed |= merge_blocks::blocks(kernel);
        // Unreachable merge blocks are missing in the layout now; the new order has them again.
        if changed || kernel.layout.len() != before {
            lay_out(kernel);
        }
        if !changed {
            return;
        }
    }
    prune(kernel);
}

/// Only drops unreachable blocks.
pub(super) fn prune(kernel: &mut Kernel) {
    constructs::tidy(kernel);
    lay_out(kernel);
}

/// Puts the blocks into reverse postorder.
pub(super) fn lay_out(kernel: &mut Kernel) {
    kernel.layout = reverse_postorder(kernel, kernel.layout[0]);
}

/// The blocks that an annotation names.
fn named(merge: Option<Merge>) -> impl Iterator<Item = Block> {
    let (merge, continuing) = match merge {
        None => (None, None),
        Some(Merge::Selection { merge }) => (Some(merge), None),
        Some(Merge::Loop { merge, continuing }) => (Some(merge), Some(continuing)),
    };
    merge.into_iter().chain(continuing)
}

/// Adds an instruction with a result to the kernel's tables; the caller inserts it into a block.
pub(super) fn create(kernel: &mut Kernel, data: InstData, ty: Type, origin: u32) -> (Inst, Value) {
    let inst = kernel.insts.push(data);
    kernel.origins[inst] = origin;
    let value = kernel.define(inst, ty);
    (inst, value)
}

/// Adds an instruction with a result right before a block's terminator.
fn insert_before_end(kernel: &mut Kernel, block: Block, data: InstData, ty: Type) -> Value {
    let origin = kernel.last_inst(block).map_or(0, |last| kernel.origins[last]);
    let (inst, value) = create(kernel, data, ty, origin);
    let insts = &mut kernel.blocks[block].insts;
    insts.insert(insts.len().saturating_sub(1), inst);
    value
}

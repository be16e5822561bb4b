//! Cleanup of the control flow graph: what is decided is not asked again, and straight ways are one block.
//!
//! A construct keeps its annotation as long as control can split in it: the blocks it names stay, or follow the block that
//! took them in. No two constructs come to share a merge block. A merge block that control no longer reaches stays as
//! a lone `unreachable` while its construct has two ways to go. Every step is linear; they repeat until nothing changes.

mod constructs;
mod edges;
mod fold;
mod jump_threading;
mod members;
mod merge_blocks;
mod params;

use crate::ir::{Block, Inst, InstData, Kernel, Merge, Type, Value, ValueDef, reverse_postorder};
pub(super) use edges::Edges;

/// Chains that need more rounds than this are left as they are.
const ROUNDS: usize = 8;

/// Cleans up.
pub(super) fn run(kernel: &mut Kernel) {
    for _ in 0..ROUNDS {
        let before = kernel.layout.len();
        let mut changed = fold::terminators(kernel);
        changed |= constructs::tidy(kernel);
        changed |= params::simplify(kernel);
        changed |= jump_threading::jumps(kernel);
        changed |= merge_blocks::blocks(kernel);
        // Merge blocks out of reach are not in the layout now, and come back.
        if changed || kernel.layout.len() != before {
            lay_out(kernel);
        }
        if !changed {
            return;
        }
    }
    prune(kernel);
}

/// Drops blocks that control never reaches, no more.
pub(super) fn prune(kernel: &mut Kernel) {
    constructs::tidy(kernel);
    lay_out(kernel);
}

/// Puts the blocks into reverse postorder.
pub(super) fn lay_out(kernel: &mut Kernel) {
    kernel.layout = reverse_postorder(kernel, kernel.layout[0]);
}

/// The last instruction of a block.
pub(super) fn terminator(kernel: &Kernel, block: Block) -> Option<Inst> {
    kernel.blocks[block].insts.last().copied()
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

/// Adds an instruction with a result to the tables; it has no place yet.
pub(super) fn create(kernel: &mut Kernel, data: InstData, ty: Type, origin: u32) -> (Inst, Value) {
    let inst = kernel.insts.push(data);
    kernel.origins[inst] = origin;
    let value = kernel.values.push(ValueDef::Result { inst, ty });
    kernel.results[inst] = Some(value);
    (inst, value)
}

/// Adds an instruction with a result right before a block's terminator.
fn insert_before_end(kernel: &mut Kernel, block: Block, data: InstData, ty: Type) -> Value {
    let origin = terminator(kernel, block).map_or(0, |last| kernel.origins[last]);
    let (inst, value) = create(kernel, data, ty, origin);
    let insts = &mut kernel.blocks[block].insts;
    insts.insert(insts.len().saturating_sub(1), inst);
    value
}

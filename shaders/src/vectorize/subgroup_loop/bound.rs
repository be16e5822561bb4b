//! Trip-count bound of a subgroup loop.
//!
//! A tree reduction halves the invocations that work from barrier to barrier. If a loop begins with a test that only
//! the first invocations of the workgroup pass, and has no effect for the others, the loop can end before the last
//! subgroup.
//!
//! Which invocations a test lets pass follows from the scalar IR, when the branch is translated. That the others have
//! no effect is a property of the emitted blocks, which store what lives across a barrier.

use foldhash::HashMap;

use crate::ir::{self, BuiltIn, InstData as ScalarInst, Op};
use crate::simd::builder::Builder;
use crate::simd::{Block, BlockCall, InstData, LANES, Value};

/// Masks that only the first invocations of the workgroup pass, each with their number.
pub(in crate::vectorize) type MaskBounds = HashMap<Value, u32>;

/// Blocks of a path that are followed.
const MAX_BLOCKS: usize = 16;

/// Depth of nested conjunctions in a condition.
const MAX_CONDITION_DEPTH: usize = 8;

/// How many of `count` subgroups have to run: all later ones get from `header` to `latch` without any effect.
pub(super) fn trip_count_bound(
    builder: &Builder,
    (header, latch): (Block, Block),
    bounds: &MaskBounds,
    count: u32,
) -> u32 {
    let mut block = header;
    for _ in 0..MAX_BLOCKS {
        match terminator_without_effects(builder, block) {
            Some(InstData::Jump { to }) if to.block != latch => block = to.block,
            Some(InstData::Branch { condition, then: _, otherwise }) => {
                let Some(&InstData::Any { mask }) = builder.kernel.definition(*condition) else { return count };
                if !leads_to(builder, otherwise, latch) {
                    return count;
                }
                let invocations = bounds.get(&mask).copied().unwrap_or(u32::MAX);
                return invocations.div_ceil(LANES).clamp(1, count);
            }
            _ => return count,
        }
    }
    count
}

/// The terminator of a block, if the block has no effects.
fn terminator_without_effects(builder: &Builder, block: Block) -> Option<&InstData> {
    let kernel = &builder.kernel;
    let (&last, insts) = kernel.blocks[block].insts.split_last()?;
    insts.iter().all(|&inst| !kernel.insts[inst].has_effect()).then(|| &kernel.insts[last])
}

/// Whether an edge leads to the latch without branches and effects.
fn leads_to(builder: &Builder, call: &BlockCall, latch: Block) -> bool {
    let mut block = call.block;
    for _ in 0..MAX_BLOCKS {
        if block == latch {
            return true;
        }
        let Some(InstData::Jump { to }) = terminator_without_effects(builder, block) else { return false };
        block = to.block;
    }
    false
}

/// Exclusive upper bound of the indices in the workgroup of the invocations for which a condition is true, if it is
/// known.
pub(in crate::vectorize) fn index_bound(kernel: &ir::Kernel, condition: ir::Value) -> Option<u32> {
    bound_of(kernel, condition, MAX_CONDITION_DEPTH)
}

fn bound_of(kernel: &ir::Kernel, condition: ir::Value, depth: usize) -> Option<u32> {
    let Some(ScalarInst::Pure { op, args }) = kernel.definition(condition) else { return None };
    let is_index = |value: ir::Value| {
        let definition = kernel.definition(value);
        matches!(definition, Some(ScalarInst::BuiltIn { builtin: BuiltIn::LocalInvocationIndex, component: 0 }))
    };
    let constant = |value: ir::Value| kernel.constant(value).map(|bits| bits as u32);
    match (op, &args[..]) {
        (Op::LAnd, &[a, b]) if depth > 0 => {
            let [a, b] = [a, b].map(|side| bound_of(kernel, side, depth - 1));
            a.into_iter().chain(b).min()
        }
        (Op::ULt | Op::SLt, &[index, limit]) if is_index(index) => {
            // For a limit that is not negative, the signed and the unsigned test are the same.
            constant(limit).filter(|&limit| limit <= i32::MAX.cast_unsigned())
        }
        (Op::ULe | Op::SLe, &[index, limit]) if is_index(index) => {
            constant(limit).filter(|&limit| limit < i32::MAX.cast_unsigned()).map(|limit| limit + 1)
        }
        (Op::IEq, &[index, only]) if is_index(index) => constant(only)?.checked_add(1),
        _ => None,
    }
}

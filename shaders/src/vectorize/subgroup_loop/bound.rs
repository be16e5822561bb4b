//! Trip-count bound of a subgroup loop.
//!
//! A tree reduction halves the invocations that work from barrier to barrier. If a loop begins with a test that only
//! the first invocations of the workgroup pass, and has no effect for the others, the loop can end before the last
//! subgroup.

use crate::ir::Op;
use crate::simd::builder::Builder;
use crate::simd::{BlockCall, InstData, LANES};
use crate::vectorize::{Block, Type, Value};

/// Blocks of a path that are followed.
const MAX_BLOCKS: usize = 16;

/// Depth of nested conjunctions in a test.
const MAX_MASK_DEPTH: usize = 8;

/// How many of `count` subgroups have to run: all later ones get from `header` to `latch` without any effect. `number`
/// is the number of the subgroup that runs.
pub(super) fn trip_count_bound(builder: &Builder, header: Block, latch: Block, number: Value, count: u32) -> u32 {
    let mut block = header;
    for _ in 0..MAX_BLOCKS {
        match terminator_without_effects(builder, block) {
            Some(InstData::Jump { to }) if to.block != latch => block = to.block,
            Some(InstData::Branch { condition, then: _, otherwise }) => {
                let Some(&InstData::Any { mask }) = builder.kernel.definition(*condition) else { return count };
                if !leads_to(builder, otherwise, latch) {
                    return count;
                }
                let invocations = index_bound(builder, mask, number, MAX_MASK_DEPTH).unwrap_or(u32::MAX);
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

/// Exclusive upper bound of the indices of the invocations in a mask.
fn index_bound(builder: &Builder, mask: Value, number: Value, depth: usize) -> Option<u32> {
    let Some(InstData::Pure { op, args }) = builder.kernel.definition(mask) else { return None };
    let constant = |value: Value| builder.kernel.constant(value).map(|bits| bits as u32);
    match (op, &args[..]) {
        (Op::LAnd, &[a, b]) if depth > 0 => {
            let [a, b] = [a, b].map(|mask| index_bound(builder, mask, number, depth - 1));
            a.into_iter().chain(b).min()
        }
        (Op::ULt | Op::SLt, &[index, limit]) if is_index(builder, index, number) => {
            // For a limit that is not negative, the signed and the unsigned test are the same.
            constant(limit).filter(|&limit| limit <= i32::MAX.cast_unsigned())
        }
        (Op::ULe | Op::SLe, &[index, limit]) if is_index(builder, index, number) => {
            constant(limit).filter(|&limit| limit < i32::MAX.cast_unsigned()).map(|limit| limit + 1)
        }
        (Op::IEq, &[index, only]) if is_index(builder, index, number) => constant(only)?.checked_add(1),
        _ => None,
    }
}

/// Whether a vector is the indices of a subgroup's invocations in the workgroup: `number * LANES + lane`.
fn is_index(builder: &Builder, vector: Value, number: Value) -> bool {
    let kernel = &builder.kernel;
    let Some(InstData::Pure { op: Op::IAdd, args }) = kernel.definition(vector) else { return false };
    let Some(&InstData::Splat { value: first }) = kernel.definition(args[0]) else { return false };
    let Some(InstData::Lanes { values }) = kernel.definition(args[1]) else { return false };
    let Some(InstData::Pure { op: Op::IMul, args }) = kernel.definition(first) else { return false };
    debug_assert_eq!(kernel.ty(first), Type::S32);
    args[0] == number
        && kernel.constant(args[1]) == Some(u64::from(LANES))
        && (0..LANES).zip(&**values).all(|(lane, &value)| lane == value)
}

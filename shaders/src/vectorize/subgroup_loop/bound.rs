//! How many subgroups have something to do in a turn.
//!
//! Trees of sums halve the invocations that work from barrier to barrier. Where a turn begins with a test that only the first
//! invocations of the workgroup pass, and does nothing for others, the loop over the subgroups can end early.

use crate::ir::Op;
use crate::simd::builder::Builder;
use crate::simd::{BlockCall, InstData, LANES};
use crate::vectorize::{Block, Type, Value};

/// Blocks that are looked at.
const MAX_BLOCKS: usize = 16;

/// Masks that a test is made of, at most.
const MAX_MASK_DEPTH: usize = 8;

/// The subgroups, of `count`, after which all others go from `head` to `latch` without any effect. `number` is the number of the
/// subgroup that runs.
pub(in crate::vectorize) fn needed(builder: &Builder, head: Block, latch: Block, number: Value, count: u32) -> u32 {
    let mut block = head;
    for _ in 0..MAX_BLOCKS {
        match end_of(builder, block) {
            Some(InstData::Jump { to }) if to.block != latch => block = to.block,
            Some(InstData::Branch { condition, then: _, otherwise }) => {
                let Some(&InstData::Any { mask }) = builder.kernel.definition(*condition) else { return count };
                if !leads_to(builder, otherwise, latch) {
                    return count;
                }
                let invocations = below(builder, mask, number, MAX_MASK_DEPTH).unwrap_or(u32::MAX);
                return invocations.div_ceil(LANES).clamp(1, count);
            }
            _ => return count,
        }
    }
    count
}

/// The terminator of a block without effects.
fn end_of(builder: &Builder, block: Block) -> Option<&InstData> {
    let kernel = &builder.kernel;
    let (&last, insts) = kernel.blocks[block].insts.split_last()?;
    insts.iter().all(|&inst| !has_effect(&kernel.insts[inst])).then(|| &kernel.insts[last])
}

fn has_effect(data: &InstData) -> bool {
    data.changes_memory() || matches!(data, InstData::Poll { .. } | InstData::NextWorkgroup)
}

/// Whether a way comes to the latch without branches and effects.
fn leads_to(builder: &Builder, call: &BlockCall, latch: Block) -> bool {
    let mut block = call.block;
    for _ in 0..MAX_BLOCKS {
        if block == latch {
            return true;
        }
        let Some(InstData::Jump { to }) = end_of(builder, block) else { return false };
        block = to.block;
    }
    false
}

/// A number that the index of every invocation in the mask is below.
fn below(builder: &Builder, mask: Value, number: Value, depth: usize) -> Option<u32> {
    let Some(InstData::Pure { op, args }) = builder.kernel.definition(mask) else { return None };
    let constant = |value: Value| builder.kernel.constant(value).map(|bits| bits as u32);
    match (op, &args[..]) {
        (Op::LAnd, &[a, b]) if depth > 0 => {
            let [a, b] = [a, b].map(|mask| below(builder, mask, number, depth - 1));
            a.into_iter().chain(b).min()
        }
        (Op::ULt | Op::SLt, &[index, limit]) if is_index(builder, index, number) => {
            constant(limit).filter(|&limit| limit <= i32::MAX.cast_unsigned())
        }
        (Op::ULe | Op::SLe, &[index, limit]) if is_index(builder, index, number) => {
            constant(limit).filter(|&limit| limit < i32::MAX.cast_unsigned()).map(|limit| limit + 1)
        }
        (Op::IEq, &[index, only]) if is_index(builder, index, number) => constant(only)?.checked_add(1),
        _ => None,
    }
}

/// Whether a vector holds the indices of a subgroup's invocations.
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

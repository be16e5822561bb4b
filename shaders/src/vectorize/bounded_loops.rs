//! Loops that end soon whatever their data: they need not ask whether the kernel is to stop, and a kernel without others
//! takes no longer than can be told beforehand.
//!
//! A loop is *counted* if it leaves when a counter reaches a constant, and every trip brings the counter nearer.

use crate::analysis::{Dominators, Loop, Loops};
use crate::ir::{Block, InstData, Kernel, Op, Value, ValueDef};
use crate::simd::LANES;

/// Trips through a loop, those of the loops inside included, that pass without a look at the stop flag.
const MAX_ITERATIONS: u64 = 1 << 14;

/// For each loop, by its place in [`Loops::all`], how many trips it has at most, if it ends soon.
pub(super) fn short_loops(kernel: &Kernel, loops: &Loops, dominators: &Dominators) -> Vec<Option<u64>> {
    let mut short = vec![None; loops.all.len()];
    // Trips of the loops inside that do not ask either, for one trip.
    let mut inside = vec![1u64; loops.all.len()];
    for (number, found) in loops.all.iter().enumerate().rev() {
        let Some(own) = trips(kernel, loops, number, found, dominators) else { continue };
        let trips = own.saturating_mul(inside[number]);
        if trips <= MAX_ITERATIONS {
            short[number] = Some(own);
            if let Some(parent) = found.parent {
                inside[parent] = inside[parent].saturating_add(trips);
            }
        }
    }
    short
}

/// Steps of a workgroup at most, as [`Code::most_steps`](crate::back::Code::most_steps) counts them, if all loops are short.
pub(super) fn most_steps(kernel: &Kernel, loops: &Loops, short: &[Option<u64>]) -> Option<u64> {
    let mut sum = 0u64;
    for &block in &kernel.layout {
        let around = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
        let mut steps = 0;
        for &inst in &kernel.blocks[block].insts {
            steps += steps_of(&kernel.insts[inst])?;
        }
        for number in around {
            steps = short[number]?.saturating_mul(steps);
        }
        sum = sum.saturating_add(steps);
    }
    Some(sum.saturating_mul(kernel.invocations().div_ceil(LANES).into()))
}

/// Nanoseconds or more that an instruction takes for a subgroup; none of what is not ours to tell.
fn steps_of(inst: &InstData) -> Option<u64> {
    Some(match inst {
        InstData::Const { .. } => 0,
        InstData::Pure { .. } | InstData::Select { .. } | InstData::Jump { .. } | InstData::Branch { .. } => 2,
        // Sixteen addresses, each perhaps in no cache.
        InstData::Load { .. } | InstData::Store { .. } => 32,
        InstData::Atomic { .. } => 512,
        InstData::Image { .. } => 4096,
        InstData::Print { .. } => return None,
        _ => 16,
    })
}

/// At most so many trips.
fn trips(kernel: &Kernel, loops: &Loops, number: usize, found: &Loop, dominators: &Dominators) -> Option<u64> {
    let &[latch] = &found.latches[..] else { return None };
    let within = |block: Block| loops.contains(number, block);
    let tests =
        found.blocks.iter().filter(|&&block| loops.of(block) == Some(number) && dominators.dominates(block, latch));
    tests
        .filter_map(|&block| {
            let InstData::Branch { condition, then, otherwise } = terminator(kernel, block)? else { return None };
            (within(then.block) && !within(otherwise.block))
                .then(|| counted(kernel, found.header, latch, *condition))?
        })
        .min()
}

fn terminator(kernel: &Kernel, block: Block) -> Option<&InstData> {
    kernel.blocks[block].insts.last().map(|&last| &kernel.insts[last])
}

fn pure<const N: usize>(kernel: &Kernel, value: Value) -> Option<(Op, [Value; N])> {
    let ValueDef::Result { inst, .. } = kernel.values[value] else { return None };
    let InstData::Pure { op, args } = &kernel.insts[inst] else { return None };
    Some((*op, args[..].try_into().ok()?))
}

/// Trips while a condition on a counter that goes up by a constant holds; also if it is one of several.
fn counted(kernel: &Kernel, header: Block, latch: Block, condition: Value) -> Option<u64> {
    let (op, [a, b]) = pure(kernel, condition)?;
    if op == Op::LAnd {
        let sides = [a, b].map(|side| counted(kernel, header, latch, side));
        return sides.into_iter().flatten().min();
    }
    let constant = |value| kernel.constant(value).map(|bits| bits as u32);
    let limit = constant(b)?;
    let (counter, ahead) = match pure(kernel, a) {
        Some((Op::IAdd, [counter, ahead])) => (counter, constant(ahead)?),
        _ => (a, 0),
    };
    let ValueDef::Param { block, index, .. } = kernel.values[counter] else { return None };
    let next = terminator(kernel, latch)?.targets().into_iter().find(|call| call.block == header)?;
    let (Op::IAdd, [from, step]) = pure(kernel, *next.args.get(index as usize)?)? else { return None };
    let step = constant(step)?;
    let up = block == header && from == counter && step > 0 && i32::try_from(limit.checked_add(step)?).is_ok();
    // What is compared goes up to the limit and one step further, so it never begins anew; but a negative one would take long.
    let ends = match op {
        Op::ULt => true,
        Op::SLt => i32::try_from(first(kernel, header, latch, index)?.checked_add(ahead)?).is_ok(),
        _ => false,
    };
    (up && ends).then(|| u64::from(limit / step) + 2)
}

/// The constant that a header's parameter is at first.
fn first(kernel: &Kernel, header: Block, latch: Block, index: u32) -> Option<u32> {
    let mut first = None;
    for &block in kernel.layout.iter().filter(|&&block| block != latch) {
        for call in terminator(kernel, block)?.targets().into_iter().filter(|call| call.block == header) {
            let bits = kernel.constant(*call.args.get(index as usize)?)? as u32;
            if first.is_some_and(|other| other != bits) {
                return None;
            }
            first = Some(bits);
        }
    }
    first
}

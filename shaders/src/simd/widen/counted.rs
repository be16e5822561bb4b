//! Loops that end soon whatever their data: they need not ask whether the kernel is to stop.
//!
//! A loop is *counted* if it leaves when a counter reaches a constant, and every trip brings the counter nearer.

use crate::analysis::{Dominators, Loop, Loops};
use crate::ir::{Block, InstData, Kernel, Op, Value, ValueDef};

/// Trips through a loop, those of the loops inside included, that pass without a look at the stop flag.
const MOST: u64 = 1 << 14;

/// For each loop, by its place in [`Loops::all`], whether it ends soon.
pub(super) fn short_loops(kernel: &Kernel, loops: &Loops, dominators: &Dominators) -> Vec<bool> {
    let mut short = vec![false; loops.all.len()];
    // Trips of the loops inside that do not ask either, for one trip.
    let mut inside = vec![1u64; loops.all.len()];
    for (number, found) in loops.all.iter().enumerate().rev() {
        let trips = trips(kernel, loops, number, found, dominators).map(|trips| trips.saturating_mul(inside[number]));
        if let Some(trips) = trips.filter(|&trips| trips <= MOST) {
            short[number] = true;
            if let Some(parent) = found.parent {
                inside[parent] = inside[parent].saturating_add(trips);
            }
        }
    }
    short
}

/// At most so many trips.
fn trips(kernel: &Kernel, loops: &Loops, number: usize, found: &Loop, dominators: &Dominators) -> Option<u64> {
    let &[latch] = &found.latches[..] else { return None };
    let around = |block: Block| std::iter::successors(loops.of(block), |&inner| loops.all[inner].parent);
    let within = |block: Block| around(block).any(|other| other == number);
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

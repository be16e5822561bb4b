//! Loops with a bounded trip count: these need no stop-flag poll, and a kernel with no other loops has a known maximal
//! run time.
//!
//! A *counted loop* exits when a counter reaches a constant, and every iteration adds a positive constant to the
//! counter.

use crate::analysis::{Dominators, Loop, Loops};
use crate::ir::{Block, InstData, Kernel, Op, Value, ValueDef};
use crate::simd::LANES;

/// Iterations of a loop without a stop-flag poll, those of its inner loops included, at most.
const MAX_ITERATIONS: u64 = 1 << 14;

/// For each loop in [`Loops::all`] an upper bound of its trip count, if it needs no stop-flag poll.
pub(super) fn bounded_trip_counts(kernel: &Kernel, loops: &Loops, dominators: &Dominators) -> Vec<Option<u64>> {
    let mut trip_counts = vec![None; loops.all.len()];
    // Iterations of inner loops without a poll, plus one, in one iteration of the loop.
    let mut inside = vec![1u64; loops.all.len()];
    for (number, found) in loops.all.iter().enumerate().rev() {
        let Some(own) = max_trip_count(kernel, loops, number, found, dominators) else { continue };
        let iterations = own.saturating_mul(inside[number]);
        if iterations <= MAX_ITERATIONS {
            trip_counts[number] = Some(own);
            if let Some(parent) = found.parent {
                inside[parent] = inside[parent].saturating_add(iterations);
            }
        }
    }
    trip_counts
}

/// Upper bound of the steps of a workgroup in the unit of [`Code::max_steps`](crate::back::Code::max_steps), if no loop
/// polls.
pub(super) fn max_steps(kernel: &Kernel, loops: &Loops, trip_counts: &[Option<u64>]) -> Option<u64> {
    let mut sum = 0u64;
    for &block in &kernel.layout {
        let around = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
        let mut steps = 0;
        for &inst in &kernel.blocks[block].insts {
            steps += steps_of(&kernel.insts[inst])?;
        }
        for number in around {
            steps = trip_counts[number]?.saturating_mul(steps);
        }
        sum = sum.saturating_add(steps);
    }
    Some(sum.saturating_mul(kernel.invocations().div_ceil(LANES).into()))
}

/// Upper bound of the nanoseconds that an instruction takes for a subgroup; `None` if that depends on the host.
fn steps_of(inst: &InstData) -> Option<u64> {
    Some(match inst {
        InstData::Const { .. } => 0,
        InstData::Pure { .. } | InstData::Select { .. } | InstData::Jump { .. } | InstData::Branch { .. } => 2,
        // 16 addresses, each of which may miss all caches.
        InstData::Load { .. } | InstData::Store { .. } => 32,
        InstData::Atomic { .. } => 512,
        InstData::Image { .. } => 4096,
        InstData::Print { .. } => return None,
        _ => 16,
    })
}

/// Upper bound of a loop's trip count: the least of its tests that every iteration passes.
fn max_trip_count(kernel: &Kernel, loops: &Loops, number: usize, found: &Loop, dominators: &Dominators) -> Option<u64> {
    let &[latch] = &found.latches[..] else { return None };
    let within = |block: Block| loops.contains(number, block);
    let tests =
        found.blocks.iter().filter(|&&block| loops.of(block) == Some(number) && dominators.dominates(block, latch));
    tests
        .filter_map(|&block| {
            let InstData::Branch { condition, then, otherwise } = kernel.terminator(block)? else { return None };
            (within(then.block) && !within(otherwise.block))
                .then(|| counted_trip_count(kernel, found.header, latch, *condition))?
        })
        .min()
}

fn pure<const N: usize>(kernel: &Kernel, value: Value) -> Option<(Op, [Value; N])> {
    let InstData::Pure { op, args } = kernel.definition(value)? else { return None };
    Some((*op, args[..].try_into().ok()?))
}

/// Upper bound of the iterations for which a condition `counter < constant` holds, or a conjunction with such a
/// condition.
fn counted_trip_count(kernel: &Kernel, header: Block, latch: Block, condition: Value) -> Option<u64> {
    let (op, [a, b]) = pure(kernel, condition)?;
    if op == Op::LAnd {
        let sides = [a, b].map(|side| counted_trip_count(kernel, header, latch, side));
        return sides.into_iter().flatten().min();
    }
    let constant = |value| kernel.constant(value).map(|bits| bits as u32);
    let limit = constant(b)?;
    let (counter, offset) = match pure(kernel, a) {
        Some((Op::IAdd, [counter, offset])) => (counter, constant(offset)?),
        _ => (a, 0),
    };
    let ValueDef::Param { block, index, .. } = kernel.values[counter] else { return None };
    let next = kernel.terminator(latch)?.targets().into_iter().find(|call| call.block == header)?;
    let (Op::IAdd, [from, step]) = pure(kernel, *next.args.get(index as usize)?)? else { return None };
    let step = constant(step)?;
    let is_counter = block == header && from == counter && step > 0 && i32::try_from(limit.checked_add(step)?).is_ok();
    // The compared value exceeds the limit by one step at most, so it does not wrap. A signed one must not start
    // negative: it could take 2^31 iterations to reach the limit.
    let ends = match op {
        Op::ULt => true,
        Op::SLt => i32::try_from(initial_value(kernel, header, latch, index)?.checked_add(offset)?).is_ok(),
        _ => false,
    };
    (is_counter && ends).then(|| u64::from(limit / step) + 2)
}

/// The constant with which a header's parameter enters the loop, the same on all entry edges.
fn initial_value(kernel: &Kernel, header: Block, latch: Block, index: u32) -> Option<u32> {
    let mut first = None;
    for &block in kernel.layout.iter().filter(|&&block| block != latch) {
        for call in kernel.terminator(block)?.targets().into_iter().filter(|call| call.block == header) {
            let bits = kernel.constant(*call.args.get(index as usize)?)? as u32;
            if first.is_some_and(|other| other != bits) {
                return None;
            }
            first = Some(bits);
        }
    }
    first
}

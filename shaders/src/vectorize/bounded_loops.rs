//! Loops with a bounded trip count: these need no stop-flag poll, and a kernel with no other loops has a known maximal
//! run time.
//!
//! A *counted loop* exits when a counter reaches a constant, and every iteration adds a positive constant to the
//! counter. One that reports accesses or synchronization to an observer has no bound: what the observer does takes as
//! long as it takes.

use crate::analysis::{Dominators, Induction, Loop, Loops, Predecessors, max_trip_count, predecessors};
use crate::ir::{Block, InstData, Kernel};
use crate::simd::LANES;

/// Iterations of a loop without a stop-flag poll, those of its inner loops included, at most.
const MAX_ITERATIONS: u64 = 1 << 14;

/// For each loop in [`Loops::all`] an upper bound of its trip count, if it needs no stop-flag poll.
pub(super) fn bounded_trip_counts(kernel: &Kernel, loops: &Loops, dominators: &Dominators) -> Vec<Option<u64>> {
    let predecessors = predecessors(kernel);
    let mut trip_counts = vec![None; loops.all.len()];
    // Iterations of inner loops without a poll, plus one, in one iteration of the loop.
    let mut inside = vec![1u64; loops.all.len()];
    for (number, found) in loops.all.iter().enumerate().rev() {
        let Some(own) = loop_trip_count(kernel, &predecessors, loops, (number, found), dominators) else { continue };
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

/// Whether an observer hears of an instruction: that takes a time without a bound.
fn is_observed(inst: &InstData) -> bool {
    matches!(inst, InstData::Check { .. } | InstData::Sync { .. })
}

/// Upper bound of the nanoseconds that an instruction takes for a subgroup; `None` if that depends on the host.
fn steps_of(inst: &InstData) -> Option<u64> {
    if is_observed(inst) {
        return None;
    }
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
fn loop_trip_count(
    kernel: &Kernel,
    predecessors: &Predecessors,
    loops: &Loops,
    (number, found): (usize, &Loop),
    dominators: &Dominators,
) -> Option<u64> {
    let &[latch] = &found.latches[..] else { return None };
    if found.blocks.iter().any(|&block| kernel.blocks[block].insts.iter().any(|&inst| is_observed(&kernel.insts[inst])))
    {
        return None;
    }
    let inductions = Induction::all(kernel, found.header, latch);
    let within = |block: Block| loops.contains(number, block);
    let tests =
        found.blocks.iter().filter(|&&block| loops.of(block) == Some(number) && dominators.dominates(block, latch));
    tests
        .filter_map(|&block| {
            let InstData::Branch { condition, then, otherwise } = kernel.terminator(block)? else { return None };
            (within(then.block) && !within(otherwise.block))
                .then(|| max_trip_count(kernel, predecessors, &inductions, *condition))?
        })
        .min()
}

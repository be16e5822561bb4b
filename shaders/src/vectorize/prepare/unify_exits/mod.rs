//! Unifies the divergent exits of a loop with many of them: all lead to one block, which switches to the original
//! targets.
//!
//! Lanes that leave a loop wait at their exit block until the loop ends, so each exit block has a block-in mask that is
//! live in the loop: with N exits, each of N blocks would carry N masks. Instead, a lane records the index of its exit,
//! and one block after the loop switches on it. LLVM's `UnifyLoopExits` does the same for GPUs.
//!
//! `plan` chooses the exits and the location of each live-out value, `rewrite` changes the kernel.

mod plan;
mod rewrite;

use cranelift_entity::EntitySet;

use self::plan::ExitPlan;
use crate::analysis::{Dominators, Loop, Loops, Uniformity};
use crate::ir::{Block, BlockCall, BlockData, InstData, Kernel, Value};

/// Divergent exit blocks of a loop, above which its exits are unified: fewer masks cost less than the switch.
const MAX_TARGETS: usize = 32;

/// Loops that are changed, at most. Those with the most exits come first, and the kernel is analysed again after each.
const MAX_LOOPS: usize = 64;

/// Unifies exits in a kernel whose loops have one entry edge and one back edge.
///
/// Returns `None` if nothing changed, else the arguments with unspecified values: the lanes that pass one never read
/// the parameter.
pub(super) fn unify(kernel: &mut Kernel, uniformity: &Uniformity) -> Option<EntitySet<Value>> {
    let mut fillers = None;
    let mut done: EntitySet<Block> = EntitySet::new();
    // New blocks are after divergent exits.
    let (known, linearization) = (&uniformity.dominators, &uniformity.linearization);
    let divergent = |block: Block| {
        !known.is_reachable(block)
            || linearization.has_block_in_mask(block) && linearization.reconverges(block).is_none()
    };
    for _ in 0..MAX_LOOPS {
        let dominators = Dominators::new(kernel);
        let loops = Loops::new(kernel, &dominators);
        kernel.work.visit(kernel.size());
        let exits = |found: &Loop| {
            kernel.work.visit(found.blocks.len());
            targets(kernel, found).into_iter().filter(|&block| divergent(block)).count()
        };
        let open = loops.all.iter().filter(|found| !done.contains(found.header));
        let max = open.map(|found| (exits(found), found)).max_by_key(|&(count, _)| count);
        let Some((_, found)) = max.filter(|&(count, _)| count > MAX_TARGETS) else { break };
        if kernel.work.is_spent() {
            break;
        }
        done.insert(found.header);
        split_exit_edges(kernel, found, &divergent);
        let dominators = Dominators::new(kernel);
        if let Some(plan) = ExitPlan::new(kernel, &dominators, found, &divergent) {
            fillers.get_or_insert_with(EntitySet::new).extend(plan.carry_out(kernel));
        }
    }
    fillers
}

/// Exit blocks of a loop, in order.
fn targets(kernel: &Kernel, found: &Loop) -> Vec<Block> {
    let inside = set(&found.blocks);
    let mut seen: EntitySet<Block> = EntitySet::new();
    let lasts = found.blocks.iter().filter_map(|&block| kernel.blocks[block].insts.last());
    let outside = lasts.flat_map(|&last| kernel.insts[last].targets()).map(|call| call.block);
    outside.filter(|&block| !inside.contains(block) && seen.insert(block)).collect()
}

/// Splits each exit edge with many arguments: these then are live-out values of the loop, of which [`ExitPlan`] can
/// place any number.
fn split_exit_edges(kernel: &mut Kernel, found: &Loop, divergent: &impl Fn(Block) -> bool) {
    let inside = set(&found.blocks);
    for &from in &found.blocks {
        let Some(&last) = kernel.blocks[from].insts.last() else { continue };
        let mut split_edges = Vec::new();
        for call in kernel.insts[last].targets_mut() {
            if !inside.contains(call.block) && call.args.len() > plan::MAX_SLOTS && divergent(call.block) {
                let edge = kernel.blocks.push(BlockData::default());
                split_edges.push((edge, std::mem::replace(call, BlockCall::new(edge))));
            }
        }
        for (edge, to) in split_edges {
            let jump = kernel.insts.push(InstData::Jump { to });
            kernel.origins[jump] = kernel.origins[last];
            kernel.blocks[edge].insts.push(jump);
            kernel.layout.push(edge);
        }
    }
}

fn set(blocks: &[Block]) -> EntitySet<Block> {
    let mut set = EntitySet::new();
    for &block in blocks {
        set.insert(block);
    }
    set
}

//! Gives a loop of many divergent exits one, from which control goes on to where each led.
//!
//! Lanes that leave a loop wait at the block where they go on until the loop is over, so the loop carries a mask of them: with N exits, each of
//! N blocks would carry N masks. Instead a lane notes the number of its exit, and one block behind the loop switches on it. LLVM's
//! `UnifyLoopExits` does so for GPUs.
//!
//! `plan` says which exits take part and where each word lies that a lane takes along, `rewrite` changes the kernel.

mod plan;
mod rewrite;

use cranelift_entity::EntitySet;

use self::plan::Plan;
use crate::analysis::{Dominators, Loop, Loops, Uniformity};
use crate::ir::{Block, BlockCall, BlockData, InstData, Kernel, Value};

/// Divergent exits of a loop that keeps them: so many masks are cheaper than numbers.
const MAX_TARGETS: usize = 32;

/// Loops that are changed, those with the most exits first: after each of them the kernel is analysed again.
const MAX_LOOPS: usize = 64;

/// Changes the loops of a kernel that has one edge into each loop and one back.
///
/// Returns `None` if nothing changed, else the arguments that stand for nothing: the lanes that pass one never read the parameter.
pub(super) fn unify(kernel: &mut Kernel, uniformity: &Uniformity) -> Option<EntitySet<Value>> {
    let mut fillers = None;
    let mut done: EntitySet<Block> = EntitySet::new();
    // Blocks that are new are behind divergent exits.
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
        let most = open.map(|found| (exits(found), found)).max_by_key(|&(count, _)| count);
        let Some((_, found)) = most.filter(|&(count, _)| count > MAX_TARGETS) else { break };
        if kernel.work.is_spent() {
            break;
        }
        done.insert(found.header);
        land(kernel, found, &divergent);
        let dominators = Dominators::new(kernel);
        if let Some(plan) = Plan::new(kernel, &dominators, found, &divergent) {
            fillers.get_or_insert_with(EntitySet::new).extend(plan.carry_out(kernel));
        }
    }
    fillers
}

/// The blocks outside to which blocks of a loop branch, in order.
fn targets(kernel: &Kernel, found: &Loop) -> Vec<Block> {
    let inside = set(&found.blocks);
    let mut seen: EntitySet<Block> = EntitySet::new();
    let lasts = found.blocks.iter().filter_map(|&block| kernel.blocks[block].insts.last());
    let outside = lasts.flat_map(|&last| kernel.insts[last].targets()).map(|call| call.block);
    outside.filter(|&block| !inside.contains(block) && seen.insert(block)).collect()
}

/// Puts a block on each way to a target of many parameters: what the way passes are then values that are used behind an exit, any number
/// of which [`Plan`] has a place for.
fn land(kernel: &mut Kernel, found: &Loop, divergent: &impl Fn(Block) -> bool) {
    let inside = set(&found.blocks);
    for &from in &found.blocks {
        let Some(&last) = kernel.blocks[from].insts.last() else { continue };
        let mut landings = Vec::new();
        for call in kernel.insts[last].targets_mut() {
            if !inside.contains(call.block) && call.args.len() > plan::MAX_SLOTS && divergent(call.block) {
                let landing = kernel.blocks.push(BlockData::default());
                landings.push((landing, std::mem::replace(call, BlockCall::new(landing))));
            }
        }
        for (landing, to) in landings {
            let jump = kernel.insts.push(InstData::Jump { to });
            kernel.origins[jump] = kernel.origins[last];
            kernel.blocks[landing].insts.push(jump);
            kernel.layout.push(landing);
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

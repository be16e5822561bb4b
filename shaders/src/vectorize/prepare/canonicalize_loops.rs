//! Canonical loops: each loop gets one entry edge and one back edge, as the linearization requires. Blocks end after
//! barriers.

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use crate::analysis::{Dominators, Loops, positions, predecessors};
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Value, ValueDef};

/// Gives each loop with several entry edges a preheader, and each loop with several back edges a single latch; removes
/// unreachable blocks. Returns whether that changed the kernel.
pub(super) fn canonicalize(kernel: &mut Kernel) -> bool {
    let (blocks, layout) = (kernel.blocks.len(), kernel.layout.clone());
    split_at_barriers(kernel);
    let dominators = Dominators::new(kernel);
    kernel.layout.retain(|&block| dominators.is_reachable(block));
    let loops = Loops::new(kernel, &dominators);
    let predecessors = predecessors(kernel);
    for found in &loops.all {
        let header = found.header;
        let (latches, entering): (Vec<Block>, Vec<Block>) =
            predecessors[header].iter().partition(|block| found.latches.contains(block));
        // The preheader's only edge enters the loop, so no branch diverges there.
        let has_preheader = |from: &[Block]| from.len() == 1 && edges(kernel, from[0]) == 1;
        if !has_preheader(&entering) {
            merge_edges(kernel, header, &entering);
        }
        if latches.len() != 1 || edges_to(kernel, latches[0], header) != 1 {
            merge_edges(kernel, header, &latches);
        }
    }
    order(kernel);
    // Each change adds a block, removes one from the layout, or moves one.
    kernel.blocks.len() != blocks || kernel.layout != layout
}

/// Whether every edge to an earlier block of the layout is a back edge: its target dominates its source.
pub(super) fn is_reducible(kernel: &Kernel) -> bool {
    let (dominators, positions) = (Dominators::new(kernel), positions(kernel));
    let fits = |from: Block, to: Block| positions[to] > positions[from] || dominators.dominates(to, from);
    kernel.layout.iter().all(|&block| {
        let targets = kernel.targets(block);
        targets.iter().all(|call| fits(block, call.block))
    })
}

/// Splits blocks after each barrier, so that no value is used after a barrier in the block that defines it.
fn split_at_barriers(kernel: &mut Kernel) {
    let mut layout = Vec::with_capacity(kernel.layout.len());
    for block in std::mem::take(&mut kernel.layout) {
        layout.push(block);
        let mut block = block;
        let is_barrier = |kernel: &Kernel, inst: Inst| matches!(kernel.insts[inst], InstData::Barrier { .. });
        while let Some(at) = kernel.blocks[block].insts.iter().position(|&inst| is_barrier(kernel, inst)) {
            let insts = kernel.blocks[block].insts.split_off(at + 1);
            // A terminator without arguments uses no value: it can stay in the barrier's block.
            if let [jump] = insts[..]
                && matches!(kernel.insts[jump], InstData::Jump { .. } | InstData::Return | InstData::Unreachable)
                && kernel.insts[jump].targets().iter().all(|call| call.args.is_empty())
            {
                kernel.blocks[block].insts.push(jump);
                break;
            }
            let merge = kernel.blocks[block].merge.take();
            let rest = kernel.blocks.push(BlockData { insts, merge, ..BlockData::default() });
            let jump = kernel.insts.push(InstData::Jump { to: BlockCall::new(rest) });
            kernel.blocks[block].insts.push(jump);
            layout.push(rest);
            block = rest;
        }
    }
    kernel.layout = layout;
}

fn edges(kernel: &Kernel, block: Block) -> usize {
    kernel.targets(block).len()
}

fn edges_to(kernel: &Kernel, block: Block, target: Block) -> usize {
    kernel.targets(block).iter().filter(|call| call.block == target).count()
}

/// Redirects the edges from these blocks to `target` through a new block, which becomes the target's only predecessor
/// of them.
fn merge_edges(kernel: &mut Kernel, target: Block, from: &[Block]) {
    let block = kernel.blocks.push(BlockData::default());
    let types: SmallVec<[_; 4]> = kernel.blocks[target].params.iter().map(|&param| kernel.ty(param)).collect();
    for (index, ty) in types.into_iter().enumerate() {
        let value = kernel.values.push(ValueDef::Param { block, index: index as u32, ty });
        kernel.blocks[block].params.push(value);
    }
    let args: SmallVec<[Value; 4]> = kernel.blocks[block].params.clone();
    let jump = kernel.insts.push(InstData::Jump { to: BlockCall { block: target, args } });
    kernel.blocks[block].insts.push(jump);
    for &from in from {
        if let Some(last) = kernel.last_inst(from) {
            for call in kernel.insts[last].targets_mut() {
                if call.block == target {
                    call.block = block;
                }
            }
        }
    }
    kernel.layout.push(block);
}

/// Sorts the layout in a reverse postorder in which the blocks of a loop are consecutive, its latch last.
fn order(kernel: &mut Kernel) {
    let dominators = Dominators::new(kernel);
    let loops = Loops::new(kernel, &dominators);
    let Some(&entry) = kernel.layout.first() else { return };
    let mut seen = EntitySet::new();
    let mut postorder = Vec::with_capacity(kernel.layout.len());
    let mut stack = vec![(entry, successors(kernel, &dominators, &loops, entry))];
    seen.insert(entry);
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if seen.insert(next) => {
                let after = successors(kernel, &dominators, &loops, next);
                stack.push((next, after));
            }
            Some(_) => {}
            None => {
                postorder.push(*block);
                stack.pop();
            }
        }
    }
    postorder.reverse();
    kernel.layout = postorder;
}

/// The successors of a block in the order of the depth-first search, which pops them from the end; blocks that it
/// visits first are last in the layout. So the exits of a loop are pushed last at its header, and the merge block of a
/// selection at the selection, although the block has no edges to them.
fn successors(kernel: &Kernel, dominators: &Dominators, loops: &Loops, block: Block) -> Vec<Block> {
    let targets = |block: Block| kernel.targets(block);
    let mut list: Vec<Block> = targets(block).iter().map(|call| call.block).collect();
    if let Some(Merge::Selection { merge }) = kernel.blocks[block].merge
        && dominators.dominates(block, merge)
    {
        list.push(merge);
    }
    if let Some(found) = loops.headed_by(block) {
        let inside = |target: Block| loops.of(block).is_some_and(|number| loops.contains(number, target));
        let all = found.blocks.iter().flat_map(|&block| targets(block)).map(|call| call.block);
        list.extend(all.filter(|&target| !inside(target)));
    }
    list
}

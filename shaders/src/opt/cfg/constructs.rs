//! Removes unreachable blocks, and merge annotations of constructs that are gone.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::named;
use crate::analysis::positions;
use crate::ir::{Block, BlockData, InstData, Kernel, Merge};

/// Drops unreachable blocks, and annotations without control flow to merge. Returns whether there were any.
pub(super) fn tidy(kernel: &mut Kernel) -> bool {
    let reached = reachable(kernel);
    let before = kernel.layout.len();
    kernel.layout.retain(|&block| reached.contains(block));
    let mut changed = drop_idle_loops(kernel, &reached);
    changed |= drop_idle_selections(kernel);
    let stubs = keep_merges(kernel, &reached);
    changed || before != kernel.layout.len() + stubs
}

fn reachable(kernel: &Kernel) -> EntitySet<Block> {
    let mut reached = EntitySet::with_capacity(kernel.blocks.len());
    let mut stack = vec![kernel.layout[0]];
    while let Some(block) = stack.pop() {
        if reached.insert(block)
            && let Some(last) = kernel.last_inst(block)
        {
            stack.extend(kernel.insts[last].targets().iter().map(|call| call.block));
        }
    }
    reached
}

/// A loop construct without a back edge becomes a selection; one with an unreachable continue target gets its latch.
fn drop_idle_loops(kernel: &mut Kernel, reached: &EntitySet<Block>) -> bool {
    let positions = positions(kernel);
    let mut latches: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    latches.resize(kernel.blocks.len());
    for &block in &kernel.layout {
        let Some(last) = kernel.last_inst(block) else { continue };
        for call in kernel.insts[last].targets() {
            if positions[call.block] <= positions[block] {
                latches[call.block] = Some(block);
            }
        }
    }
    let mut changed = false;
    for &block in &kernel.layout {
        let Some(Merge::Loop { merge, continuing }) = kernel.blocks[block].merge else { continue };
        let now = match latches[block] {
            Some(latch) if !reached.contains(continuing) => Merge::Loop { merge, continuing: latch },
            Some(_) => continue,
            None => Merge::Selection { merge },
        };
        kernel.blocks[block].merge = Some(now);
        changed = true;
    }
    changed
}

/// A selection needs a merge block only if two of its targets stay inside it: targets that outer constructs name leave
/// it.
fn drop_idle_selections(kernel: &mut Kernel) -> bool {
    let mut names: SecondaryMap<Block, u32> = SecondaryMap::new();
    names.resize(kernel.blocks.len());
    for &block in &kernel.layout {
        named(kernel.blocks[block].merge).for_each(|block| names[block] += 1);
    }
    let mut changed = false;
    for &block in &kernel.layout {
        let Some(Merge::Selection { merge }) = kernel.blocks[block].merge else { continue };
        let Some(last) = kernel.last_inst(block) else { continue };
        let mut inside = kernel.insts[last].targets().into_iter().map(|call| call.block);
        let mut inside = inside.by_ref().filter(|&to| names[to] == u32::from(to == merge));
        let first = inside.next();
        if inside.all(|to| Some(to) == first) {
            kernel.blocks[block].merge = None;
            names[merge] -= 1;
            changed = true;
        }
    }
    changed
}

/// Makes each unreachable merge block a lone `unreachable`. Returns how many there are.
fn keep_merges(kernel: &mut Kernel, reached: &EntitySet<Block>) -> usize {
    let mut kept = EntitySet::new();
    let mut count = 0;
    for position in 0..kernel.layout.len() {
        for merge in named(kernel.blocks[kernel.layout[position]].merge) {
            if reached.contains(merge) || !kept.insert(merge) {
                continue;
            }
            count += 1;
            let old = &kernel.blocks[merge];
            let is_stub = |&last: &_| old.insts.len() == 1 && kernel.insts[last] == InstData::Unreachable;
            if !(old.params.is_empty() && old.insts.last().is_some_and(is_stub)) {
                let end = kernel.insts.push(InstData::Unreachable);
                kernel.blocks[merge] = BlockData { insts: vec![end], ..BlockData::default() };
            }
        }
    }
    count
}

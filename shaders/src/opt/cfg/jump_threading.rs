//! Blocks that only jump on: whoever goes there goes on at once.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::{named, terminator};
use crate::analysis::positions;
use crate::ir::{Block, BlockCall, InstData, Kernel, Merge};

/// Leads branches around blocks that only jump. Blocks that a construct names stay where they are, and so do headers of
/// loops and the blocks before them. Says whether there were any.
pub(super) fn jumps(kernel: &mut Kernel) -> bool {
    let forwards = forwards(kernel);
    let mut changed = false;
    for &block in &kernel.layout {
        let Some(&last) = kernel.blocks[block].insts.last() else { continue };
        for call in kernel.insts[last].targets_mut() {
            if let Some(on) = &forwards[call.block] {
                *call = on.clone();
                changed = true;
            }
        }
    }
    changed
}

/// Where control goes from each block that only jumps.
fn forwards(kernel: &Kernel) -> SecondaryMap<Block, Option<BlockCall>> {
    let positions = positions(kernel);
    let mut fixed: EntitySet<Block> = EntitySet::new();
    fixed.insert(kernel.layout[0]);
    for &block in &kernel.layout {
        fixed.extend(named(kernel.blocks[block].merge));
    }
    let mut forwards: SecondaryMap<Block, Option<BlockCall>> = SecondaryMap::new();
    // From the end, so that the rest of a chain is known.
    for &block in kernel.layout.iter().rev() {
        let data = &kernel.blocks[block];
        if fixed.contains(block) || data.insts.len() != 1 || !data.params.is_empty() || data.merge.is_some() {
            continue;
        }
        let Some(InstData::Jump { to }) = terminator(kernel, block).map(|last| &kernel.insts[last]) else { continue };
        let is_header = matches!(kernel.blocks[to.block].merge, Some(Merge::Loop { .. }));
        if !is_header && positions[to.block] > positions[block] {
            forwards[block] = Some(forwards[to.block].clone().unwrap_or_else(|| to.clone()));
        }
    }
    forwards
}

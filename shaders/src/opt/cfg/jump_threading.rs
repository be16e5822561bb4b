//! Jump threading: edges to a block that only jumps lead to the target of that jump instead.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::named;
use crate::analysis::positions;
use crate::ir::{Block, BlockCall, InstData, Kernel, Merge};

/// Threads edges through blocks that only jump. Keeps blocks that a construct names, loop headers, and blocks that jump
/// to a loop header. Returns whether there were any.
pub(super) fn jumps(kernel: &mut Kernel) -> bool {
    let forwards = find_forwards(kernel);
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

/// The call at the end of each block that only jumps.
fn find_forwards(kernel: &Kernel) -> SecondaryMap<Block, Option<BlockCall>> {
    let positions = positions(kernel);
    let mut fixed: EntitySet<Block> = EntitySet::new();
    fixed.insert(kernel.layout[0]);
    for &block in &kernel.layout {
        fixed.extend(named(kernel.blocks[block].merge));
    }
    let mut forwards: SecondaryMap<Block, Option<BlockCall>> = SecondaryMap::new();
    // From last to first, so that the end of a chain is known.
    for &block in kernel.layout.iter().rev() {
        let data = &kernel.blocks[block];
        if fixed.contains(block) || data.insts.len() != 1 || !data.params.is_empty() || data.merge.is_some() {
            continue;
        }
        let Some(InstData::Jump { to }) = kernel.terminator(block) else { continue };
        let is_header = matches!(kernel.blocks[to.block].merge, Some(Merge::Loop { .. }));
        if !is_header && positions[to.block] > positions[block] {
            forwards[block] = Some(forwards[to.block].clone().unwrap_or_else(|| to.clone()));
        }
    }
    forwards
}

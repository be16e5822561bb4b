//! Merges each block that ends with a jump into its only successor, so that instruction selection sees longer blocks:
//! it merges instructions of one block only.

use cranelift_entity::SecondaryMap;

use super::{Block, InstData, Kernel};

/// Merges each block whose only successor has no other predecessor and no parameters with that successor.
///
/// The result has the successor's position in the layout: at the position of the first, code of a loop exit could split
/// the loop's blocks, and live ranges through the loop would seem longer.
pub fn merge_simd_blocks(kernel: &mut Kernel) {
    let mut edges: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut positions: SecondaryMap<Block, usize> = SecondaryMap::new();
    for (position, &block) in kernel.layout.iter().enumerate() {
        kernel.targets(block).iter().for_each(|call| edges[call.block] += 1);
        positions[block] = position;
    }
    let mut merged_into: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    let mut layout: Vec<Option<Block>> = kernel.layout.iter().copied().map(Some).collect();
    // Last blocks first: a chain merges from its end.
    for (position, &block) in kernel.layout.iter().enumerate().skip(1).rev() {
        let Some(&last) = kernel.blocks[block].insts.last() else { continue };
        let InstData::Jump { to } = &kernel.insts[last] else { continue };
        let next = to.block;
        let (here, there) = (&kernel.blocks[block], &kernel.blocks[next]);
        let fits = here.exec.is_none() || there.exec.is_none_or(|exec| here.exec == Some(exec));
        if next == block || edges[next] != 1 || !there.params.is_empty() || there.is_region_entry || !fits {
            continue;
        }
        let there = std::mem::take(&mut kernel.blocks[next]);
        merged_into[next] = Some(block);
        let here = &mut kernel.blocks[block];
        here.insts.pop();
        here.insts.extend(there.insts);
        here.exec = here.exec.or(there.exec);
        layout[position] = None;
        layout[positions[next]] = Some(block);
        positions[block] = positions[next];
    }
    kernel.layout = layout.into_iter().flatten().collect();
    let merged = |block: Block| std::iter::successors(Some(block), |&block| merged_into[block]).last().unwrap_or(block);
    for subgroup_loop in &mut kernel.subgroup_loops {
        subgroup_loop.preheader = merged(subgroup_loop.preheader);
        subgroup_loop.latch = merged(subgroup_loop.latch);
    }
}

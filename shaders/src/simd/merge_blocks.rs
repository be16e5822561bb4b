//! Blocks that only follow each other become one: what selection can take in is what stands in the same block.

use cranelift_entity::SecondaryMap;

use super::{Block, InstData, Kernel};

/// Joins each block that ends with a jump to one that nobody else goes to, and that takes no parameters, with that one.
///
/// Both stand where the second stood: a way out of a loop would tear the loop's blocks apart, and what lives through it would seem to live
/// longer.
pub fn merge_blocks(kernel: &mut Kernel) {
    let mut ways: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut places: SecondaryMap<Block, usize> = SecondaryMap::new();
    for (place, &block) in kernel.layout.iter().enumerate() {
        kernel.targets(block).iter().for_each(|call| ways[call.block] += 1);
        places[block] = place;
    }
    let mut layout: Vec<Option<Block>> = kernel.layout.iter().copied().map(Some).collect();
    // Those behind come first: a chain is joined from its end.
    for (place, &block) in kernel.layout.iter().enumerate().skip(1).rev() {
        let Some(&last) = kernel.blocks[block].insts.last() else { continue };
        let InstData::Jump { to } = &kernel.insts[last] else { continue };
        let next = to.block;
        let (here, there) = (&kernel.blocks[block], &kernel.blocks[next]);
        let fits = here.exec.is_none() || there.exec.is_none_or(|exec| here.exec == Some(exec));
        if next == block || ways[next] != 1 || !there.params.is_empty() || there.is_region_entry || !fits {
            continue;
        }
        let there = std::mem::take(&mut kernel.blocks[next]);
        let here = &mut kernel.blocks[block];
        here.insts.pop();
        here.insts.extend(there.insts);
        here.exec = here.exec.or(there.exec);
        layout[place] = None;
        layout[places[next]] = Some(block);
        places[block] = places[next];
    }
    kernel.layout = layout.into_iter().flatten().collect();
}

//! A walk through the dominator tree: how passes see every definition before its uses and know what holds where they are.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::Dominators;
use crate::ir::{Block, Kernel};

/// A step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Down into a block, after the block that dominates it and before those that it dominates.
    Enter(Block),
    /// Back up: all that the block dominates has been seen.
    Leave(Block),
}

/// All blocks in reach, from the entry. Of the blocks below one, those that come first in the layout come first here, so
/// that a block comes after all its predecessors except for loops' back edges.
pub fn dominator_walk(kernel: &Kernel, dominators: &Dominators) -> Vec<Step> {
    let mut below: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    let mut beside: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for &block in kernel.layout.iter().rev() {
        if let Some(idom) = dominators.idom(block) {
            beside[block] = below[idom];
            below[idom] = block.into();
        }
    }
    let mut steps = Vec::with_capacity(kernel.layout.len() * 2);
    let mut next = kernel.layout.first().copied();
    let mut open: Vec<Block> = Vec::new();
    loop {
        if let Some(block) = next {
            steps.push(Step::Enter(block));
            open.push(block);
            next = below[block].expand();
        } else if let Some(block) = open.pop() {
            steps.push(Step::Leave(block));
            next = beside[block].expand();
        } else {
            return steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_after_their_predecessors() {
        let text = "kernel \"k\" 1, 1, 1\n\
            block0:\n    v0 = const.bool true\n    selection block2\n    branch v0, block1, block2\n\
            block1:\n    jump block2\n\
            block2:\n    jump block3\n\
            block3:\n    return\n\
            block4:\n    jump block3\n";
        let kernel = Kernel::parse(text).expect("the text is a kernel");
        let walk = dominator_walk(&kernel, &Dominators::new(&kernel));
        let shown: Vec<_> = walk
            .iter()
            .map(|step| match step {
                Step::Enter(block) => block.as_u32() as i32,
                Step::Leave(block) => -(block.as_u32() as i32) - 1,
            })
            .collect();
        assert_eq!(shown, [0, 1, -2, 2, 3, -4, -3, -1]);
    }
}

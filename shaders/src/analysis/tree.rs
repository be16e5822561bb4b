//! Dominator-tree walk (depth first): visits every definition before its uses, with scopes for facts that hold in a
//! block and all that it dominates.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::Dominators;
use crate::ir::{Block, Kernel};

/// A step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// Enters a block: after its immediate dominator, before the blocks that it dominates.
    Enter(Block),
    /// Leaves a block: all blocks that it dominates have been visited.
    Leave(Block),
}

/// Walks all reachable blocks from the entry. Children of a block are visited in layout order, so a block comes after
/// all its predecessors except those of back edges.
pub fn dominator_walk(kernel: &Kernel, dominators: &Dominators) -> Vec<WalkStep> {
    let mut first_child: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    let mut next_sibling: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for &block in kernel.layout.iter().rev() {
        if let Some(idom) = dominators.idom(block) {
            next_sibling[block] = first_child[idom];
            first_child[idom] = block.into();
        }
    }
    let mut steps = Vec::with_capacity(kernel.layout.len() * 2);
    let mut next = kernel.layout.first().copied();
    let mut open: Vec<Block> = Vec::new();
    loop {
        if let Some(block) = next {
            steps.push(WalkStep::Enter(block));
            open.push(block);
            next = first_child[block].expand();
        } else if let Some(block) = open.pop() {
            steps.push(WalkStep::Leave(block));
            next = next_sibling[block].expand();
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
                WalkStep::Enter(block) => block.as_u32() as i32,
                WalkStep::Leave(block) => -(block.as_u32() as i32) - 1,
            })
            .collect();
        assert_eq!(shown, [0, 1, -2, 2, 3, -4, -3, -1]);
    }
}

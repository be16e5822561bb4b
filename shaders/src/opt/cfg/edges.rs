//! Counts the incoming edges of each block, for passes that move blocks: a block with one incoming edge can be merged
//! into its predecessor.

use cranelift_entity::SecondaryMap;

use super::named;
use crate::ir::{Block, Kernel};

/// How many edges lead to each block, and how many annotations name it.
#[derive(Default)]
pub(in crate::opt) struct Edges {
    pub(in crate::opt) incoming: SecondaryMap<Block, u32>,
    pub(in crate::opt) names: SecondaryMap<Block, u32>,
}

impl Edges {
    /// Counts the edges and annotations of these blocks.
    pub(in crate::opt) fn from(kernel: &Kernel, blocks: &[Block]) -> Self {
        let mut edges = Self::default();
        for &block in blocks {
            named(kernel.blocks[block].merge).for_each(|block| edges.names[block] += 1);
            let Some(last) = kernel.last_inst(block) else { continue };
            kernel.insts[last].targets().iter().for_each(|call| edges.incoming[call.block] += 1);
        }
        edges
    }

    /// Whether exactly one edge leads to the block, and no annotation names it.
    pub(in crate::opt) fn is_own(&self, block: Block) -> bool {
        self.incoming[block] == 1 && self.names[block] == 0
    }
}

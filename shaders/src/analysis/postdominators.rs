//! Which block stands on every way from which other block to the end, in the same trip through the loops around them.
//!
//! The dominators of the graph turned around, in which a way back to a loop's header is all ways out of that loop: that is
//! where it leads in the end, without the blocks of the loop that the trip leaves out.

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

use super::{Dominators, FlowGraph, Loops};
use crate::ir::{Block, Kernel};

/// Blocks by the ways from them to the end.
#[derive(Debug)]
pub struct Postdominators {
    tree: Dominators,
}

impl Postdominators {
    /// Of a kernel whose edges backwards all are those of loops.
    pub fn new(kernel: &Kernel, dominators: &Dominators, loops: &Loops) -> Self {
        Self { tree: Dominators::new(&Backwards::new(kernel, dominators, loops)) }
    }

    /// Whether every way from `block` leads through `below`, which may be the same: in the same trip, if they are in the same
    /// loops.
    pub fn postdominates(&self, below: Block, block: Block) -> bool {
        self.tree.dominates(below, block)
    }
}

/// The graph turned around, with a block behind all others.
struct Backwards {
    end: Block,
    before: SecondaryMap<Block, SmallVec<[Block; 4]>>,
}

impl Backwards {
    fn new(kernel: &Kernel, dominators: &Dominators, loops: &Loops) -> Self {
        let end = Block::new(kernel.blocks.len());
        let mut graph = Self { end, before: SecondaryMap::new() };
        let exits: Vec<Vec<Block>> = (0..loops.all.len()).map(|number| loops.exits(kernel, number)).collect();
        for &block in &kernel.layout {
            let mut is_last = true;
            kernel.successors(block, |to| {
                is_last = false;
                let left =
                    loops.of(to).filter(|&number| loops.all[number].header == to && dominators.dominates(to, block));
                match left.map(|number| &exits[number][..]) {
                    None => graph.before[to].push(block),
                    Some([]) => graph.before[end].push(block),
                    Some(exits) => exits.iter().for_each(|&exit| graph.before[exit].push(block)),
                }
            });
            if is_last {
                graph.before[end].push(block);
            }
        }
        graph
    }
}

impl FlowGraph for Backwards {
    type Block = Block;

    fn entry(&self) -> Option<Block> {
        Some(self.end)
    }

    fn successors(&self, block: Block, visit: impl FnMut(Block)) {
        self.before[block].iter().copied().for_each(visit);
    }
}

//! Post-dominator tree, within one iteration of the enclosing loops.
//!
//! The dominator tree of the reversed graph, in which each back edge is replaced by edges to all exit blocks of its
//! loop. A back edge reaches these in the end, and blocks that the iteration skips do not post-dominate it.

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

use super::{Dominators, FlowGraph, Loops};
use crate::ir::{Block, Kernel};

/// Post-dominator tree.
#[derive(Debug)]
pub struct Postdominators {
    tree: Dominators,
}

impl Postdominators {
    /// Computes the tree of a kernel whose retreating edges are all back edges of `loops`.
    pub fn new(kernel: &Kernel, dominators: &Dominators, loops: &Loops) -> Self {
        Self { tree: Dominators::new(&ReverseGraph::new(kernel, dominators, loops)) }
    }

    /// Whether `below` post-dominates `block`: every path from `block` to a return contains `below`, in the same
    /// iteration if both are in the same loops. A block post-dominates itself.
    pub fn postdominates(&self, below: Block, block: Block) -> bool {
        self.tree.dominates(below, block)
    }
}

/// The reversed graph, with a virtual exit block as its entry.
struct ReverseGraph {
    end: Block,
    before: SecondaryMap<Block, SmallVec<[Block; 4]>>,
}

impl ReverseGraph {
    fn new(kernel: &Kernel, dominators: &Dominators, loops: &Loops) -> Self {
        let end = Block::new(kernel.blocks.len());
        let mut graph = Self { end, before: SecondaryMap::new() };
        let exits: Vec<Vec<Block>> = (0..loops.all.len()).map(|number| loops.exits(kernel, number)).collect();
        for &block in &kernel.layout {
            let mut is_last = true;
            kernel.successors(block, |to| {
                is_last = false;
                // The loop whose back edge this is.
                let left =
                    loops.of(to).filter(|&number| loops.all[number].header == to && dominators.dominates(to, block));
                match left.map(|number| &exits[number][..]) {
                    None => graph.before[to].push(block),
                    // A loop without exits: infinite.
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

impl FlowGraph for ReverseGraph {
    type Block = Block;

    fn entry(&self) -> Option<Block> {
        Some(self.end)
    }

    fn successors(&self, block: Block, visit: impl FnMut(Block)) {
        self.before[block].iter().copied().for_each(visit);
    }
}

//! Dominator tree (Semi-NCA).
//!
//! Computes semidominators with path compression, then each immediate dominator as a nearest common ancestor
//! (Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", 2005). Fixed-point iteration over the
//! graph would be shorter, but is quadratic for a function with many early returns. No recursion: nothing limits the
//! depth of a kernel's control flow.

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

use super::{Function, Instruction};

/// Control-flow graph: kernels of both IRs.
pub trait FlowGraph {
    /// Identifies a block.
    type Block: EntityRef;

    /// The entry block; `None` for a graph without blocks.
    fn entry(&self) -> Option<Self::Block>;

    /// Calls `visit` with every target of the block's terminator.
    fn successors(&self, block: Self::Block, visit: impl FnMut(Self::Block));
}

impl<K: Function> FlowGraph for K {
    type Block = K::Block;

    fn entry(&self) -> Option<K::Block> {
        self.layout().first().copied()
    }

    fn successors(&self, block: K::Block, visit: impl FnMut(K::Block)) {
        let last = self.block(block).and_then(|(_, insts)| insts.last()).and_then(|&last| self.inst(last));
        if let Some(last) = last {
            last.targets().iter().map(|call| call.block).for_each(visit);
        }
    }
}

/// Dominator tree of the reachable blocks.
#[derive(Debug)]
pub struct Dominators<Block: EntityRef> {
    /// Number in depth-first preorder, plus 1; 0 for unreachable blocks.
    number: SecondaryMap<Block, u32>,
    blocks: Vec<Block>,
    /// Immediate dominator by number; that of the entry is the entry.
    idoms: Vec<usize>,
    /// By number: first and last preorder number of the block's dominator subtree.
    spans: Vec<(u32, u32)>,
}

impl<Block: EntityRef> Dominators<Block> {
    /// Computes the tree. Targets of branches must be blocks of the kernel. Without blocks the tree is empty.
    pub fn new(kernel: &impl FlowGraph<Block = Block>) -> Self {
        let graph = Graph::new(kernel);
        let idoms = graph.idoms();
        let spans = spans(&idoms);
        Self { number: graph.number, blocks: graph.blocks, idoms, spans }
    }

    /// Whether the entry reaches the block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.number[block] != 0
    }

    /// Immediate dominator; `None` for the entry and for unreachable blocks.
    pub fn idom(&self, block: Block) -> Option<Block> {
        let number = (self.number[block] as usize).checked_sub(1).filter(|&number| number != 0)?;
        Some(self.blocks[self.idoms[number]])
    }

    /// Whether `above` dominates `block`: every path from the entry to `block` contains `above`. A reachable block
    /// dominates itself; an unreachable one neither dominates nor is dominated.
    pub fn dominates(&self, above: Block, block: Block) -> bool {
        let span = |block: Block| (self.number[block] as usize).checked_sub(1).map(|number| self.spans[number]);
        match (span(above), span(block)) {
            (Some(above), Some(block)) => above.0 <= block.0 && block.1 <= above.1,
            _ => false,
        }
    }
}

/// Depth-first spanning tree: blocks by preorder number, with their parents and predecessors.
struct Graph<Block: EntityRef> {
    number: SecondaryMap<Block, u32>,
    blocks: Vec<Block>,
    parents: Vec<usize>,
    predecessors: Vec<SmallVec<[u32; 4]>>,
}

impl<Block: EntityRef> Graph<Block> {
    fn new(kernel: &impl FlowGraph<Block = Block>) -> Self {
        // Most kernels have fewer blocks: the lists do not reallocate.
        const CAPACITY: usize = 32;
        let mut graph = Self {
            number: SecondaryMap::with_capacity(CAPACITY),
            blocks: Vec::with_capacity(CAPACITY),
            parents: Vec::with_capacity(CAPACITY),
            predecessors: Vec::with_capacity(CAPACITY),
        };
        let mut stack: Vec<(usize, Block)> = kernel.entry().map(|entry| (0, entry)).into_iter().collect();
        while let Some((from, block)) = stack.pop() {
            if graph.number[block] == 0 {
                graph.blocks.push(block);
                graph.parents.push(from);
                graph.predecessors.push(SmallVec::new());
                graph.number[block] = graph.blocks.len() as u32;
                let number = graph.blocks.len() - 1;
                kernel.successors(block, |to| stack.push((number, to)));
            }
            let number = graph.number[block] as usize - 1;
            graph.predecessors[number].push(from as u32);
        }
        graph
    }

    fn idoms(&self) -> Vec<usize> {
        let count = self.blocks.len();
        let mut forest = Forest {
            ancestor: self.parents.clone(),
            label: (0..count).collect(),
            semi: (0..count).collect(),
            path: Vec::new(),
        };
        // Semidominators need those of all blocks with a larger number: descending order.
        for block in (1..count).rev() {
            let reached = self.predecessors[block].iter().map(|&from| forest.lowest(from as usize, block)).min();
            forest.semi[block] = reached.unwrap_or(block);
        }
        // The immediate dominator is the nearest dominator of the parent whose number is at most the semidominator's.
        let mut idoms = self.parents.clone();
        for block in 1..count {
            let mut idom = idoms[block];
            while idom > forest.semi[block] {
                idom = idoms[idom];
            }
            idoms[block] = idom;
        }
        idoms
    }
}

/// The part of the depth-first tree whose semidominators are known, with compressed paths to the root.
struct Forest {
    ancestor: Vec<usize>,
    label: Vec<usize>,
    semi: Vec<usize>,
    /// Scratch: the path that is being compressed.
    path: Vec<usize>,
}

impl Forest {
    /// The least semidominator on the path from `from` up to `limit`, exclusive; `from` itself if it is not after
    /// `limit`.
    fn lowest(&mut self, from: usize, limit: usize) -> usize {
        if from <= limit {
            return from;
        }
        let mut path = std::mem::take(&mut self.path);
        path.push(from);
        while let Some(&top) = path.last()
            && self.ancestor[top] > limit
        {
            path.push(self.ancestor[top]);
        }
        // Path compression from the top down: the ancestor of each block on the path is now `limit` or before, and its
        // label has the least semidominator.
        let mut above = path.pop();
        while let (Some(top), Some(block)) = (above, path.pop()) {
            if self.semi[self.label[top]] < self.semi[self.label[block]] {
                self.label[block] = self.label[top];
            }
            self.ancestor[block] = self.ancestor[top];
            above = Some(block);
        }
        self.path = path;
        self.semi[self.label[from]]
    }
}

/// Preorder intervals of the dominator subtrees. An immediate dominator has a smaller number than its children, so two
/// passes without recursion are enough: subtree sizes upwards, then intervals downwards.
fn spans(idoms: &[usize]) -> Vec<(u32, u32)> {
    let mut sizes = vec![1u32; idoms.len()];
    for block in (1..idoms.len()).rev() {
        sizes[idoms[block]] += sizes[block];
    }
    let mut spans = vec![(0, 0); idoms.len()];
    let mut next = vec![1u32; idoms.len()];
    for block in 0..idoms.len() {
        let start = if block == 0 { 0 } else { next[idoms[block]] };
        if block != 0 {
            next[idoms[block]] += sizes[block];
        }
        next[block] = start + 1;
        spans[block] = (start, start + sizes[block] - 1);
    }
    spans
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Dominators;
    use crate::ir::{Block, Kernel};

    /// A kernel with the given edges; blocks without successors return.
    fn graph(edges: &[(u32, u32)], count: u32) -> Kernel {
        let mut text = String::from("kernel \"k\" 1, 1, 1\n");
        for block in 0..count {
            let targets: Vec<u32> = edges.iter().filter(|edge| edge.0 == block).map(|edge| edge.1).collect();
            text += &format!("block{block}:\n  v{block} = const.i32 0\n  ");
            text += &match targets.split_first() {
                None => "return\n".to_owned(),
                Some((first, rest)) => {
                    let cases: Vec<_> = rest.iter().enumerate().map(|(i, to)| format!("{i}: block{to}")).collect();
                    format!("switch v{block}, block{first} [{}]\n", cases.join(", "))
                }
            };
        }
        Kernel::parse(&text).unwrap()
    }

    /// Blocks that the entry reaches on paths that avoid `without`.
    fn reach(edges: &[(u32, u32)], without: Option<u32>) -> BTreeSet<u32> {
        let mut reached = BTreeSet::new();
        let mut stack = vec![0];
        while let Some(block) = stack.pop() {
            if Some(block) != without && reached.insert(block) {
                stack.extend(edges.iter().filter(|edge| edge.0 == block).map(|edge| edge.1));
            }
        }
        reached
    }

    proptest! {
        #[test]
        fn dominators_cannot_be_avoided(edges in proptest::collection::vec((0u32..12, 1u32..12), 0..40)) {
            let dominators = Dominators::new(&graph(&edges, 12));
            let reached = reach(&edges, None);
            for above in 0..12 {
                let avoidable = reach(&edges, Some(above));
                for block in 0..12 {
                    let [a, b] = [above, block].map(Block::from_u32);
                    prop_assert_eq!(dominators.is_reachable(b), reached.contains(&block));
                    let expected = reached.contains(&block) && !avoidable.contains(&block);
                    prop_assert_eq!(dominators.dominates(a, b), expected, "block{} block{}", above, block);
                }
            }
        }
    }

    #[test]
    fn a_long_chain_with_early_returns_is_no_problem() {
        let count = 20_000;
        let edges: Vec<_> = (0..count - 2).flat_map(|i| [(i, i + 1), (i, count - 1)]).collect();
        // Built by hand: the helper above is quadratic.
        let mut kernel = graph(&[], 1);
        kernel.layout.clear();
        kernel.blocks.clear();
        for _ in 0..count {
            kernel.layout.push(kernel.blocks.push(crate::ir::BlockData::default()));
        }
        for pair in edges.chunks(2) {
            let [then, otherwise] = [pair[0].1, pair[1].1].map(|to| crate::ir::BlockCall::new(Block::from_u32(to)));
            let condition = crate::ir::Value::from_u32(0);
            let inst = kernel.insts.push(crate::ir::InstData::Branch { condition, then, otherwise });
            kernel.blocks[Block::from_u32(pair[0].0)].insts.push(inst);
        }
        let dominators = Dominators::new(&kernel);
        assert_eq!(dominators.idom(Block::from_u32(count - 1)), Some(Block::from_u32(0)));
        assert_eq!(dominators.idom(Block::from_u32(count - 2)), Some(Block::from_u32(count - 3)));
    }
}

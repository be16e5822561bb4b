//! Natural loops: their headers, latches and blocks, and how they nest.

use cranelift_entity::SecondaryMap;

use super::Dominators;
use crate::ir::{Block, Kernel};
use crate::ssa::{natural_loop, predecessors};

/// A natural loop: all blocks on paths from its header to one of its back edges.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The only block through which control enters.
    pub header: Block,
    /// Sources of the back edges to the header.
    pub latches: Vec<Block>,
    /// All blocks of the loop, inner loops included, in layout order; the header is the first.
    pub blocks: Vec<Block>,
    /// The innermost enclosing loop, as an index into [`Loops::all`].
    pub parent: Option<usize>,
}

/// The loops of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// All loops in the layout order of their headers: an outer loop comes before its inner loops.
    pub all: Vec<Loop>,
    innermost: SecondaryMap<Block, Option<usize>>,
    /// By loop: first and last preorder number of its subtree in the loop forest.
    spans: Vec<(usize, usize)>,
}

impl Loops {
    /// Finds the loops by their back edges, edges to a block that dominates their source. A retreating edge to a block
    /// that does not dominate its source (irreducible control flow) makes no loop.
    pub fn new(kernel: &Kernel, dominators: &Dominators) -> Self {
        let mut loops = Self::default();
        loops.innermost.resize(kernel.blocks.len());
        let (predecessors, positions) = (predecessors(kernel), positions(kernel));
        for &header in &kernel.layout {
            let back = |block: &Block| dominators.is_reachable(*block) && dominators.dominates(header, *block);
            let latches: Vec<Block> = predecessors[header].iter().copied().filter(back).collect();
            if latches.is_empty() {
                continue;
            }
            let (mut blocks, _) = natural_loop(header, &latches, &predecessors, |block| dominators.is_reachable(block));
            blocks.sort_by_key(|&block| positions[block]);
            let number = loops.all.len();
            let parent = loops.innermost[header];
            for &block in &blocks {
                loops.innermost[block] = Some(number);
            }
            kernel.work.visit(blocks.len());
            loops.all.push(Loop { header, latches, blocks, parent });
            // The lists of blocks take memory quadratic in the nesting depth: the work budget bounds it.
            if kernel.work.is_spent() {
                break;
            }
        }
        loops.spans = loops.spans();
        loops
    }

    /// The innermost loop that contains a block, as an index into [`Loops::all`].
    pub fn of(&self, block: Block) -> Option<usize> {
        self.innermost[block]
    }

    /// The loop with this header.
    pub fn headed_by(&self, block: Block) -> Option<&Loop> {
        self.of(block).map(|number| &self.all[number]).filter(|found| found.header == block)
    }

    /// Whether a loop (an index into [`Loops::all`]) contains a block.
    pub fn contains(&self, number: usize, block: Block) -> bool {
        let (first, last) = self.spans[number];
        self.of(block).is_some_and(|inner| (first..=last).contains(&self.spans[inner].0))
    }

    /// Preorder intervals of the loop forest's subtrees.
    fn spans(&self) -> Vec<(usize, usize)> {
        let mut sizes = vec![1; self.all.len()];
        for (number, found) in self.all.iter().enumerate().rev() {
            if let Some(parent) = found.parent {
                sizes[parent] += sizes[number];
            }
        }
        let mut next = 0;
        let mut inside = vec![0; self.all.len()];
        let mut spans = Vec::with_capacity(self.all.len());
        for (number, found) in self.all.iter().enumerate() {
            let free = found.parent.map_or(&mut next, |parent| &mut inside[parent]);
            let first = *free;
            *free += sizes[number];
            inside[number] = first + 1;
            spans.push((first, first + sizes[number] - 1));
        }
        spans
    }

    /// Exit blocks of a loop (an index into [`Loops::all`]): targets of its blocks outside it, each once.
    pub fn exits(&self, kernel: &Kernel, number: usize) -> Vec<Block> {
        let last = self.all[number].blocks.iter().filter_map(|&block| kernel.blocks[block].insts.last());
        let targets = last.flat_map(|&last| kernel.insts[last].targets()).map(|call| call.block);
        let mut exits: Vec<Block> = targets.filter(|&block| !self.contains(number, block)).collect();
        exits.sort_unstable();
        exits.dedup();
        exits
    }

    /// Loop depth of a block: the number of loops that contain it.
    pub fn depth(&self, block: Block) -> usize {
        std::iter::successors(self.of(block), |&number| self.all[number].parent).count()
    }
}

/// Position of every block in the layout.
pub fn positions(kernel: &Kernel) -> SecondaryMap<Block, u32> {
    let mut positions = SecondaryMap::new();
    positions.resize(kernel.blocks.len());
    for (position, &block) in kernel.layout.iter().enumerate() {
        positions[block] = position as u32;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_loops_with_an_exit_from_both() {
        let text = "kernel \"k\" 1, 1, 1\n\
            block0:\n    v0 = const.bool true\n    jump block1()\n\
            block1:\n    loop block6, block5\n    branch v0, block2, block6\n\
            block2:\n    loop block5, block4\n    branch v0, block3, block5\n\
            block3:\n    selection block4\n    branch v0, block4, block7\n\
            block7:\n    return\n\
            block4:\n    jump block2()\n\
            block5:\n    jump block1()\n\
            block6:\n    return\n";
        let kernel = Kernel::parse(&text.replace("()", "")).expect("the text is a kernel");
        let loops = Loops::new(&kernel, &Dominators::new(&kernel));
        let numbers = |list: &[Block]| list.iter().map(|block| block.as_u32()).collect::<Vec<_>>();
        let found: Vec<_> = loops.all.iter().map(|l| (numbers(&l.blocks), numbers(&l.latches), l.parent)).collect();
        assert_eq!(found, [(vec![1, 2, 3, 4, 5], vec![5], None), (vec![2, 3, 4], vec![4], Some(0))]);
        let depths: Vec<_> = kernel.layout.iter().map(|&block| loops.depth(block)).collect();
        assert_eq!(depths, [0, 1, 2, 2, 0, 2, 1, 0]);
    }
}

//! Incremental dominator tree and loop nest of a kernel under construction, to find the last write of a variable
//! without visiting the blocks between.
//!
//! A block is placed once all its incoming edges other than back edges are known. Ancestors are found by jump pointers
//! (Myers, "An applicative random-access stack", 1983), so the cost of a query is logarithmic in the nesting depth.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::Block;

/// Position of a block in the layout order, from 0, and in the dominator tree.
#[derive(Clone, Copy, Debug, Default)]
struct BlockPosition {
    /// Position in the order, plus 1; 0 for blocks that are not placed yet.
    order: u32,
    depth: u32,
    idom: PackedOption<Block>,
    /// Jump pointer: a farther dominator; the block itself for a root.
    jump: PackedOption<Block>,
    /// The innermost enclosing loop, plus 1.
    inside: u32,
}

/// A loop of the kernel, complete or under construction.
#[derive(Clone, Copy, Debug)]
struct LoopExtent {
    header: Block,
    parent: Option<u32>,
    depth: u32,
    jump: u32,
    extent: LoopSpan,
}

/// The part of the scalar kernel that a loop covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopSpan {
    /// The blocks at these positions, from the header to the last.
    Span(u32, u32),
    /// Part of one block.
    Within,
    /// Blocks with barriers at which subgroups suspend: the header does not dominate the code after a resume.
    Stops(u32, u32),
}

impl LoopSpan {
    /// The positions of the first and last block of the loop.
    pub(crate) fn span(self) -> Option<(u32, u32)> {
        match self {
            Self::Span(first, last) | Self::Stops(first, last) => Some((first, last)),
            Self::Within => None,
        }
    }
}

/// The placed blocks and their loops.
#[derive(Debug, Default)]
pub(crate) struct Dominance {
    places: SecondaryMap<Block, BlockPosition>,
    placed: u32,
    loops: Vec<LoopExtent>,
    open: Vec<u32>,
}

impl Dominance {
    /// Appends a block to the end of the order.
    pub(crate) fn append(&mut self, block: Block, predecessors: &[Block]) {
        self.placed += 1;
        self.places[block].order = self.placed;
        self.places[block].inside = self.open.last().map_or(0, |&number| number + 1);
        self.set_predecessors(block, predecessors);
    }

    /// Sets the immediate dominator of a placed block: the nearest common dominator of its predecessors.
    pub(crate) fn set_predecessors(&mut self, block: Block, predecessors: &[Block]) {
        let mut sources = predecessors.iter().copied();
        let mut idom = sources.next();
        for source in sources {
            idom = idom.and_then(|idom| self.common(idom, source));
        }
        let place = match idom {
            None => BlockPosition { depth: 0, idom: None.into(), jump: block.into(), ..self.places[block] },
            Some(idom) => {
                let above = self.places[idom];
                let far = above.jump.expand().unwrap_or(idom);
                let further = self.places[far];
                let same = above.depth - further.depth == further.depth - self.depth_of(further.jump);
                let jump = if same { further.jump } else { idom.into() };
                BlockPosition { depth: above.depth + 1, idom: idom.into(), jump, ..self.places[block] }
            }
        };
        self.places[block] = place;
    }

    fn depth_of(&self, block: PackedOption<Block>) -> u32 {
        block.expand().map_or(0, |block| self.places[block].depth)
    }

    /// The nearest block that dominates both.
    fn common(&self, a: Block, b: Block) -> Option<Block> {
        let (mut a, mut b) = if self.places[a].depth < self.places[b].depth { (b, a) } else { (a, b) };
        let depth = self.places[b].depth;
        while self.places[a].depth > depth {
            let BlockPosition { idom, jump, .. } = self.places[a];
            a = if self.depth_of(jump) >= depth { jump } else { idom }.expand()?;
        }
        while a != b {
            let (one, other) = (self.places[a], self.places[b]);
            let far = one.jump != other.jump;
            (a, b) = if far {
                (one.jump.expand()?, other.jump.expand()?)
            } else {
                (one.idom.expand()?, other.idom.expand()?)
            };
            if self.places[a].depth == 0 && a != b {
                return None;
            }
        }
        Some(a)
    }

    /// Position of a block in the order.
    pub(crate) fn order(&self, block: Block) -> u32 {
        self.places[block].order
    }

    /// The highest dominator of a block that is after a position in the order, and its immediate dominator.
    pub(crate) fn highest_after(&self, mut block: Block, order: u32) -> (Block, Option<Block>) {
        let is_after = |block: &Block| self.places[*block].order > order;
        loop {
            let BlockPosition { idom, jump, .. } = self.places[block];
            let Some(idom) = idom.expand() else { return (block, None) };
            if !is_after(&idom) {
                return (block, Some(idom));
            }
            block = jump.expand().filter(is_after).unwrap_or(idom);
        }
    }

    /// Opens a loop; its header is the block that was placed last.
    pub(crate) fn open_loop(&mut self, header: Block, extent: LoopSpan) {
        let number = self.loops.len() as u32;
        let parent = self.open.last().copied();
        let found = match parent {
            None => LoopExtent { header, parent, depth: 0, jump: number, extent },
            Some(above) => {
                let LoopExtent { depth, jump: far, .. } = self.loops[above as usize];
                let LoopExtent { depth: further, jump, .. } = self.loops[far as usize];
                let same = depth - further == further - self.loops[jump as usize].depth;
                LoopExtent { header, parent, depth: depth + 1, jump: if same { jump } else { above }, extent }
            }
        };
        self.loops.push(found);
        self.open.push(number);
        if let LoopSpan::Stops(..) = extent {
            // The back edge comes from code after a resume point: no block above the header dominates it on all paths.
            self.set_predecessors(header, &[]);
        }
        self.places[header].inside = number + 1;
    }

    /// Closes the innermost open loop: all its blocks are placed.
    pub(crate) fn close_loop(&mut self) {
        self.open.pop();
    }

    /// The header and extent of the innermost loop around a block that `fits` accepts; it accepts all loops around such
    /// a loop, too.
    pub(crate) fn innermost(&self, block: Block, fits: impl Fn(LoopSpan) -> bool) -> Option<(Block, LoopSpan)> {
        let mut number = self.places[block].inside.checked_sub(1)?;
        loop {
            let LoopExtent { header, parent, jump, extent, .. } = self.loops[number as usize];
            if fits(extent) {
                return Some((header, extent));
            }
            number = if jump != number && !fits(self.loops[jump as usize].extent) { jump } else { parent? };
        }
    }
}

#[cfg(test)]
mod tests {
    use cranelift_entity::EntityRef;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every block gets edges from earlier blocks; a dominator is a block without which the other is unreachable.
        #[test]
        fn ancestors_are_the_dominators(edges in proptest::collection::vec(proptest::collection::vec(0usize..24, 1..4), 1..24)) {
            let mut dominance = Dominance::default();
            dominance.append(Block::new(0), &[]);
            let mut before: Vec<Vec<usize>> = vec![Vec::new()];
            for (at, sources) in edges.iter().enumerate() {
                let list: Vec<usize> = sources.iter().map(|source| source % (at + 1)).collect();
                let blocks: Vec<Block> = list.iter().map(|&source| Block::new(source)).collect();
                dominance.append(Block::new(at + 1), &blocks);
                before.push(list);
            }
            let dominates = |above: usize, below: usize| {
                let mut reached = vec![false; before.len()];
                for at in 0..before.len() {
                    reached[at] = at != above && (at == 0 || before[at].iter().any(|&source| reached[source]));
                }
                above == below || !reached[below]
            };
            for below in 0..before.len() {
                for order in 0..=below as u32 {
                    let above = (0..=below).find(|&at| at as u32 + 1 > order && dominates(at, below));
                    let idom = above.and_then(|above| (0..above).rev().find(|&at| dominates(at, above)));
                    let (found, up) = dominance.highest_after(Block::new(below), order);
                    prop_assert_eq!(Some(found), above.map(Block::new), "{} from {}", order, below);
                    prop_assert_eq!(up, idom.map(Block::new));
                }
            }
        }
    }
}

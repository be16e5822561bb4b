//! Which blocks dominate which, and which loops are around them, while a kernel is built block by block: what a variable was last
//! written with is found without a look at the blocks between.
//!
//! A block is placed when all ways to it but those back to a loop's header are known. Ways up are found by jumps of growing
//! length (Myers, "An applicative random-access stack", 1983), so that deep nests cost no more than the logarithm of their depth.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::Block;

/// A block in the order, from 0 on, and in the dominator tree.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Place in the order plus 1; 0 for blocks that have none yet.
    order: u32,
    depth: u32,
    idom: PackedOption<Block>,
    /// A dominator further up; the block itself, if it is a root.
    jump: PackedOption<Block>,
    /// The innermost loop around it, plus 1.
    inside: u32,
}

/// A loop that is being built, or was.
#[derive(Clone, Copy, Debug)]
struct Loop {
    header: Block,
    parent: Option<u32>,
    depth: u32,
    jump: u32,
    extent: Extent,
}

/// What of the scalar kernel a loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// These blocks, by position, from the header to the last.
    Span(u32, u32),
    /// A part of one block.
    Within,
    /// Blocks in which subgroups stop: the header does not dominate what runs after that.
    Stops(u32, u32),
}

impl Extent {
    /// The blocks that a loop is, by position.
    pub(crate) fn span(self) -> Option<(u32, u32)> {
        match self {
            Self::Span(first, last) | Self::Stops(first, last) => Some((first, last)),
            Self::Within => None,
        }
    }
}

/// Blocks that were placed.
#[derive(Debug, Default)]
pub(crate) struct Dominance {
    places: SecondaryMap<Block, Place>,
    placed: u32,
    loops: Vec<Loop>,
    open: Vec<u32>,
}

impl Dominance {
    /// Puts a block behind those before it in the order.
    pub(crate) fn place(&mut self, block: Block, predecessors: &[Block]) {
        self.placed += 1;
        self.places[block].order = self.placed;
        self.places[block].inside = self.open.last().map_or(0, |&number| number + 1);
        self.hang(block, predecessors);
    }

    /// Says behind which blocks a placed one comes.
    pub(crate) fn hang(&mut self, block: Block, predecessors: &[Block]) {
        let mut ways = predecessors.iter().copied();
        let mut idom = ways.next();
        for way in ways {
            idom = idom.and_then(|idom| self.common(idom, way));
        }
        let place = match idom {
            None => Place { depth: 0, idom: None.into(), jump: block.into(), ..self.places[block] },
            Some(idom) => {
                let above = self.places[idom];
                let far = above.jump.expand().unwrap_or(idom);
                let further = self.places[far];
                let same = above.depth - further.depth == further.depth - self.depth_of(further.jump);
                let jump = if same { further.jump } else { idom.into() };
                Place { depth: above.depth + 1, idom: idom.into(), jump, ..self.places[block] }
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
            let Place { idom, jump, .. } = self.places[a];
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

    /// Place of a block in the order.
    pub(crate) fn order(&self, block: Block) -> u32 {
        self.places[block].order
    }

    /// The last block on the way up the dominator tree that stands behind a place in the order, and what dominates that at once.
    pub(crate) fn behind(&self, mut block: Block, order: u32) -> (Block, Option<Block>) {
        let stands_behind = |block: &Block| self.places[*block].order > order;
        loop {
            let Place { idom, jump, .. } = self.places[block];
            let Some(idom) = idom.expand() else { return (block, None) };
            if !stands_behind(&idom) {
                return (block, Some(idom));
            }
            block = jump.expand().filter(stands_behind).unwrap_or(idom);
        }
    }

    /// The block that was just placed is the header of a loop.
    pub(crate) fn open_loop(&mut self, header: Block, extent: Extent) {
        let number = self.loops.len() as u32;
        let parent = self.open.last().copied();
        let found = match parent {
            None => Loop { header, parent, depth: 0, jump: number, extent },
            Some(above) => {
                let Loop { depth, jump: far, .. } = self.loops[above as usize];
                let Loop { depth: further, jump, .. } = self.loops[far as usize];
                let same = depth - further == further - self.loops[jump as usize].depth;
                Loop { header, parent, depth: depth + 1, jump: if same { jump } else { above }, extent }
            }
        };
        self.loops.push(found);
        self.open.push(number);
        if let Extent::Stops(..) = extent {
            // The way back to it begins where subgroups go on: nothing above is on all ways to it.
            self.hang(header, &[]);
        }
        self.places[header].inside = number + 1;
    }

    /// All blocks of the innermost open loop are placed.
    pub(crate) fn close_loop(&mut self) {
        self.open.pop();
    }

    /// The innermost loop around a block that `fits`, as all loops around such a one do: its header and what it is.
    pub(crate) fn innermost(&self, block: Block, fits: impl Fn(Extent) -> bool) -> Option<(Block, Extent)> {
        let mut number = self.places[block].inside.checked_sub(1)?;
        loop {
            let Loop { header, parent, jump, extent, .. } = self.loops[number as usize];
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
        /// Every block gets the ways that it is given from blocks before it; what dominates is what cannot be left out.
        #[test]
        fn the_way_up_is_that_of_dominators(ways in proptest::collection::vec(proptest::collection::vec(0usize..24, 1..4), 1..24)) {
            let mut dominance = Dominance::default();
            dominance.place(Block::new(0), &[]);
            let mut before: Vec<Vec<usize>> = vec![Vec::new()];
            for (at, ways) in ways.iter().enumerate() {
                let list: Vec<usize> = ways.iter().map(|way| way % (at + 1)).collect();
                let blocks: Vec<Block> = list.iter().map(|&way| Block::new(way)).collect();
                dominance.place(Block::new(at + 1), &blocks);
                before.push(list);
            }
            let dominates = |above: usize, below: usize| {
                let mut reached = vec![false; before.len()];
                for at in 0..before.len() {
                    reached[at] = at != above && (at == 0 || before[at].iter().any(|&way| reached[way]));
                }
                above == below || !reached[below]
            };
            for below in 0..before.len() {
                for order in 0..=below as u32 {
                    let above = (0..=below).find(|&at| at as u32 + 1 > order && dominates(at, below));
                    let idom = above.and_then(|above| (0..above).rev().find(|&at| dominates(at, above)));
                    let (found, up) = dominance.behind(Block::new(below), order);
                    prop_assert_eq!(Some(found), above.map(Block::new), "{} from {}", order, below);
                    prop_assert_eq!(up, idom.map(Block::new));
                }
            }
        }
    }
}

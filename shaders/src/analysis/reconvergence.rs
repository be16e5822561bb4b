//! Reconvergence analysis for control-flow linearization: which blocks have a block-in mask, where lanes reconverge,
//! and which block runs next.
//!
//! Blocks run in layout order. A divergent branch adds its active lanes to the block-in masks of its targets (edge
//! masks) and jumps to none of them: the next block with a block-in mask that may not be empty runs. A uniform branch
//! jumps, unless lanes may wait at a block that it would skip; then it sets edge masks, too. A loop is *divergent* if
//! lanes may leave it in different iterations: it iterates while its header's block-in mask is not empty.

use std::collections::BTreeSet;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::{Dominators, Loops, positions};
use crate::ir::{Block, InstData, Kernel};

/// What runs after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// This block.
    Block(Block),
    /// The end of a divergent loop (an index into [`Loops::all`]): it iterates if its header's block-in mask is not
    /// empty.
    LoopEnd(usize),
    /// Nothing: no block-in mask of a later block has lanes.
    End,
}

/// Intervals of layout positions that loops cover.
#[derive(Clone, Debug, Default)]
struct LoopSpans {
    positions: SecondaryMap<Block, u32>,
    /// By loop, as indexed in [`Loops::all`]: first and last position.
    all: Vec<(u32, u32)>,
    /// By loop: the innermost other loop whose interval contains this one.
    outer: Vec<Option<usize>>,
    /// By position: the innermost loop whose interval contains it. Unlike the loop, the interval can contain exit code.
    innermost: Vec<Option<usize>>,
}

impl LoopSpans {
    fn new(kernel: &Kernel, loops: &Loops) -> Self {
        let positions = positions(kernel);
        let last = |l: &super::Loop| l.blocks.last().map_or(0, |&last| positions[last]);
        let all: Vec<(u32, u32)> = loops.all.iter().map(|l| (positions[l.header], last(l))).collect();
        let mut innermost = vec![None; kernel.layout.len()];
        let mut outer = Vec::new();
        for (number, &(first, last)) in all.iter().enumerate() {
            outer.push(innermost[first as usize]);
            innermost[first as usize..=last as usize].fill(Some(number));
        }
        Self { positions, all, outer, innermost }
    }

    /// Loops whose intervals contain a position, innermost first.
    fn around(&self, at: u32) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.innermost[at as usize], |&number| self.outer[number])
    }

    /// Loops whose intervals an edge to `target` leaves, innermost first. Intervals nest: the first that contains the
    /// target ends the list.
    fn left(&self, at: u32, target: u32) -> impl Iterator<Item = usize> + '_ {
        self.around(at).take_while(move |&number| target > self.all[number].1)
    }

    /// The loop whose header is at a position.
    fn headed_by(&self, at: u32) -> Option<usize> {
        self.innermost[at as usize].filter(|&number| self.all[number].0 == at)
    }
}

/// Linearized control flow: blocks with block-in masks, divergent loops, reconvergence points, and successors in the
/// linear order.
#[derive(Clone, Debug)]
pub struct Linearization {
    spans: LoopSpans,
    /// Blocks that run with a block-in mask.
    block_in_masks: EntitySet<Block>,
    /// By loop, as indexed in [`Loops::all`].
    divergent: Vec<bool>,
    /// For a block with a block-in mask: the split block whose active lanes all reconverge here.
    reconverges: SecondaryMap<Block, Option<Block>>,
    /// Blocks that control may reach with an empty block-in mask.
    maybe_empty: EntitySet<Block>,
    /// What runs after a block that ends with edge masks only.
    after: SecondaryMap<Block, Option<Next>>,
    /// What runs instead of a block with an empty mask: also the first block that a uniform branch must not skip.
    instead: SecondaryMap<Block, Option<Next>>,
    /// What runs after a divergent loop.
    after_loop: Vec<Next>,
}

impl Linearization {
    /// Linearizes control flow, given the blocks that end in divergent branches. The layout must be a reverse
    /// postorder of the reachable blocks, and each loop must have one entry edge and one back edge.
    pub fn new(kernel: &Kernel, dominators: &Dominators, loops: &Loops, divergent: &EntitySet<Block>) -> Self {
        let mut linearizer = Linearizer::new(kernel, loops, divergent);
        while linearizer.sweep() && !kernel.work.is_spent() {}
        linearizer.finish(dominators)
    }

    /// Whether a block runs with a block-in mask; other blocks run with the mask of their predecessors.
    pub fn has_block_in_mask(&self, block: Block) -> bool {
        self.block_in_masks.contains(block)
    }

    /// Whether lanes may leave a loop (an index into [`Loops::all`]) in different iterations.
    pub fn is_divergent(&self, number: usize) -> bool {
        self.divergent[number]
    }

    /// If `block` is a reconvergence point: the split block whose active lanes, all and no others, are active here.
    pub fn reconverges(&self, block: Block) -> Option<Block> {
        self.reconverges[block]
    }

    /// Whether control may reach a block with an empty block-in mask, so that it needs a branch that skips it.
    pub fn maybe_empty(&self, block: Block) -> bool {
        self.maybe_empty.contains(block)
    }

    /// Whether an edge leaves a divergent loop, in which other lanes may stay.
    pub fn leaves(&self, from: Block, to: Block) -> bool {
        let (from, to) = (self.spans.positions[from], self.spans.positions[to]);
        self.spans.left(from, to).any(|number| self.divergent[number])
    }

    /// What runs after a block that has added all its lanes to block-in masks.
    pub fn after(&self, block: Block) -> Next {
        self.after[block].unwrap_or(Next::End)
    }

    /// What runs instead of a block with an empty block-in mask.
    pub fn instead(&self, block: Block) -> Next {
        self.instead[block].unwrap_or(Next::End)
    }

    /// What runs after a divergent loop.
    pub fn after_loop(&self, number: usize) -> Next {
        self.after_loop[number]
    }
}

struct Linearizer<'a> {
    kernel: &'a Kernel,
    loops: &'a Loops,
    spans: LoopSpans,
    /// By position: targets of the block's branch, and whether the edge has an edge mask.
    edges: Vec<Vec<(u32, bool)>>,
    /// By position: whether the block's branch is divergent.
    divergent_branches: Vec<bool>,
    divergent: Vec<bool>,
    /// By position: the first later position at which lanes of blocks before this one may wait.
    waiting: Vec<Option<u32>>,
    /// As `waiting`, with the lanes of the block itself.
    waiting_after: Vec<Option<u32>>,
}

impl<'a> Linearizer<'a> {
    fn new(kernel: &'a Kernel, loops: &'a Loops, divergent: &EntitySet<Block>) -> Self {
        let spans = LoopSpans::new(kernel, loops);
        let mut edges = Vec::new();
        for &block in &kernel.layout {
            let split = divergent.contains(block);
            let last = kernel.blocks[block].insts.last();
            let targets = last.map(|&last| kernel.insts[last].targets()).unwrap_or_default();
            edges.push(targets.iter().map(|call| (spans.positions[call.block], split)).collect());
        }
        let count = kernel.layout.len();
        Self {
            kernel,
            loops,
            spans,
            edges,
            divergent_branches: kernel.layout.iter().map(|&block| divergent.contains(block)).collect(),
            divergent: vec![false; loops.all.len()],
            waiting: vec![None; count],
            waiting_after: vec![None; count],
        }
    }

    /// The innermost divergent loop that an edge leaves.
    fn left(&self, at: u32, target: u32) -> Option<usize> {
        self.spans.left(at, target).find(|&number| self.divergent[number])
    }

    /// The first position at which lanes of an edge may wait: the header of the outermost divergent loop that it
    /// leaves, because lanes of earlier iterations wait during later ones.
    fn since(&self, at: u32, target: u32) -> u32 {
        let left = self.spans.left(at, target).filter(|&number| self.divergent[number]);
        left.map(|number| self.spans.all[number].0).min().unwrap_or(at)
    }

    /// One pass over all edges in layout order. Returns true if it found new edge masks or divergent loops.
    fn sweep(&mut self) -> bool {
        let mut changed = false;
        self.kernel.work.visit(self.edges.iter().map(|edges| 1 + edges.len()).sum());
        let mut early: Vec<Vec<u32>> = vec![Vec::new(); self.edges.len()];
        for at in 0..self.edges.len() as u32 {
            for &(target, masked) in &self.edges[at as usize] {
                let since = self.since(at, target);
                if masked && target > at && since < at {
                    early[since as usize].push(target);
                }
            }
        }
        let mut waiting: BTreeSet<u32> = BTreeSet::new();
        for at in 0..self.edges.len() as u32 {
            waiting.remove(&at);
            let first = waiting.first().copied();
            self.waiting[at as usize] = first;
            for edge in 0..self.edges[at as usize].len() {
                let (target, masked) = self.edges[at as usize][edge];
                // A jump would skip waiting lanes, or leave a loop that other lanes stay in.
                let over = first.is_some_and(|first| first < target) || self.left(at, target).is_some();
                if !masked && target > at && over {
                    self.edges[at as usize][edge].1 = true;
                    changed = true;
                }
                if self.edges[at as usize][edge].1 && target > at {
                    waiting.insert(target);
                }
            }
            waiting.extend(&early[at as usize]);
            self.waiting_after[at as usize] = waiting.first().copied();
        }
        changed | self.mark_loops()
    }

    /// Marks loops with masked exit or back edges as divergent. Returns true if there are new ones.
    fn mark_loops(&mut self) -> bool {
        let mut changed = false;
        for (at, edges) in (0..).zip(&self.edges) {
            for &(target, _) in edges.iter().filter(|edge| edge.1) {
                let again = self.spans.headed_by(target).filter(|_| target <= at);
                for number in self.spans.left(at, target).chain(again) {
                    self.kernel.work.visit(1);
                    changed |= !std::mem::replace(&mut self.divergent[number], true);
                }
            }
        }
        changed
    }

    /// The first waiting position or the end of the innermost divergent loop, whichever comes first.
    fn next(&self, at: u32, waiting: Option<u32>, inside: Option<usize>) -> Next {
        let end = inside.map(|number| (self.spans.all[number].1, number));
        match (waiting, end) {
            (Some(place), Some((last, _))) if place <= last => Next::Block(self.kernel.layout[place as usize]),
            (_, Some((last, number))) => {
                debug_assert!(at <= last);
                Next::LoopEnd(number)
            }
            (Some(place), None) => Next::Block(self.kernel.layout[place as usize]),
            (None, None) => Next::End,
        }
    }

    fn finish(self, dominators: &Dominators) -> Linearization {
        let layout = &self.kernel.layout;
        let mut linearization = Linearization {
            spans: self.spans.clone(),
            block_in_masks: EntitySet::new(),
            divergent: self.divergent.clone(),
            reconverges: SecondaryMap::new(),
            maybe_empty: EntitySet::new(),
            after: SecondaryMap::new(),
            instead: SecondaryMap::new(),
            after_loop: Vec::new(),
        };
        for (at, &block) in layout.iter().enumerate() {
            let inside = self.spans.around(at as u32).find(|&number| self.divergent[number]);
            linearization.after[block] = Some(self.next(at as u32, self.waiting_after[at], inside));
            linearization.instead[block] = Some(self.next(at as u32, self.waiting[at], inside));
            for &(target, _) in self.edges[at].iter().filter(|edge| edge.1) {
                linearization.block_in_masks.insert(layout[target as usize]);
            }
        }
        for (number, &(first, last)) in self.spans.all.iter().enumerate() {
            if self.divergent[number] {
                linearization.block_in_masks.insert(layout[first as usize]);
            }
            let around = |&outer: &usize| outer != number && self.divergent[outer] && self.spans.all[outer].1 > last;
            let inside = self.spans.around(last).find(around);
            linearization.after_loop.push(self.next(last, self.waiting_after[last as usize], inside));
        }
        self.find_reconvergence_points(&mut linearization, dominators);
        linearization
    }

    /// Finds the reconvergence points, and the blocks with a block-in mask that may be empty.
    fn find_reconvergence_points(&self, linearization: &mut Linearization, dominators: &Dominators) {
        let postdominators = self.postdominators();
        let limits = self.limits(dominators);
        for &block in self.kernel.layout.iter().filter(|&&block| linearization.block_in_masks.contains(block)) {
            let at = self.spans.positions[block];
            let header = self.loops.headed_by(block).is_some();
            if !header {
                linearization.reconverges[block] = self.split_block(block, dominators, &postdominators);
            }
            let never_empty = match linearization.reconverges[block] {
                // The split block dominates all blocks between: control gets here only after lanes ran there.
                Some(from) => at <= limits[self.spans.positions[from] as usize],
                // The only entry edge is an unconditional jump from the block before it.
                None => header && at > 0 && !self.divergent_branches[at as usize - 1] && self.enters(at - 1, at),
            };
            // A block that only returns is not worth a branch that skips it.
            if !(never_empty || self.kernel.blocks[block].insts.len() == 1 && self.edges[at as usize].is_empty()) {
                linearization.maybe_empty.insert(block);
            }
        }
    }

    /// Whether a block only jumps to `header`.
    fn enters(&self, from: u32, header: u32) -> bool {
        self.edges[from as usize].len() == 1 && self.edges[from as usize][0].0 == header
    }

    /// The block whose active lanes, all and no others, reach `block` in the same iteration of the enclosing loops: its
    /// nearest dominator in the same loop, if `block` post-dominates it.
    fn split_block(&self, block: Block, dominators: &Dominators, postdominators: &[Option<u32>]) -> Option<Block> {
        let mut from = dominators.idom(block)?;
        while self.loops.of(from) != self.loops.of(block) {
            from = dominators.idom(self.loops.all[self.loops.of(from)?].header)?;
        }
        let at = self.spans.positions[block];
        let step = |position: &u32| postdominators[*position as usize].filter(|&next| next <= at);
        // Constructs nest: if `block` is on the post-dominator chain, it is near.
        std::iter::successors(Some(self.spans.positions[from]), step)
            .take(16)
            .any(|position| position == at)
            .then_some(from)
    }

    /// By position: the first later position whose block it does not dominate.
    fn limits(&self, dominators: &Dominators) -> Vec<u32> {
        let count = self.kernel.layout.len() as u32;
        let mut limits = vec![count; count as usize];
        // Stack of the positions that dominate all blocks from theirs to here. A block is dominated by those up to its
        // immediate dominator; later ones end here.
        let mut open: Vec<u32> = Vec::new();
        for (at, &block) in (0..count).zip(&self.kernel.layout) {
            let idom = dominators.idom(block).map(|idom| self.spans.positions[idom]);
            while open.last().is_some_and(|&last| idom.is_none_or(|idom| last > idom)) {
                if let Some(last) = open.pop() {
                    limits[last as usize] = at;
                }
            }
            open.push(at);
        }
        limits
    }

    /// By loop: positions of its exit blocks, in the order of the exiting blocks; equal neighbours are merged.
    fn exits(&self) -> Vec<Vec<u32>> {
        let mut exits: Vec<Vec<u32>> = vec![Vec::new(); self.spans.all.len()];
        for (at, edges) in (0..).zip(&self.edges) {
            for &(target, _) in edges {
                for number in self.spans.left(at, target) {
                    self.kernel.work.visit(1);
                    if exits[number].last() != Some(&target) {
                        exits[number].push(target);
                    }
                }
            }
        }
        exits
    }

    /// By position: immediate post-dominator, with each back edge replaced by edges to the loop's exits. `None`: the
    /// end.
    fn postdominators(&self) -> Vec<Option<u32>> {
        let count = self.edges.len();
        let returns = |at: u32| {
            let last = self.kernel.blocks[self.kernel.layout[at as usize]].insts.last();
            last.is_some_and(|&last| matches!(self.kernel.insts[last], InstData::Return | InstData::Unreachable))
        };
        // By position: number of returning blocks before it.
        let mut returning = vec![0u32; count + 1];
        for at in 0..count {
            returning[at + 1] = returning[at] + u32::from(returns(at as u32));
        }
        // By loop: the exits that replace its back edge; `None` if the loop can return or has no exits.
        let exits: Vec<Option<Vec<u32>>> = self
            .spans
            .all
            .iter()
            .zip(self.exits())
            .map(|(&(first, last), exits)| {
                let returns = returning[last as usize + 1] > returning[first as usize];
                (!exits.is_empty() && !returns).then_some(exits)
            })
            .collect();
        let mut found: Vec<Option<u32>> = vec![None; count];
        for at in (0..count as u32).rev() {
            let mut nearest: Option<Option<u32>> = None;
            let mut meet = |target: Option<u32>| {
                nearest = Some(match nearest {
                    None => target,
                    Some(before) => common(&found, before, target),
                });
            };
            for &(target, _) in &self.edges[at as usize] {
                if target > at {
                    meet(Some(target));
                    continue;
                }
                match self.spans.headed_by(target).and_then(|number| exits[number].as_ref()) {
                    Some(exits) => exits.iter().for_each(|&exit| meet(Some(exit))),
                    None => meet(None),
                }
            }
            found[at as usize] = nearest.flatten();
        }
        found
    }
}

/// Nearest common ancestor in the post-dominator tree; `None`: the end.
fn common(tree: &[Option<u32>], a: Option<u32>, b: Option<u32>) -> Option<u32> {
    let (mut a, mut b) = (a?, b?);
    while a != b {
        if a < b {
            a = tree[a as usize]?;
        } else {
            b = tree[b as usize]?;
        }
    }
    Some(a)
}

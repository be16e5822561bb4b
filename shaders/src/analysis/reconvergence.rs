//! Where the lanes of a subgroup are when they go different ways: which blocks run for some of them only, and which
//! block runs next.
//!
//! Blocks run in the layout's order. A branch whose condition differs between lanes *parks* its lanes at its targets and
//! runs none of them by itself; control goes on with the next block at which lanes may be parked. A branch that is
//! uniform jumps, as long as no lanes wait in the blocks that it would jump over; else it parks its lanes, too.
//! A loop in which some lanes may leave before others is *divergent*: it goes on while lanes are parked at its header.

use std::collections::BTreeSet;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::{Dominators, Loops, positions};
use crate::ir::{Block, InstData, Kernel};

/// What runs after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// This block.
    Block(Block),
    /// The end of a divergent loop, by its place in [`Loops::all`]: it goes on if lanes are parked at its header.
    LoopEnd(usize),
    /// Nothing: no lanes wait anywhere.
    End,
}

/// The runs of blocks in the layout that loops take.
#[derive(Clone, Debug, Default)]
struct Spans {
    positions: SecondaryMap<Block, u32>,
    /// By place in [`Loops::all`]: first and last position.
    all: Vec<(u32, u32)>,
    /// By place in [`Loops::all`]: the next loop outwards among whose blocks this one stands.
    outer: Vec<Option<usize>>,
    /// By position: the innermost loop among whose blocks it is. Blocks that only leave a loop are there, too.
    innermost: Vec<Option<usize>>,
}

impl Spans {
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

    /// Loops among whose blocks a position is, innermost first.
    fn around(&self, at: u32) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.innermost[at as usize], |&number| self.outer[number])
    }

    /// Of those, the ones that an edge to `target` leaves: none of them goes on behind those around it.
    fn left(&self, at: u32, target: u32) -> impl Iterator<Item = usize> + '_ {
        self.around(at).take_while(move |&number| target > self.all[number].1)
    }

    /// The loop that begins at a position.
    fn headed_by(&self, at: u32) -> Option<usize> {
        self.innermost[at as usize].filter(|&number| self.all[number].0 == at)
    }
}

/// Where lanes are parked.
#[derive(Clone, Debug)]
pub struct Flow {
    spans: Spans,
    /// Blocks whose lanes come from being parked.
    parked: EntitySet<Block>,
    /// By place in [`Loops::all`].
    divergent: Vec<bool>,
    /// For a parked block: the block all of whose lanes are here again.
    whole: SecondaryMap<Block, Option<Block>>,
    /// Parked blocks that control may come to although no lane is parked there.
    maybe_empty: EntitySet<Block>,
    /// What runs after a block that leaves its lanes parked.
    after: SecondaryMap<Block, Option<Next>>,
    /// What runs instead of a block that has no lanes, and the first place that a uniform branch cannot jump over.
    instead: SecondaryMap<Block, Option<Next>>,
    /// What runs after a divergent loop.
    after_loop: Vec<Next>,
}

impl Flow {
    /// Follows the lanes, given the blocks whose branches are divergent. The layout is a reverse postorder of blocks that
    /// control can reach, and each loop has one edge into it and one back to its header.
    pub fn new(kernel: &Kernel, dominators: &Dominators, loops: &Loops, divergent: &EntitySet<Block>) -> Self {
        let mut walk = Walk::new(kernel, loops, divergent);
        while walk.sweep() && !kernel.work.is_spent() {}
        walk.finish(dominators)
    }

    /// Whether the lanes of a block come from being parked.
    pub fn is_parked(&self, block: Block) -> bool {
        self.parked.contains(block)
    }

    /// Whether lanes may leave a loop (by its place in [`Loops::all`]) before others.
    pub fn is_divergent(&self, number: usize) -> bool {
        self.divergent[number]
    }

    /// The block all of whose lanes come together in this parked block.
    pub fn whole(&self, block: Block) -> Option<Block> {
        self.whole[block]
    }

    /// Whether control may come to a parked block without lanes.
    pub fn maybe_empty(&self, block: Block) -> bool {
        self.maybe_empty.contains(block)
    }

    /// Whether an edge leaves a loop that other lanes may stay in.
    pub fn leaves(&self, from: Block, to: Block) -> bool {
        let (from, to) = (self.spans.positions[from], self.spans.positions[to]);
        self.spans.left(from, to).any(|number| self.divergent[number])
    }

    /// What runs after a block has parked all its lanes.
    pub fn after(&self, block: Block) -> Next {
        self.after[block].unwrap_or(Next::End)
    }

    /// What runs instead of a parked block without lanes.
    pub fn instead(&self, block: Block) -> Next {
        self.instead[block].unwrap_or(Next::End)
    }

    /// What runs after a divergent loop.
    pub fn after_loop(&self, number: usize) -> Next {
        self.after_loop[number]
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    loops: &'a Loops,
    spans: Spans,
    /// By position: targets of the block's branch, and whether lanes are parked there.
    edges: Vec<Vec<(u32, bool)>>,
    /// By position: whether the block's branch is divergent.
    splits: Vec<bool>,
    divergent: Vec<bool>,
    /// By position: the first later place where lanes may wait that come from before the block.
    waiting: Vec<Option<u32>>,
    /// The same, the block's own lanes included.
    waiting_after: Vec<Option<u32>>,
}

impl<'a> Walk<'a> {
    fn new(kernel: &'a Kernel, loops: &'a Loops, divergent: &EntitySet<Block>) -> Self {
        let spans = Spans::new(kernel, loops);
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
            splits: kernel.layout.iter().map(|&block| divergent.contains(block)).collect(),
            divergent: vec![false; loops.all.len()],
            waiting: vec![None; count],
            waiting_after: vec![None; count],
        }
    }

    /// The innermost divergent loop that an edge leaves.
    fn left(&self, at: u32, target: u32) -> Option<usize> {
        self.spans.left(at, target).find(|&number| self.divergent[number])
    }

    /// From where on lanes parked by an edge may wait: from the header of the outermost divergent loop that it leaves.
    fn since(&self, at: u32, target: u32) -> u32 {
        let left = self.spans.left(at, target).filter(|&number| self.divergent[number]);
        left.map(|number| self.spans.all[number].0).min().unwrap_or(at)
    }

    /// Looks at all edges in order; whether more lanes have to be parked than was known.
    fn sweep(&mut self) -> bool {
        let mut changed = false;
        self.kernel.work.visit(self.edges.iter().map(|edges| 1 + edges.len()).sum());
        let mut early: Vec<Vec<u32>> = vec![Vec::new(); self.edges.len()];
        for at in 0..self.edges.len() as u32 {
            for &(target, parked) in &self.edges[at as usize] {
                let since = self.since(at, target);
                if parked && target > at && since < at {
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
                let (target, parked) = self.edges[at as usize][edge];
                let over = first.is_some_and(|first| first < target) || self.left(at, target).is_some();
                if !parked && target > at && over {
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

    /// Finds loops that lanes leave one by one; whether there are new ones.
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

    /// The nearer of a place where lanes may wait and the end of the innermost divergent loop.
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

    fn finish(self, dominators: &Dominators) -> Flow {
        let layout = &self.kernel.layout;
        let mut flow = Flow {
            spans: self.spans.clone(),
            parked: EntitySet::new(),
            divergent: self.divergent.clone(),
            whole: SecondaryMap::new(),
            maybe_empty: EntitySet::new(),
            after: SecondaryMap::new(),
            instead: SecondaryMap::new(),
            after_loop: Vec::new(),
        };
        for (at, &block) in layout.iter().enumerate() {
            let inside = self.spans.around(at as u32).find(|&number| self.divergent[number]);
            flow.after[block] = Some(self.next(at as u32, self.waiting_after[at], inside));
            flow.instead[block] = Some(self.next(at as u32, self.waiting[at], inside));
            for &(target, _) in self.edges[at].iter().filter(|edge| edge.1) {
                flow.parked.insert(layout[target as usize]);
            }
        }
        for (number, &(first, last)) in self.spans.all.iter().enumerate() {
            if self.divergent[number] {
                flow.parked.insert(layout[first as usize]);
            }
            let around = |&outer: &usize| outer != number && self.divergent[outer] && self.spans.all[outer].1 > last;
            let inside = self.spans.around(last).find(around);
            flow.after_loop.push(self.next(last, self.waiting_after[last as usize], inside));
        }
        self.join(&mut flow, dominators);
        flow
    }

    /// Finds the blocks in which all lanes of an earlier block come together, and those that need no look at the mask.
    fn join(&self, flow: &mut Flow, dominators: &Dominators) {
        let postdominators = self.postdominators();
        let limits = self.limits(dominators);
        for &block in self.kernel.layout.iter().filter(|&&block| flow.parked.contains(block)) {
            let at = self.spans.positions[block];
            let header = self.loops.headed_by(block).is_some();
            if !header {
                flow.whole[block] = self.split(block, dominators, &postdominators);
            }
            let safe = match flow.whole[block] {
                Some(from) => at <= limits[self.spans.positions[from] as usize],
                // The loop's only way in is the block before it, which does not split its lanes.
                None => header && at > 0 && !self.splits[at as usize - 1] && self.enters(at - 1, at),
            };
            // A block that only ends need not be jumped over.
            if !(safe || self.kernel.blocks[block].insts.len() == 1 && self.edges[at as usize].is_empty()) {
                flow.maybe_empty.insert(block);
            }
        }
    }

    fn enters(&self, from: u32, header: u32) -> bool {
        self.edges[from as usize].len() == 1 && self.edges[from as usize][0].0 == header
    }

    /// The block whose lanes, all of them and no others, come to `block` in the same trip through the loops around it.
    fn split(&self, block: Block, dominators: &Dominators, postdominators: &[Option<u32>]) -> Option<Block> {
        let mut from = dominators.idom(block)?;
        while self.loops.of(from) != self.loops.of(block) {
            from = dominators.idom(self.loops.all[self.loops.of(from)?].header)?;
        }
        let at = self.spans.positions[block];
        let step = |place: &u32| postdominators[*place as usize].filter(|&place| place <= at);
        // Constructs nest: few steps lead to the merge, or none do.
        std::iter::successors(Some(self.spans.positions[from]), step).take(16).any(|place| place == at).then_some(from)
    }

    /// For each position the next one after it whose block it does not dominate.
    fn limits(&self, dominators: &Dominators) -> Vec<u32> {
        let count = self.kernel.layout.len() as u32;
        let mut limits = vec![count; count as usize];
        // Those that dominate all up to here. What comes below one of them is dominated by all before that, and by none behind.
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

    /// By loop: positions that its blocks branch to behind it, each once, in the order of the blocks.
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

    /// For each position the next that is on every way to the end, with ways around loops left out. `None`: the end.
    fn postdominators(&self) -> Vec<Option<u32>> {
        let count = self.edges.len();
        let returns = |at: u32| {
            let last = self.kernel.blocks[self.kernel.layout[at as usize]].insts.last();
            last.is_some_and(|&last| matches!(self.kernel.insts[last], InstData::Return | InstData::Unreachable))
        };
        // By position: how many before it return.
        let mut returning = vec![0u32; count + 1];
        for at in 0..count {
            returning[at + 1] = returning[at] + u32::from(returns(at as u32));
        }
        // The way back to a loop's header stands for all ways out of the loop.
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

/// The first place that is after both, in the tree of postdominators.
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

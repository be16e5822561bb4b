//! Where invocations of a subgroup do something together, and which of them are there together.
//!
//! An invocation's place is the block it waits in, and before that, from the outermost loop inwards, the loop and the trip.
//! Going on only ever leads to a later place, in this order: blocks of a loop come where its header stands in a reverse
//! postorder, and inside it first by trips, then in that postorder again. So those that wait at the first place are all that will ever come to it.

use std::cmp::Ordering;

use cranelift_entity::SecondaryMap;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, InstData, Kernel, SubgroupOp, reverse_postorder};

/// Where invocations wait for each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    /// What they do then; nothing at a barrier.
    pub op: Option<SubgroupOp>,
    /// Registers of the operands.
    pub args: [u32; 2],
    /// Register of the result.
    pub dest: u32,
    /// Place among its loop's blocks.
    at: u64,
    /// The innermost loop around it.
    within: Option<u32>,
}

/// A loop around meetings.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// Its place among the blocks of the loop around it.
    at: u64,
    /// How many loops it is in, itself included: its trips are in the register of that number.
    depth: u32,
    parent: Option<u32>,
}

/// The meetings of a kernel.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    pub all: Vec<Meeting>,
    loops: Vec<Around>,
}

/// The loops of a kernel with meetings, while it is decoded.
#[derive(Debug)]
pub(super) struct Ways {
    positions: SecondaryMap<Block, u64>,
    loops: Loops,
}

/// Whether invocations of a subgroup meet at the instruction.
pub(super) fn is_meeting(data: &InstData) -> bool {
    matches!(data, InstData::Subgroup { .. } | InstData::Barrier { execution: crate::ir::Scope::Subgroup, .. })
}

impl Ways {
    /// `None` where nobody meets.
    pub(super) fn new(kernel: &Kernel) -> Option<Self> {
        let mut insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        insts.any(|&inst| is_meeting(&kernel.insts[inst])).then(|| {
            let mut positions = SecondaryMap::new();
            for (position, block) in (1..).zip(reverse_postorder(kernel, kernel.layout[0])) {
                positions[block] = position;
            }
            Self { positions, loops: Loops::new(kernel, &Dominators::new(kernel)) }
        })
    }

    /// How deep loops nest: so many registers count trips.
    pub(super) fn depth(&self) -> u32 {
        self.loops.all.iter().map(|found| self.loops.depth(found.header) as u32).max().unwrap_or(0)
    }

    /// What an edge does to the count of trips: the register's number, and whether it begins anew.
    pub(super) fn step(&self, from: Block, to: Block) -> Option<(u32, bool)> {
        let found = self.loops.headed_by(to)?;
        Some((self.loops.depth(to) as u32 - 1, !found.latches.contains(&from)))
    }

    /// A meeting at an instruction's place in a block.
    pub(super) fn meeting(&self, block: Block, index: usize) -> Meeting {
        let at = self.positions[block] << 32 | (index as u64 + 1);
        Meeting { op: None, args: [0; 2], dest: 0, at, within: self.loops.of(block).map(|number| number as u32) }
    }

    /// For the run.
    pub(super) fn meetings(&self, all: Vec<Meeting>) -> Meetings {
        let around = |found: &crate::analysis::Loop| Around {
            at: self.positions[found.header] << 32,
            depth: self.loops.depth(found.header) as u32,
            parent: found.parent.map(|number| number as u32),
        };
        Meetings { all, loops: self.loops.all.iter().map(around).collect() }
    }
}

impl Meetings {
    /// Which of two invocations waits at the earlier place; each with the number of its meeting and its counts of trips.
    pub(super) fn order(&self, (a, trips): (u32, &[u64]), (b, others): (u32, &[u64])) -> Ordering {
        let [a, b] = [a, b].map(|number| &self.all[number as usize]);
        let depth = |around: Option<u32>| around.map_or(0, |number| self.loops[number as usize].depth);
        let (mut first, mut second) = ((a.within, a.at), (b.within, b.at));
        while first.0 != second.0 {
            let deeper = if depth(first.0) >= depth(second.0) { &mut first } else { &mut second };
            if let Some(number) = deeper.0 {
                let around = &self.loops[number as usize];
                *deeper = (around.parent, around.at);
            }
        }
        let mut order = first.1.cmp(&second.1);
        let mut around = first.0;
        while let Some(number) = around {
            let Around { depth, parent, .. } = self.loops[number as usize];
            // What is further out comes later here, and decides.
            order = trips[depth as usize - 1].cmp(&others[depth as usize - 1]).then(order);
            around = parent;
        }
        order
    }
}

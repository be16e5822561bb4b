//! Sync points: instructions at which the invocations of a subgroup wait for each other, and which of them wait
//! together.
//!
//! An invocation's position is a list: from the outermost loop inwards, each loop around the block and the iteration,
//! then the block. Execution only moves to later positions in the following order: a loop's blocks are ordered at the
//! place of its header in a reverse postorder, and inside the loop first by iteration, then in that postorder again. So
//! no further invocation can arrive at the earliest position in use: those that wait there are complete.

use std::cmp::Ordering;

use cranelift_entity::SecondaryMap;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, InstData, Kernel, Site, SubgroupOp, reverse_postorder};

/// An instruction at which the invocations of a subgroup wait for each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncPoint {
    /// The subgroup operation; `None` for a barrier.
    pub op: Option<SubgroupOp>,
    /// Registers of the operands.
    pub args: [u32; 2],
    /// Register of the result.
    pub dest: u32,
    /// What checked mode observes, at a barrier of a kernel with checks.
    pub site: Option<Site>,
    /// Position among the blocks of its loop.
    at: u64,
    /// The innermost enclosing loop.
    within: Option<u32>,
}

/// A loop that encloses sync points.
#[derive(Clone, Copy, Debug)]
struct EnclosingLoop {
    /// Its position among the blocks of the enclosing loop.
    at: u64,
    /// Loop depth, from 1. The iteration counter is the register with this number, less 1.
    depth: u32,
    parent: Option<u32>,
}

/// The sync points of a kernel.
#[derive(Debug, Default)]
pub(super) struct SyncPoints {
    pub all: Vec<SyncPoint>,
    loops: Vec<EnclosingLoop>,
}

/// The loop nest of a kernel with sync points, while it is decoded.
#[derive(Debug)]
pub(super) struct LoopNest {
    positions: SecondaryMap<Block, u64>,
    loops: Loops,
}

/// Whether the invocations of a subgroup wait for each other at the instruction.
pub(super) fn is_sync_point(data: &InstData) -> bool {
    matches!(data, InstData::Subgroup { .. } | InstData::Barrier { execution: crate::ir::Scope::Subgroup, .. })
}

impl LoopNest {
    /// `None` for kernels without sync points.
    pub(super) fn new(kernel: &Kernel) -> Option<Self> {
        let mut insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        insts.any(|&inst| is_sync_point(&kernel.insts[inst])).then(|| {
            let mut positions = SecondaryMap::new();
            for (position, block) in (1..).zip(reverse_postorder(kernel, kernel.layout[0])) {
                positions[block] = position;
            }
            Self { positions, loops: Loops::new(kernel, &Dominators::new(kernel)) }
        })
    }

    /// Loop depth of the kernel, which is also the number of iteration counters.
    pub(super) fn depth(&self) -> u32 {
        self.loops.all.iter().map(|found| self.loops.depth(found.header) as u32).max().unwrap_or(0)
    }

    /// The effect of an edge on an iteration counter: the counter's index, and whether the edge resets it (a loop
    /// entry).
    pub(super) fn step(&self, from: Block, to: Block) -> Option<(u32, bool)> {
        let found = self.loops.headed_by(to)?;
        Some((self.loops.depth(to) as u32 - 1, !found.latches.contains(&from)))
    }

    /// A sync point at an instruction's index in a block.
    pub(super) fn sync_point(&self, block: Block, index: usize) -> SyncPoint {
        let at = self.positions[block] << 32 | (index as u64 + 1);
        SyncPoint {
            op: None,
            args: [0; 2],
            dest: 0,
            site: None,
            at,
            within: self.loops.of(block).map(|number| number as u32),
        }
    }

    /// The form that running needs.
    pub(super) fn sync_points(&self, all: Vec<SyncPoint>) -> SyncPoints {
        let around = |found: &crate::analysis::Loop| EnclosingLoop {
            at: self.positions[found.header] << 32,
            depth: self.loops.depth(found.header) as u32,
            parent: found.parent.map(|number| number as u32),
        };
        SyncPoints { all, loops: self.loops.all.iter().map(around).collect() }
    }
}

impl SyncPoints {
    /// Which of two invocations waits at the earlier position; each is given by its sync point and iteration counters.
    pub(super) fn order(&self, (a, counters): (u32, &[u64]), (b, others): (u32, &[u64])) -> Ordering {
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
            let EnclosingLoop { depth, parent, .. } = self.loops[number as usize];
            // Outer loops come later in this walk and take precedence.
            order = counters[depth as usize - 1].cmp(&others[depth as usize - 1]).then(order);
            around = parent;
        }
        order
    }
}

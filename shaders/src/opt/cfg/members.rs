//! Keeps operations of subgroups in their loops: who does them together is decided by the trips through the loops around them.

use cranelift_entity::SecondaryMap;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, Inst, InstData, Kernel};

/// Operations of subgroups, with the headers of the loops around them.
pub(super) struct Members {
    all: Vec<(Inst, Block)>,
}

impl Members {
    /// `None` where there are none in loops.
    pub(super) fn new(kernel: &Kernel) -> Option<Self> {
        if !operations(kernel).any(|_| true) {
            return None;
        }
        let loops = Loops::new(kernel, &Dominators::new(kernel));
        let mut all = Vec::new();
        for (inst, block) in operations(kernel) {
            let around = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
            all.extend(around.map(|number| (inst, loops.all[number].header)));
        }
        (!all.is_empty()).then_some(Self { all })
    }

    /// Whether all of them are still in each of these loops that is still one.
    pub(super) fn stay(&self, kernel: &Kernel) -> bool {
        let dominators = Dominators::new(kernel);
        let loops = Loops::new(kernel, &dominators);
        let mut home: SecondaryMap<Inst, Option<Block>> = SecondaryMap::new();
        operations(kernel).for_each(|(inst, block)| home[inst] = Some(block));
        self.all.iter().all(|&(inst, header)| {
            let Some(block) = home[inst].filter(|&block| dominators.is_reachable(block)) else { return true };
            let around = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
            loops.headed_by(header).is_none()
                || around.map(|number| loops.all[number].header).any(|found| found == header)
        })
    }
}

/// All of them, with their blocks.
fn operations(kernel: &Kernel) -> impl Iterator<Item = (Inst, Block)> {
    let all = kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.iter().map(move |&inst| (inst, block)));
    all.filter(|&(inst, _)| matches!(kernel.insts[inst], InstData::Subgroup { .. }))
}

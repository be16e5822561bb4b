//! Keeps subgroup operations in their loops: the iterations of the enclosing loops decide which invocations execute one
//! together.

use cranelift_entity::SecondaryMap;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, Inst, InstData, Kernel};

/// Subgroup operations, each paired with the header of every loop enclosing it.
pub(super) struct Members {
    all: Vec<(Inst, Block)>,
}

impl Members {
    /// `None` if no loop contains one.
    pub(super) fn new(kernel: &Kernel) -> Option<Self> {
        if !operations(kernel).any(|_| true) {
            return None;
        }
        let loops = Loops::new(kernel, &Dominators::new(kernel));
        let mut all = Vec::new();
        for (inst, block) in operations(kernel) {
            let enclosing = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
            all.extend(enclosing.map(|number| (inst, loops.all[number].header)));
        }
        (!all.is_empty()).then_some(Self { all })
    }

    /// Whether every operation is still in each of its loops that still exists.
    pub(super) fn are_kept(&self, kernel: &Kernel) -> bool {
        let dominators = Dominators::new(kernel);
        let loops = Loops::new(kernel, &dominators);
        let mut defining: SecondaryMap<Inst, Option<Block>> = SecondaryMap::new();
        operations(kernel).for_each(|(inst, block)| defining[inst] = Some(block));
        self.all.iter().all(|&(inst, header)| {
            let Some(block) = defining[inst].filter(|&block| dominators.is_reachable(block)) else { return true };
            let enclosing = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
            loops.headed_by(header).is_none()
                || enclosing.map(|number| loops.all[number].header).any(|found| found == header)
        })
    }
}

/// All subgroup operations, with their blocks.
fn operations(kernel: &Kernel) -> impl Iterator<Item = (Inst, Block)> {
    let all = kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.iter().map(move |&inst| (inst, block)));
    all.filter(|&(inst, _)| matches!(kernel.insts[inst], InstData::Subgroup { .. }))
}

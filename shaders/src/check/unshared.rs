//! Removes the checks of workgroup memory where a workgroup has one invocation: no other accesses that memory.
//!
//! Its accesses are in program order, and no other invocation reads what an atomic on it released. Replays have these
//! checks all the same, if they look at workgroup memory.

use crate::ir::{InstData, Kernel, Place, VariableSpace};

/// Removes these checks, and the syncs of atomics.
pub fn drop_unshared(kernel: &mut Kernel) {
    if kernel.invocations() > 1 {
        return;
    }
    for number in 0..kernel.layout.len() {
        let block = kernel.layout[number];
        let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
        insts.retain(|&inst| match kernel.insts[inst] {
            InstData::Check { place: Place::Variable { variable, .. }, .. }
            | InstData::Sync { place: Some(Place::Variable { variable, .. }), .. } => {
                kernel.variables[variable].space != VariableSpace::Workgroup
            }
            _ => true,
        });
        kernel.blocks[block].insts = insts;
    }
}

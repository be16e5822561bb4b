//! Promotion of private variables to SSA values (mem2reg, SROA): each word that is accessed at constant offsets only,
//! and that no access at an unknown offset can reach, is a variable on its own, with a value at every point.
//!
//! `words` finds these words, `frontier` the joins that need a block parameter, `replace` walks down the dominator tree
//! with the current value of every word. Unused variables are removed.

mod frontier;
mod replace;
mod words;

use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};

use super::cfg;
use crate::analysis::Dominators;
use crate::ir::{InstData, Kernel, Place, Variable, VariableData, VariableSpace};
use words::PromotableWords;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    if kernel.variables.values().all(|data| data.space == VariableSpace::Workgroup) {
        return;
    }
    cfg::prune(kernel);
    let dominators = Dominators::new(kernel);
    let mut words = PromotableWords::find(kernel);
    let joins = frontier::joins(kernel, &dominators, &mut words);
    replace::run(kernel, &dominators, &words, &joins);
    drop_unused(kernel);
}

/// The variable that an instruction accesses.
fn variable_of(data: &InstData) -> Option<Variable> {
    match data {
        InstData::Load { place: Place::Variable { variable, .. }, .. }
        | InstData::Store { place: Place::Variable { variable, .. }, .. }
        | InstData::Atomic { place: Place::Variable { variable, .. }, .. } => Some(*variable),
        _ => None,
    }
}

/// Removes variables that nothing accesses; workgroup variables stay.
fn drop_unused(kernel: &mut Kernel) {
    let mut used = EntitySet::with_capacity(kernel.variables.len());
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        used.extend(variable_of(&kernel.insts[inst]));
    }
    let stays =
        |variable: Variable, data: &VariableData| data.space == VariableSpace::Workgroup || used.contains(variable);
    if kernel.variables.iter().all(|(variable, data)| stays(variable, data)) {
        return;
    }
    let mut renumbered: SecondaryMap<Variable, Variable> = SecondaryMap::with_default(Variable::from_u32(0));
    let mut left = PrimaryMap::new();
    for (variable, data) in std::mem::take(&mut kernel.variables) {
        if stays(variable, &data) {
            renumbered[variable] = left.push(data);
        }
    }
    kernel.variables = left;
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        if let InstData::Load { place, .. }
        | InstData::Store { place, .. }
        | InstData::Atomic { place, .. }
        | InstData::Check { place, .. }
        | InstData::Sync { place: Some(place), .. } = &mut kernel.insts[inst]
            && let Place::Variable { variable, .. } = place
        {
            *variable = renumbered[*variable];
        }
    }
}

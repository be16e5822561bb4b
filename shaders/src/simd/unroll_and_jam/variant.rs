//! Loop-variant values of the subgroup loop, and whether two subgroups can share its control flow.

use cranelift_entity::SecondaryMap;

use super::CandidateLoop;
use crate::simd::{Address, BlockCall, BoundedIndex, InstData, Kernel, Value};

/// The values that vary with the subgroup; `None` if a branch could send the two subgroups to different blocks, or if a
/// subgroup with an empty mask could do harm.
pub(super) fn find(kernel: &Kernel, candidate: &CandidateLoop) -> Option<SecondaryMap<Value, bool>> {
    let mut variant: SecondaryMap<Value, bool> = SecondaryMap::new();
    variant[candidate.subgroup_loop.index] = true;
    while propagate(kernel, candidate, &mut variant) {}
    let mut insts = candidate.body.iter().flat_map(|&block| &kernel.blocks[block].insts);
    insts.all(|&inst| can_share(kernel, candidate, &variant, &kernel.insts[inst])).then_some(variant)
}

/// One pass over all instructions; returns whether it found more variant values.
fn propagate(kernel: &Kernel, candidate: &CandidateLoop, variant: &mut SecondaryMap<Value, bool>) -> bool {
    let mut changed = false;
    for &inst in candidate.body.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let data = &kernel.insts[inst];
        let mut varies = matches!(data, InstData::Atomic { .. });
        data.for_each_use(|value| varies |= variant[value]);
        for &result in kernel.results[inst].iter().filter(|_| varies) {
            changed |= !std::mem::replace(&mut variant[result], true);
        }
        for call in data.targets() {
            for (&arg, &param) in call.args.iter().zip(&kernel.blocks[call.block].params) {
                if variant[arg] {
                    changed |= !std::mem::replace(&mut variant[param], true);
                }
            }
        }
    }
    changed
}

/// Whether an instruction can run for two subgroups together.
fn can_share(kernel: &Kernel, candidate: &CandidateLoop, variant: &SecondaryMap<Value, bool>, data: &InstData) -> bool {
    match data {
        InstData::Branch { condition, then, .. } => {
            !variant[*condition]
                || then.block == candidate.subgroup_loop.header
                || mask_decides(kernel, *condition, then)
        }
        InstData::Switch { selector, .. } => !variant[*selector],
        // Memory of the subgroup's own, and code that relies on an active lane.
        InstData::Zero { .. }
        | InstData::FrameLoad { .. }
        | InstData::FrameStore { .. }
        | InstData::Call { .. }
        | InstData::FirstLane { .. } => false,
        // Scalars that a block computes for its active lanes have any value in a subgroup without active lanes.
        InstData::Load { address, .. } => is_safe(kernel, variant, address),
        _ => true,
    }
}

/// Whether a branch tests a mask that is the execution mask of its first target, so that a subgroup without active
/// lanes there has no effect. A uniform boolean that is only widened to a mask does not qualify: then both subgroups
/// would have to go the same way.
fn mask_decides(kernel: &Kernel, condition: Value, then: &BlockCall) -> bool {
    let Some(&InstData::Any { mask }) = kernel.definition(condition) else { return false };
    let target = &kernel.blocks[then.block];
    if target.exec.is_some() {
        return target.exec == Some(mask);
    }
    // A back edge through a block that only polls: the header gets the mask as an argument.
    let Some((&last, others)) = target.insts.split_last() else { return false };
    let InstData::Jump { to } = &kernel.insts[last] else { return false };
    let header = &kernel.blocks[to.block];
    let position = header.params.iter().position(|&param| Some(param) == header.exec);
    others.iter().all(|&inst| matches!(kernel.insts[inst], InstData::Poll { .. }))
        && position.is_some_and(|position| to.args[position] == mask)
}

/// Whether a load cannot fault with any index: it is bounds-checked, or its address is invariant.
fn is_safe(kernel: &Kernel, variant: &SecondaryMap<Value, bool>, address: &Address) -> bool {
    match address.index {
        None => !variant[address.base],
        Some(BoundedIndex { index, limit }) => {
            let words = u64::from(u32::MAX);
            !(variant[index] || variant[address.base]) || kernel.constant(limit).is_none_or(|limit| limit <= words)
        }
    }
}

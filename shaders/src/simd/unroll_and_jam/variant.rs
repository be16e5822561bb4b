//! Which values two subgroups have different ones of, and whether both can take the same ways.

use cranelift_entity::SecondaryMap;

use super::Turns;
use crate::simd::{Address, BlockCall, InstData, Kernel, Value};

/// The values that differ between subgroups; `None` if a branch would have to send the two different ways, or if a
/// subgroup without lanes could do harm.
pub(super) fn find(kernel: &Kernel, turns: &Turns) -> Option<SecondaryMap<Value, bool>> {
    let mut differs: SecondaryMap<Value, bool> = SecondaryMap::new();
    differs[turns.number] = true;
    while sweep(kernel, turns, &mut differs) {}
    let all = turns.body.iter().flat_map(|&block| &kernel.blocks[block].insts);
    all.into_iter().all(|&inst| can_share(kernel, turns, &differs, &kernel.insts[inst])).then_some(differs)
}

/// Looks at all instructions once; whether more values differ than was known.
fn sweep(kernel: &Kernel, turns: &Turns, differs: &mut SecondaryMap<Value, bool>) -> bool {
    let mut changed = false;
    for &inst in turns.body.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let data = &kernel.insts[inst];
        let mut differ = matches!(data, InstData::Atomic { .. });
        data.for_each_use(|value| differ |= differs[value]);
        for &result in kernel.results[inst].iter().filter(|_| differ) {
            changed |= !std::mem::replace(&mut differs[result], true);
        }
        for call in data.targets() {
            for (&arg, &param) in call.args.iter().zip(&kernel.blocks[call.block].params) {
                if differs[arg] {
                    changed |= !std::mem::replace(&mut differs[param], true);
                }
            }
        }
    }
    changed
}

fn can_share(kernel: &Kernel, turns: &Turns, differs: &SecondaryMap<Value, bool>, data: &InstData) -> bool {
    match data {
        InstData::Branch { condition, then, .. } => {
            !differs[*condition] || then.block == turns.header || lanes_decide(kernel, *condition, then)
        }
        InstData::Switch { selector, .. } => !differs[*selector],
        // Memory of the subgroup's own, and loops that count on a lane being on.
        InstData::Zero { .. }
        | InstData::FrameLoad { .. }
        | InstData::FrameStore { .. }
        | InstData::Call { .. }
        | InstData::FirstLane { .. } => false,
        // Without lanes nothing says that what a block knows about its scalars holds.
        InstData::Load { address, .. } => is_checked(kernel, differs, address),
        _ => true,
    }
}

/// Whether a branch asks for lanes, which are then on in its first target: a subgroup without any does nothing there. A
/// truth value that all lanes share comes as a mask, too; such a branch is not one that both subgroups can take.
fn lanes_decide(kernel: &Kernel, condition: Value, then: &BlockCall) -> bool {
    let Some(&InstData::Any { mask }) = kernel.definition(condition) else { return false };
    let target = &kernel.blocks[then.block];
    if target.exec.is_some() {
        return target.exec == Some(mask);
    }
    // Back to a loop's header, which gets the lanes.
    let Some((&last, others)) = target.insts.split_last() else { return false };
    let InstData::Jump { to } = &kernel.insts[last] else { return false };
    let header = &kernel.blocks[to.block];
    let place = header.params.iter().position(|&param| Some(param) == header.exec);
    others.iter().all(|&inst| matches!(kernel.insts[inst], InstData::Poll { .. }))
        && place.is_some_and(|place| to.args[place] == mask)
}

/// Whether a load is checked, or from where both load.
fn is_checked(kernel: &Kernel, differs: &SecondaryMap<Value, bool>, address: &Address) -> bool {
    match address.index {
        None => !differs[address.base],
        Some((index, limit)) => {
            let words = u64::from(u32::MAX);
            !(differs[index] || differs[address.base]) || kernel.constant(limit).is_none_or(|limit| limit <= words)
        }
    }
}

//! Checks that each [`SubgroupLoop`] of a kernel describes a loop of its blocks.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::verify::Result;
use super::{Block, BlockCall, InstData, Kernel, SubgroupLoop, Type, Value, ValueDef};
use crate::analysis::Dominators;
use crate::ir::Op;
use crate::ssa::{Predecessors, general, predecessors};

/// Checks all loops. The rest of the verifier must have accepted the blocks and the types of operands.
pub(crate) fn check_subgroup_loops(kernel: &Kernel, dominators: &Dominators<Block>) -> Result {
    if kernel.subgroup_loops.is_empty() {
        return Ok(());
    }
    let predecessors = predecessors(kernel);
    let mut in_layout: EntitySet<Block> = EntitySet::new();
    in_layout.extend(kernel.layout.iter().copied());
    let mut is_header: SecondaryMap<Block, bool> = SecondaryMap::new();
    for subgroup_loop in &kernel.subgroup_loops {
        let &SubgroupLoop { preheader, header, latch, .. } = subgroup_loop;
        if let Some(block) = [preheader, header, latch].into_iter().find(|&block| !in_layout.contains(block)) {
            return general(format!("{block} of a subgroup loop is not in the layout"));
        }
        if std::mem::replace(&mut is_header[header], true) {
            return general(format!("{header} is the header of two subgroup loops"));
        }
        if let Err(rule) = check(kernel, dominators, &predecessors, subgroup_loop) {
            return general(format!("the subgroup loop of {header}: {rule}"));
        }
    }
    Ok(())
}

fn check(
    kernel: &Kernel,
    dominators: &Dominators<Block>,
    predecessors: &Predecessors<Block>,
    subgroup_loop: &SubgroupLoop,
) -> std::result::Result<(), String> {
    let &SubgroupLoop { preheader, header, latch, index, step, count } = subgroup_loop;
    if !kernel.blocks[header].is_region_entry {
        return Err("the header is not the entry of a parallel region".into());
    }
    let place = match kernel.values.get(index) {
        Some(&ValueDef::Param { block, index, ty: Type::S32 }) if block == header => index as usize,
        _ => return Err(format!("the index {index} is not an s32 parameter of the header")),
    };
    let Some(count_bits) = kernel.values.get(count).and_then(|_| kernel.constant(count)) else {
        return Err(format!("the count {count} is not a constant"));
    };
    if step == 0 || count_bits == 0 || !count_bits.is_multiple_of(step.into()) {
        return Err(format!("{count_bits} subgroups in steps of {step}"));
    }
    let mut edges = predecessors[header].to_vec();
    edges.sort_unstable();
    let mut wanted = [preheader, latch];
    wanted.sort_unstable();
    if edges != wanted || preheader == latch {
        return Err(format!("the predecessors of the header are not {preheader} and {latch}"));
    }
    if dominators.is_reachable(header) && !dominators.dominates(header, latch) {
        return Err(format!("the header does not dominate the latch {latch}"));
    }
    let Some(InstData::Jump { to }) = kernel.terminator(preheader) else {
        return Err(format!("the preheader {preheader} does not end with a jump"));
    };
    if kernel.constant(to.args[place]) != Some(0) {
        return Err("the index does not start at 0".into());
    }
    if steps(kernel, subgroup_loop, place) {
        Ok(())
    } else {
        Err(format!(
            "the latch {latch} does not end with `branch (ult (iadd {index}, {step}), {count}), {header}(…), …`"
        ))
    }
}

/// Whether the latch increments the index by the step and compares it with the count.
fn steps(kernel: &Kernel, subgroup_loop: &SubgroupLoop, place: usize) -> bool {
    let &SubgroupLoop { header, latch, index, step, count, .. } = subgroup_loop;
    let Some(InstData::Branch { condition, then, .. }) = kernel.terminator(latch) else { return false };
    let BlockCall { block, args } = then;
    let pure = |value: Value, wanted: Op| match kernel.definition(value) {
        Some(InstData::Pure { op, args }) if *op == wanted => Some([args[0], args[1]]),
        _ => None,
    };
    let Some([next, limit]) = pure(*condition, Op::ULt) else { return false };
    let Some([from, by]) = pure(next, Op::IAdd) else { return false };
    let same_count = limit == count || kernel.constant(limit) == kernel.constant(count);
    *block == header && args[place] == next && same_count && from == index && kernel.constant(by) == Some(step.into())
}

//! Workgroup merging: small workgroups that are neighbours in x run as one.
//!
//! Two workgroups of 8 x 8 invocations run as one of 16 x 8, so that the lanes of a subgroup are 16 contiguous
//! invocations instead of two segments of 8. Sixteen workgroups of 1 invocation run as one of 16, which fills the
//! lanes.
//!
//! Merging cannot be observed if invocations are independent: no barriers and fences, no workgroup memory, no subgroup
//! operations, no checks, no ids within a workgroup or subgroup. Nor may a workgroup wait for an earlier one, which
//! without merging ends before it begins: kernels with atomics, volatile or coherent accesses, which could wait, are
//! not merged. `WorkgroupId.x` differs between merged workgroups, so kernels that read it other than through
//! `GlobalInvocationId.x` are not merged: it would no longer be uniform.
//!
//! The last merged workgroup in x may have inactive lanes.
//!
//! Divergent loops run faster if the lanes of a subgroup are close to each other in x and y, as 8 x 2 invocations are:
//! trip counts differ less. Workgroups with such loops are not merged if they fill the lanes without merging.

use crate::analysis::Uniformity;
use crate::ir::{BuiltIn, Inst, InstData, Kernel, Op, Type, Value, VariableSpace};
use crate::simd::LANES;

/// Ratio of the subgroups after merging to those of one workgroup. It is the slowdown of a dispatch of one workgroup in
/// x, in which the lanes of the other merged workgroups are inactive.
const MAX_SUBGROUP_RATIO: u32 = 4;

/// Merges workgroups if that is profitable. Returns how many, or 1.
pub(super) fn merge(kernel: &mut Kernel, uniformity: &Uniformity) -> u32 {
    let [x, y, z] = kernel.workgroup_size;
    let merged_workgroups = LANES / x.max(1);
    if merged_workgroups < 2 || !LANES.is_multiple_of(x) {
        return 1;
    }
    let subgroups = kernel.invocations().div_ceil(LANES);
    if y.saturating_mul(z) > MAX_SUBGROUP_RATIO * subgroups || !is_independent(kernel) {
        return 1;
    }
    let fills_lanes = kernel.invocations().is_multiple_of(LANES);
    if fills_lanes && has_divergent_loops(uniformity) {
        return 1;
    }
    for block in kernel.layout.clone() {
        let mut insts = Vec::with_capacity(kernel.blocks[block].insts.len());
        for inst in std::mem::take(&mut kernel.blocks[block].insts) {
            match kernel.insts[inst] {
                InstData::BuiltIn { builtin: BuiltIn::GlobalInvocationId, component: 0 } => {
                    expand_id(kernel, inst, x, &mut insts);
                }
                // In workgroups of width 1, it equals the invocation's global id.
                InstData::BuiltIn { builtin: BuiltIn::WorkgroupId, component: 0 } => {
                    expand_id(kernel, inst, 1, &mut insts);
                }
                _ => {}
            }
            insts.push(inst);
        }
        kernel.blocks[block].insts = insts;
    }
    kernel.workgroup_size[0] = LANES;
    merged_workgroups
}

/// Whether the kernel has a divergent loop.
fn has_divergent_loops(uniformity: &Uniformity) -> bool {
    uniformity.loops.all.iter().any(|found| uniformity.is_divergent(found.header))
}

/// Whether invocations are independent of each other, and read no id that merging changes.
fn is_independent(kernel: &Kernel) -> bool {
    let mut insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    let is_shared = |space: VariableSpace| space == VariableSpace::Workgroup;
    insts.all(|&inst| match &kernel.insts[inst] {
        InstData::BuiltIn { builtin, component } => match builtin {
            BuiltIn::NumWorkgroups | BuiltIn::GlobalInvocationId => true,
            BuiltIn::WorkgroupId => *component > 0 || kernel.workgroup_size[0] == 1,
            BuiltIn::LocalInvocationId => *component > 0,
            _ => false,
        },
        InstData::Load { access, .. } | InstData::Store { access, .. } | InstData::Image { access, .. } => {
            !access.volatile && !access.non_private
        }
        InstData::Atomic { .. }
        | InstData::Barrier { .. }
        | InstData::Fence { .. }
        | InstData::Subgroup { .. }
        | InstData::Clock { .. }
        | InstData::Print { .. }
        | InstData::Check { .. }
        | InstData::CheckImage { .. }
        | InstData::Sync { .. } => false,
        _ => true,
    }) && !kernel.variables.values().any(|variable| is_shared(variable.space))
}

/// Replaces `inst` by `WorkgroupId.x * size + LocalInvocationId.x`, the operands of which are added to `insts`. The
/// local id counts across merged workgroups; `WorkgroupId.x` is that of the first.
fn expand_id(kernel: &mut Kernel, inst: Inst, size: u32, insts: &mut Vec<Inst>) {
    let mut emit = |data: InstData| -> Value {
        let inst = kernel.insts.push(data);
        let value = kernel.define(inst, Type::I32);
        insts.push(inst);
        value
    };
    let group = emit(InstData::BuiltIn { builtin: BuiltIn::WorkgroupId, component: 0 });
    let size = emit(InstData::Const { ty: Type::I32, bits: size.into() });
    let first = emit(InstData::Pure { op: Op::IMul, args: [group, size].into_iter().collect() });
    let local = emit(InstData::BuiltIn { builtin: BuiltIn::LocalInvocationId, component: 0 });
    kernel.insts[inst] = InstData::Pure { op: Op::IAdd, args: [first, local].into_iter().collect() };
}

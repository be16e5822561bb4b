//! Small workgroups side by side: those of 8 x 8 invocations run in pairs, as one of 16 x 8, so that the lanes of a subgroup are a row of
//! 16 instead of two strips of 8, and those of 1 invocation as one of 16, which fill the lanes.
//!
//! Nobody can tell if invocations have nothing to do with each other: no barriers and fences, no workgroup memory, no operations of
//! subgroups, no ids within a subgroup. Nor may one workgroup wait for another, which is over today before the other begins: it would wait
//! by atomics or by volatile or coherent loads. `WorkgroupId` is that of the first; a kernel that asks for it without the
//! invocation's place would lose what its lanes share.
//!
//! Where a row of workgroups ends, some lanes are off.
//!
//! Loops that lanes leave one by one are better off with lanes that are near each other in both directions, as an 8 x 2 strip is: they wait
//! less for the longest. Their workgroups stay alone if they fill the lanes.

use crate::analysis::Uniformity;
use crate::ir::{BuiltIn, Inst, InstData, Kernel, Op, Type, Value, ValueDef, VariableSpace};
use crate::simd::LANES;

/// Subgroups of those that run abreast for each that one workgroup has, at most: where rows have one workgroup only, the others have
/// no lanes that are on.
const MAX_MERGED: u32 = 4;

/// Makes workgroups run abreast if that is better; how many.
pub(in crate::vectorize) fn set_abreast(kernel: &mut Kernel, uniformity: &Uniformity) -> u32 {
    let [x, y, z] = kernel.workgroup_size;
    let abreast = LANES / x.max(1);
    if abreast < 2 || !LANES.is_multiple_of(x) {
        return 1;
    }
    let alone = kernel.invocations().div_ceil(LANES);
    if y.saturating_mul(z) > MAX_MERGED * alone || !is_apart(kernel) {
        return 1;
    }
    let full = kernel.invocations().is_multiple_of(LANES);
    if full && has_divergent_loops(uniformity) {
        return 1;
    }
    for block in kernel.layout.clone() {
        let mut insts = Vec::with_capacity(kernel.blocks[block].insts.len());
        for inst in std::mem::take(&mut kernel.blocks[block].insts) {
            match kernel.insts[inst] {
                InstData::BuiltIn { builtin: BuiltIn::GlobalInvocationId, component: 0 } => {
                    spell_out(kernel, inst, x, &mut insts);
                }
                // In workgroups that are one wide, it is the invocation's.
                InstData::BuiltIn { builtin: BuiltIn::WorkgroupId, component: 0 } => {
                    spell_out(kernel, inst, 1, &mut insts);
                }
                _ => {}
            }
            insts.push(inst);
        }
        kernel.blocks[block].insts = insts;
    }
    kernel.workgroup_size[0] = LANES;
    abreast
}

/// Whether lanes leave loops one by one.
fn has_divergent_loops(uniformity: &Uniformity) -> bool {
    uniformity.loops.all.iter().any(|found| uniformity.is_divergent(found.header))
}

/// Whether invocations have nothing to do with each other.
fn is_apart(kernel: &Kernel) -> bool {
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
        | InstData::Print { .. } => false,
        _ => true,
    }) && !kernel.variables.values().any(|variable| is_shared(variable.space))
}

/// Makes a global id the sum of what it is made of, in front of which go the parts.
fn spell_out(kernel: &mut Kernel, inst: Inst, size: u32, insts: &mut Vec<Inst>) {
    let mut emit = |data: InstData| -> Value {
        let inst = kernel.insts.push(data);
        let value = kernel.values.push(ValueDef::Result { inst, ty: Type::I32 });
        kernel.results[inst] = Some(value);
        insts.push(inst);
        value
    };
    let group = emit(InstData::BuiltIn { builtin: BuiltIn::WorkgroupId, component: 0 });
    let size = emit(InstData::Const { ty: Type::I32, bits: size.into() });
    let first = emit(InstData::Pure { op: Op::IMul, args: [group, size].into_iter().collect() });
    let local = emit(InstData::BuiltIn { builtin: BuiltIn::LocalInvocationId, component: 0 });
    kernel.insts[inst] = InstData::Pure { op: Op::IAdd, args: [first, local].into_iter().collect() };
}

//! Declarations of an entry point: its workgroup size and its built-ins.

use spirv::{BuiltIn, ExecutionMode, Op};

use super::super::Error;
use super::arithmetic::ArithmeticType;
use super::constants::Constants;
use super::group::MaskRelation;
use super::module::{EntryPoint, Sections};
use super::pointer::Input;
use super::scalar::Scalar;
use super::types::Types;
use super::words::{Id, Inst, InstResult, operand};
use crate::abi::SUBGROUP_SIZE;
use crate::ir;

/// Invocations of a workgroup, at most (`maxComputeWorkGroupInvocations`).
pub(in crate::front) const MAX_INVOCATIONS: u64 = 1024;

/// Source of a built-in, and the shape that it must be declared with.
pub(super) fn input(builtin: BuiltIn) -> InstResult<(Input, ArithmeticType)> {
    use ir::BuiltIn as B;
    let scalar = ArithmeticType::Scalar(Scalar::I32);
    let (vector, ballot) = (ArithmeticType::Vector(Scalar::I32, 3), ArithmeticType::Vector(Scalar::I32, 4));
    Ok(match builtin {
        BuiltIn::NumWorkgroups => (Input::BuiltIn(B::NumWorkgroups), vector),
        BuiltIn::WorkgroupId => (Input::BuiltIn(B::WorkgroupId), vector),
        BuiltIn::LocalInvocationId => (Input::BuiltIn(B::LocalInvocationId), vector),
        BuiltIn::GlobalInvocationId => (Input::BuiltIn(B::GlobalInvocationId), vector),
        BuiltIn::LocalInvocationIndex => (Input::BuiltIn(B::LocalInvocationIndex), scalar),
        BuiltIn::NumSubgroups => (Input::BuiltIn(B::NumSubgroups), scalar),
        BuiltIn::SubgroupId => (Input::BuiltIn(B::SubgroupId), scalar),
        BuiltIn::SubgroupLocalInvocationId => (Input::BuiltIn(B::SubgroupLocalInvocationId), scalar),
        BuiltIn::SubgroupEqMask => (Input::Mask(MaskRelation::Eq), ballot),
        BuiltIn::SubgroupGeMask => (Input::Mask(MaskRelation::Ge), ballot),
        BuiltIn::SubgroupGtMask => (Input::Mask(MaskRelation::Gt), ballot),
        BuiltIn::SubgroupLeMask => (Input::Mask(MaskRelation::Le), ballot),
        BuiltIn::SubgroupLtMask => (Input::Mask(MaskRelation::Lt), ballot),
        BuiltIn::SubgroupSize => (Input::Constant(SUBGROUP_SIZE), scalar),
        BuiltIn::DeviceIndex => (Input::Constant(0), scalar),
        other => return Err(format!("built-in {other:?} is not supported")),
    })
}

/// Components of a built-in.
pub(super) fn components(builtin: ir::BuiltIn) -> u8 {
    use ir::BuiltIn as B;
    match builtin {
        B::NumWorkgroups | B::WorkgroupId | B::LocalInvocationId | B::GlobalInvocationId => 3,
        B::LocalInvocationIndex | B::NumSubgroups | B::SubgroupId | B::SubgroupLocalInvocationId => 1,
    }
}

/// Checks the entry point's execution modes, and returns its workgroup size: from the constant `WorkgroupSize`, which
/// takes precedence, or from `LocalSize` or `LocalSizeId`.
pub(super) fn workgroup_size(
    sections: &Sections,
    types: &mut Types,
    constants: &Constants,
    entry: &EntryPoint,
) -> Result<[u32; 3], Error> {
    let mut size = None;
    for inst in &sections.execution_modes {
        let operands = sections.words.operands(inst);
        if operands.first() == Some(&entry.function) {
            let mode = execution_mode(types, constants, inst, operands);
            let mode = mode.map_err(|message| sections.error(inst.word, message))?;
            size = mode.or(size);
        }
    }
    let constant = sections.annotations.ids_with(|d| d.builtin == Some(BuiltIn::WorkgroupSize));
    if let Some(id) = constant.into_iter().find(|&id| constants.get(id).is_some()) {
        let components = constants.bits(types, id).map_err(|message| sections.error(entry.word, message))?;
        size = match *components {
            [x, y, z] => Some([x as u32, y as u32, z as u32]),
            _ => return Err(sections.error(entry.word, "the WorkgroupSize constant does not have 3 components")),
        };
    }
    let size =
        size.ok_or_else(|| sections.error(entry.word, format!("entry point {:?} has no LocalSize", entry.name)))?;
    check_size(size).map_err(|message| sections.error(entry.word, message))?;
    Ok(size)
}

/// Checks that a workgroup size is within the limits.
pub(in crate::front) fn check_size(size: [u32; 3]) -> InstResult<()> {
    let invocations = size.iter().try_fold(1u64, |all, &one| all.checked_mul(u64::from(one))).unwrap_or(u64::MAX);
    if (1..=MAX_INVOCATIONS).contains(&invocations) {
        return Ok(());
    }
    let [x, y, z] = size;
    Err(format!(
        "a workgroup of {x} x {y} x {z} invocations, where 1 to {MAX_INVOCATIONS} are possible (VUID-RuntimeSpirv-x-06432)"
    ))
}

/// Whether the requirement of an execution mode always holds.
pub(super) fn holds_always(mode: ExecutionMode) -> bool {
    matches!(
        mode,
        ExecutionMode::DenormPreserve
            | ExecutionMode::SignedZeroInfNanPreserve
            | ExecutionMode::RoundingModeRTE
            | ExecutionMode::SubgroupUniformControlFlowKHR
            | ExecutionMode::MaximallyReconvergesKHR
    )
}

fn execution_mode(types: &Types, constants: &Constants, inst: &Inst, operands: &[u32]) -> InstResult<Option<[u32; 3]>> {
    let number = operand(operands, 1)?;
    let mode = ExecutionMode::from_u32(number).ok_or_else(|| format!("unknown execution mode {number}"))?;
    let literals = [operand(operands, 2), operand(operands, 3), operand(operands, 4)];
    match mode {
        ExecutionMode::LocalSize => {
            let [x, y, z] = literals;
            Ok(Some([x?, y?, z?]))
        }
        ExecutionMode::LocalSizeId if inst.op == Op::ExecutionModeId => {
            let constant = |id: InstResult<Id>| constants.uint(types, id?);
            let [x, y, z] = literals;
            Ok(Some([constant(x)?, constant(y)?, constant(z)?]))
        }
        mode if holds_always(mode) => Ok(None),
        other => Err(format!("execution mode {other:?} is not supported")),
    }
}

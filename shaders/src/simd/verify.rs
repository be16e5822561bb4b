//! Verifier of the SIMD IR: the rules that every pass and back end relies on.
//!
//! Checks the control flow graph, then each instruction: the types of its operands (`verify_inst`) and that their
//! definitions dominate it; finally that effects are masked by the execution mask (`verify_lanes`) and that scalars are
//! computed from lanes with defined values (`verify_scalars`). `docs/simd.md` lists the rules.

use smallvec::SmallVec;

use super::verify_inst::operand_types;
use super::verify_lanes::check_lanes;
use super::verify_loops::check_subgroup_loops;
use super::{Block, Inst, InstData, Kernel, LANES, Type};
use crate::ssa::{self, Operands, Rules, Verifier, general};

/// The first violation of a rule.
pub type VerifyError = ssa::VerifyError<Inst>;

pub(crate) type Result<T = ()> = std::result::Result<T, VerifyError>;

impl Rules for Kernel {
    const ORDERS_UNREACHABLE: bool = true;

    fn result_types(&self, data: &InstData) -> SmallVec<[Type; 4]> {
        data.result_types(|operand| self.values.get(operand).map_or(Type::V32, |def| def.ty()))
    }

    fn operand_types(&self, data: &InstData) -> std::result::Result<Operands<Self>, String> {
        operand_types(self, data)
    }
}

/// Checks the whole kernel. Takes `n log n` time in its size.
///
/// # Errors
///
/// The first violation of a rule.
pub fn verify(kernel: &Kernel) -> Result {
    if !(1..=LANES).contains(&kernel.merged_workgroups) {
        return general(format!("{} workgroups cannot be merged", kernel.merged_workgroups));
    }
    let verifier = Verifier::new(kernel)?;
    for &block in &kernel.layout {
        check_exec(&verifier, kernel, block)?;
        verifier.check_block(block)?;
    }
    check_subgroup_loops(kernel, &verifier.dominators)?;
    check_lanes(kernel, &verifier.dominators)
}

/// Checks that the execution mask is a mask of the block itself or of a dominator.
fn check_exec(verifier: &Verifier<'_, Kernel>, kernel: &Kernel, block: Block) -> Result {
    let Some(exec) = kernel.blocks[block].exec else { return Ok(()) };
    let Some(definition) = verifier.defining_block(exec).filter(|_| kernel.values.is_valid(exec)) else {
        return general(format!("{exec}, the execution mask of {block}, is not defined in the layout"));
    };
    let ty = kernel.ty(exec);
    if ty != Type::Mask {
        return general(format!("{exec}, the execution mask of {block}, is {ty}"));
    }
    if verifier.dominators.is_reachable(block) && !verifier.dominators.dominates(definition, block) {
        return general(format!("{exec}, the execution mask of {block}, does not dominate it"));
    }
    Ok(())
}

//! Verifier of the scalar IR: the rules that every pass and back end relies on.
//!
//! Checks the tables, then the control flow graph, then each instruction: the types of its operands (`verify_inst`) and
//! that their definitions dominate it. Unreachable blocks may be in the layout; there, definitions need not precede
//! uses.

use smallvec::SmallVec;

use super::verify_inst::operand_types;
use super::{Block, Inst, InstData, Kernel, Merge, Type, VariableSpace};
use crate::ssa::{self, Operands, Rules, Verifier, general};

/// Whether the compiler verifies its own results after each pass: in debug builds inside of this repository, which set
/// a variable of the build (`.cargo/config.toml`). In the unoptimised build of another crate's tests, verification
/// would take most of the time of compilation.
pub(crate) const VERIFIES: bool = cfg!(debug_assertions) && is_set(option_env!("SPELTER_VERIFY"));

const fn is_set(variable: Option<&str>) -> bool {
    match variable {
        Some(value) => !value.is_empty(),
        None => false,
    }
}

/// The first violation of a rule.
pub type VerifyError = ssa::VerifyError<Inst>;

type Result<T = ()> = std::result::Result<T, VerifyError>;

impl Rules for Kernel {
    const ORDERS_UNREACHABLE: bool = false;

    fn result_types(&self, data: &InstData) -> SmallVec<[Type; 4]> {
        data.result_type(|operand| Some(self.values.get(operand)?.ty())).into_iter().collect()
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
    check_tables(kernel)?;
    let verifier = Verifier::new(kernel)?;
    for &block in &kernel.layout {
        check_merge(kernel, block)?;
        verifier.check_block(block)?;
    }
    Ok(())
}

/// Workgroup size, bindings and variables.
fn check_tables(kernel: &Kernel) -> Result {
    let invocations = kernel.workgroup_size.iter().try_fold(1u32, |product, &size| product.checked_mul(size));
    if invocations.is_none_or(|count| count == 0) {
        return general(format!("a workgroup of {:?} is empty or too large", kernel.workgroup_size));
    }
    for (variable, data) in &kernel.variables {
        if data.bytes % 4 != 0 {
            return general(format!("{variable}: {} bytes are not a whole number of words", data.bytes));
        }
        let words = if data.space == VariableSpace::Constant { data.bytes as usize / 4 } else { 0 };
        if data.words.len() != words {
            return general(format!("{variable}: {} words are there for {words}", data.words.len()));
        }
    }
    for space in [VariableSpace::Workgroup, VariableSpace::Private, VariableSpace::Constant] {
        let sizes = kernel.variables.values().filter(|data| data.space == space).map(|data| u64::from(data.bytes) + 15);
        if u32::try_from(sizes.sum::<u64>()).is_err() {
            return general(format!("{} variables do not fit 4 GiB", space.name()));
        }
    }
    Ok(())
}

/// Checks that merge annotations name blocks of the kernel.
fn check_merge(kernel: &Kernel, block: Block) -> Result {
    let named = match kernel.blocks[block].merge {
        None => return Ok(()),
        Some(Merge::Selection { merge }) => [merge, merge],
        Some(Merge::Loop { merge, continuing }) => [merge, continuing],
    };
    match named.into_iter().find(|&named| !kernel.blocks.is_valid(named)) {
        Some(named) => general(format!("{block} merges in {named}, which is not in the kernel")),
        None => Ok(()),
    }
}

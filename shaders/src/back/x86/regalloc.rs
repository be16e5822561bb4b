//! Registers for the machine code: which there are, and the run of `regalloc2`.

use std::sync::OnceLock;

use regalloc2::{Algorithm, MachineEnv, Output, PReg, PRegSet, RegClass, RegallocOptions};

use super::vcode::VCode;
use super::{CompileError, Isa};

/// General registers that a call may change, then those that have to be saved. The stack pointer is neither.
const FREE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
const SAVED: [usize; 6] = [3, 5, 12, 13, 14, 15];

fn set(class: RegClass, numbers: impl IntoIterator<Item = usize>) -> PRegSet {
    let mut set = PRegSet::empty();
    numbers.into_iter().for_each(|number| set.add(PReg::new(number, class)));
    set
}

fn machine(isa: Isa) -> &'static MachineEnv {
    static ENVS: [OnceLock<MachineEnv>; 2] = [OnceLock::new(), OnceLock::new()];
    ENVS[isa as usize].get_or_init(|| {
        let vectors = if isa == Isa::Avx512 { 32 } else { 16 };
        // Mask register 0 means "no mask" where an instruction takes one.
        let masks = if isa == Isa::Avx512 { 1..8 } else { 0..0 };
        MachineEnv {
            preferred_regs_by_class: [
                set(RegClass::Int, FREE),
                set(RegClass::Float, 0..vectors),
                set(RegClass::Vector, masks),
            ],
            non_preferred_regs_by_class: [set(RegClass::Int, SAVED), PRegSet::empty(), PRegSet::empty()],
            scratch_by_class: [None; 3],
            fixed_stack_slots: Vec::new(),
        }
    })
}

/// Assigns registers; in debug builds the result is proved right.
pub(super) fn allocate(code: &VCode, isa: Isa) -> Result<Output, CompileError> {
    let env = machine(isa);
    let options =
        RegallocOptions { verbose_log: false, validate_ssa: cfg!(debug_assertions), algorithm: Algorithm::Ion };
    let out = regalloc2::run(code, env, &options).map_err(|error| CompileError::Registers(error.to_string()))?;
    #[cfg(debug_assertions)]
    {
        let mut checker = regalloc2::checker::Checker::new(code, env);
        checker.prepare(&out);
        checker.run().map_err(|errors| CompileError::Registers(format!("{errors:?}")))?;
    }
    Ok(out)
}

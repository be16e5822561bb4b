//! Register allocation with `regalloc2`: the machine's registers, the choice of the algorithm, the reused tables.

use std::cell::Cell;

use regalloc2::{
    Algorithm, Ctx, Function as _, Inst, MachineEnv, OperandKind, Output, PReg, PRegSet, RegClass, RegallocOptions,
    VReg,
};
use spelter_locks::Computed;

use super::vcode::VCode;
use super::{CompileError, Isa, RegisterAllocation};
use crate::ir::VERIFIES;

/// Caller-saved general registers, then callee-saved ones. The stack pointer is in neither set.
const FREE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
const SAVED: [usize; 6] = [3, 5, 12, 13, 14, 15];

fn set(class: RegClass, numbers: impl IntoIterator<Item = usize>) -> PRegSet {
    let mut set = PRegSet::empty();
    numbers.into_iter().for_each(|number| set.add(PReg::new(number, class)));
    set
}

/// The registers that a call clobbers.
pub(super) fn not_saved(isa: Isa) -> PRegSet {
    let mut all = set(RegClass::Int, FREE);
    all.union_from(set(RegClass::Float, 0..isa.vector_registers()));
    all.union_from(set(RegClass::Vector, isa.mask_registers()));
    all
}

fn machine(isa: Isa) -> &'static MachineEnv {
    static ENVS: [Computed<MachineEnv>; Isa::ALL.len()] = [const { Computed::new() }; Isa::ALL.len()];
    ENVS[isa as usize].get_or_compute(|| MachineEnv {
        preferred_regs_by_class: [
            set(RegClass::Int, FREE),
            set(RegClass::Float, 0..isa.vector_registers()),
            set(RegClass::Vector, isa.mask_registers()),
        ],
        non_preferred_regs_by_class: [set(RegClass::Int, SAVED), PRegSet::empty(), PRegSet::empty()],
        scratch_by_class: [None; 3],
        fixed_stack_slots: Vec::new(),
    })
}

/// The allocator's tables and its result. Each thread caches them for its next kernel: building them anew costs as much
/// as a small kernel does.
#[derive(Default)]
pub(super) struct AllocationTables {
    context: Option<Box<Ctx>>,
}

thread_local! {
    static KEPT: Cell<Option<Box<Ctx>>> = const { Cell::new(None) };
}

/// Operand count above which tables are freed instead of cached: they take about a hundred bytes per operand.
const MAX_KEPT_OPERANDS: usize = 1 << 15;

impl Drop for AllocationTables {
    fn drop(&mut self) {
        if let Some(context) = self.context.take()
            && context.output.allocs.len() <= MAX_KEPT_OPERANDS
        {
            // During thread exit the thread-local may be destroyed already.
            let _ = KEPT.try_with(|kept| kept.set(Some(context)));
        }
    }
}

/// Instruction count up to which live ranges are split and merged (Ion). With many values live at once its time is
/// quadratic in the instructions (16,000: 0.1 s; 40,000: seconds).
const MAX_SPLIT_INSTRUCTIONS: usize = 1 << 14;

/// Average number of live values up to which Ion is used: 2,000 loads before as many stores, as copies of large
/// structures have, take 0.4 s otherwise, and four times as many take seconds.
const MAX_LIVE: u64 = 384;

/// Number of block arguments up to which Ion is used: a loop with 1,000 exits, each of which passes the values of the
/// others, takes seconds.
const MAX_BLOCK_ARGUMENTS: usize = 1 << 17;

/// Number of block arguments of all branches.
fn passed(code: &VCode) -> usize {
    code.blocks.iter().map(|block| block.args.len()).sum()
}

/// Average number of values live at a time, with loops ignored.
fn alive(code: &VCode) -> u64 {
    const NEVER: u32 = u32::MAX;
    let mut last = vec![NEVER; code.num_vregs()];
    let mut sum = 0u64;
    let mut occurs = |reg: VReg, at: u32| {
        let last = &mut last[reg.vreg()];
        sum += if *last == NEVER { 0 } else { u64::from(at.abs_diff(*last)) };
        *last = at;
    };
    for block in &code.blocks {
        block.params.iter().for_each(|&param| occurs(param, block.first));
        for at in block.first..block.end {
            code.inst_operands(Inst::new(at as usize)).iter().for_each(|operand| occurs(operand.vreg(), at));
        }
        block.args.iter().for_each(|&arg| occurs(arg, block.end));
    }
    sum / code.len().max(1) as u64
}

/// Upper bound of the single pass's steps: it walks the blocks backwards, and where one begins it looks at each value
/// that is live, also for each predecessor. That is quadratic, and no other stage of code generation is.
pub(super) fn steps(code: &VCode) -> usize {
    let mut live = vec![false; code.num_vregs()];
    let mut count = 0usize;
    let mut steps = code.len();
    for block in code.blocks.iter().rev() {
        let mut set = |reg: VReg, now: bool| {
            let before = std::mem::replace(&mut live[reg.vreg()], now);
            count = count + usize::from(now) - usize::from(before);
        };
        block.args.iter().for_each(|&arg| set(arg, true));
        for at in (block.first..block.end).rev() {
            let operands = code.inst_operands(Inst::new(at as usize));
            operands.iter().for_each(|operand| set(operand.vreg(), operand.kind() == OperandKind::Use));
            steps += operands.len();
        }
        block.params.iter().for_each(|&param| set(param, false));
        steps += block.args.len() + (count + block.params.len()) * (1 + block.preds.len());
    }
    steps
}

/// Blocks times places of values (registers and spill slots) up to which builds that verify check the result: the
/// checker keeps a table of all places for each block. Beyond, it was half of the time of all tests.
const MAX_CHECKED_PLACES: usize = 1 << 15;

/// Assigns registers. The result is checked in builds that verify (`VERIFIES`).
pub(super) fn allocate<'a>(
    tables: &'a mut AllocationTables,
    code: &VCode,
    isa: Isa,
    registers: RegisterAllocation,
) -> Result<&'a Output, CompileError> {
    let env = machine(isa);
    let algorithm = match registers {
        RegisterAllocation::BySize
            if code.len() <= MAX_SPLIT_INSTRUCTIONS
                && alive(code) <= MAX_LIVE
                && passed(code) <= MAX_BLOCK_ARGUMENTS =>
        {
            Algorithm::Ion
        }
        RegisterAllocation::BySize | RegisterAllocation::InOnePass => Algorithm::Fastalloc,
    };
    let options = RegallocOptions { verbose_log: false, validate_ssa: VERIFIES, algorithm };
    let mut context = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    // On error the context is dropped, not cached: its tables may be inconsistent.
    regalloc2::run_with_ctx(code, env, &options, &mut context)
        .map_err(|error| CompileError::Registers(error.to_string()))?;
    let out = &tables.context.insert(context).output;
    let places = code.blocks.len().saturating_mul(64 + out.num_spillslots);
    if VERIFIES && places <= MAX_CHECKED_PLACES && passed(code) <= MAX_BLOCK_ARGUMENTS {
        let mut checker = regalloc2::checker::Checker::new(code, env);
        checker.prepare(out);
        checker.run().map_err(|errors| CompileError::Registers(format!("{errors:?}")))?;
    }
    Ok(out)
}

//! Registers for the machine code: which there are, and the run of `regalloc2`.

use std::cell::Cell;
use std::sync::OnceLock;

use regalloc2::{Algorithm, Ctx, Function as _, Inst, MachineEnv, Output, PReg, PRegSet, RegClass, RegallocOptions};

use super::vcode::VCode;
use super::{CompileError, Isa, Registers};

/// General registers that a call may change, then those that have to be saved. The stack pointer is neither.
const FREE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
const SAVED: [usize; 6] = [3, 5, 12, 13, 14, 15];

fn set(class: RegClass, numbers: impl IntoIterator<Item = usize>) -> PRegSet {
    let mut set = PRegSet::empty();
    numbers.into_iter().for_each(|number| set.add(PReg::new(number, class)));
    set
}

/// What a function may change that is called: for vectors of so many words of 8 bytes.
pub(super) fn not_saved(vector_words: usize) -> PRegSet {
    let avx512 = vector_words == 8;
    let mut all = set(RegClass::Int, FREE);
    all.union_from(set(RegClass::Float, 0..if avx512 { 32 } else { 16 }));
    all.union_from(set(RegClass::Vector, if avx512 { 1..8 } else { 0..0 }));
    all
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

/// The allocator's tables, with what it found. A thread keeps them for its next kernel: making them anew costs as much
/// as a small kernel does.
#[derive(Default)]
pub(super) struct Tables {
    context: Option<Box<Ctx>>,
}

thread_local! {
    static KEPT: Cell<Option<Box<Ctx>>> = const { Cell::new(None) };
}

/// Operands of the largest kernel whose tables are kept: they take about a hundred bytes for each.
const MAX_KEPT_OPERANDS: usize = 1 << 15;

impl Drop for Tables {
    fn drop(&mut self) {
        if let Some(context) = self.context.take()
            && context.output.allocs.len() <= MAX_KEPT_OPERANDS
        {
            // A thread that ends may have no place for them any more.
            let _ = KEPT.try_with(|kept| kept.set(Some(context)));
        }
    }
}

/// Instructions up to which live ranges are split and merged: more of them, with many values alive at once, take time that
/// grows with the square of their number (16,000: 0.1 s; 40,000: seconds).
const MAX_SPLIT_INSTRUCTIONS: usize = 1 << 14;

/// Values alive at a time, on the average, up to which they are, too: 2,000 loads before as many stores, as copies of large
/// structures are, take 0.4 s otherwise, and four times as many seconds.
const MAX_LIVE: u64 = 384;

/// Values that branches pass, up to which they are: a loop of 1,000 ways out, each of which passes what became of the others, takes seconds.
const MAX_BLOCK_ARGUMENTS: usize = 1 << 17;

/// How many values all branches pass.
fn passed(code: &VCode) -> usize {
    code.blocks.iter().map(|block| block.args.len()).sum()
}

/// Values alive at a time, on the average, loops not counted.
fn alive(code: &VCode) -> u64 {
    const NEVER: u32 = u32::MAX;
    let mut last = vec![NEVER; code.num_vregs()];
    let mut sum = 0u64;
    for at in 0..code.len() {
        for operand in code.inst_operands(Inst::new(at)) {
            let last = &mut last[operand.vreg().vreg()];
            sum += if *last == NEVER { 0 } else { at as u64 - u64::from(*last) };
            *last = at as u32;
        }
    }
    sum / code.len().max(1) as u64
}

/// Blocks up to which debug builds prove the result right, which takes time that grows with the square of their number, too.
#[cfg(debug_assertions)]
const MAX_CHECKED_BLOCKS: usize = 1 << 11;

/// Assigns registers; in debug builds the result is proved right.
pub(super) fn allocate<'a>(
    tables: &'a mut Tables,
    code: &VCode,
    isa: Isa,
    registers: Registers,
) -> Result<&'a Output, CompileError> {
    let env = machine(isa);
    let algorithm = match registers {
        Registers::BySize
            if code.len() <= MAX_SPLIT_INSTRUCTIONS
                && alive(code) <= MAX_LIVE
                && passed(code) <= MAX_BLOCK_ARGUMENTS =>
        {
            Algorithm::Ion
        }
        Registers::BySize | Registers::InOnePass => Algorithm::Fastalloc,
    };
    let options = RegallocOptions { verbose_log: false, validate_ssa: cfg!(debug_assertions), algorithm };
    let mut context = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    // After an error nobody can rely on the tables: they are dropped.
    regalloc2::run_with_ctx(code, env, &options, &mut context)
        .map_err(|error| CompileError::Registers(error.to_string()))?;
    let out = &tables.context.insert(context).output;
    #[cfg(debug_assertions)]
    if code.blocks.len() <= MAX_CHECKED_BLOCKS && passed(code) <= MAX_BLOCK_ARGUMENTS {
        let mut checker = regalloc2::checker::Checker::new(code, env);
        checker.prepare(out);
        checker.run().map_err(|errors| CompileError::Registers(format!("{errors:?}")))?;
    }
    Ok(out)
}

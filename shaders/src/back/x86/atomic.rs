//! Scalar atomic operations on one word, locked or unlocked, and the loop that applies one to each active lane.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};

use super::encode::{Assembler, conditional};
use crate::ir::AtomicOp;
use crate::simd::LANES;

/// Offsets in the scratch area: per-lane inputs, and per-lane results.
pub(super) const INDEX_AT: i32 = 0;
pub(super) const VALUE_AT: i32 = 64;
pub(super) const COMPARATOR_AT: i32 = 128;
pub(super) const RESULT_AT: i32 = 192;

/// The operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicCode {
    pub op: AtomicOp,
    /// Whether other threads may access the word concurrently.
    pub lock: bool,
    /// Whether a store must be sequentially consistent.
    pub sequential: bool,
    /// Whether the old value is used.
    pub result: bool,
}

/// 32-bit general registers that the operation may clobber. `old` is the accumulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicRegisters {
    pub old: Register,
    pub value: Register,
    pub comparator: Register,
}

/// The accumulator (`eax`), the implicit comparand of `cmpxchg`.
pub(super) const ACCUMULATOR: usize = 0;

impl AtomicCode {
    fn locked(&self, asm: &mut Assembler<'_>, instruction: Result<Instruction, iced_x86::IcedError>) {
        asm.put(instruction.map(|mut instruction| {
            instruction.set_has_lock_prefix(self.lock);
            instruction
        }));
    }

    /// Emits the operation on a word in memory; returns the register that holds the old value, if `result`.
    pub(super) fn operate(&self, asm: &mut Assembler<'_>, memory: MemoryOperand, regs: AtomicRegisters) -> Register {
        let AtomicRegisters { old, value, comparator } = regs;
        let load = Instruction::with2(Code::Mov_r32_rm32, old, memory);
        match self.op {
            AtomicOp::Load => asm.put(load),
            AtomicOp::Store if !self.sequential => asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, value)),
            AtomicOp::Exchange if !self.lock => {
                asm.put(load);
                asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, value));
            }
            // `xchg` with memory is always locked.
            AtomicOp::Store | AtomicOp::Exchange => {
                asm.put(Instruction::with2(Code::Xchg_rm32_r32, memory, value));
                return value;
            }
            AtomicOp::CompareExchange => {
                asm.put(Instruction::with2(Code::Mov_r32_rm32, old, comparator));
                self.locked(asm, Instruction::with2(Code::Cmpxchg_rm32_r32, memory, value));
            }
            AtomicOp::Add | AtomicOp::Sub => return self.sum(asm, memory, regs),
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor if !self.result => {
                let [to_memory, _] = logic(self.op);
                self.locked(asm, Instruction::with2(to_memory, memory, value));
            }
            _ if self.lock => self.exchange_until_unchanged(asm, memory, regs),
            _ => {
                asm.put(load);
                self.combine(asm, value, old);
                asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, value));
            }
        }
        old
    }

    fn sum(&self, asm: &mut Assembler<'_>, memory: MemoryOperand, regs: AtomicRegisters) -> Register {
        if self.op == AtomicOp::Sub {
            asm.put(Instruction::with1(Code::Neg_rm32, regs.value));
        }
        if !self.result {
            self.locked(asm, Instruction::with2(Code::Add_rm32_r32, memory, regs.value));
        } else if self.lock {
            self.locked(asm, Instruction::with2(Code::Xadd_rm32_r32, memory, regs.value));
            return regs.value;
        } else {
            asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.old, memory));
            asm.put(Instruction::with2(Code::Add_rm32_r32, memory, regs.value));
        }
        regs.old
    }

    /// Replaces `value` by the new contents of the word; `old` is preserved.
    fn combine(&self, asm: &mut Assembler<'_>, value: Register, old: Register) {
        let condition = match self.op {
            AtomicOp::SMin => ConditionCode::l,
            AtomicOp::UMin => ConditionCode::b,
            AtomicOp::SMax => ConditionCode::g,
            AtomicOp::UMax => ConditionCode::a,
            _ => {
                let [_, to_register] = logic(self.op);
                asm.put(Instruction::with2(to_register, value, old));
                return;
            }
        };
        asm.put(Instruction::with2(Code::Cmp_r32_rm32, old, value));
        asm.put(Instruction::with2(conditional(condition).1, value, old));
    }

    /// Compare-and-exchange loop for operations without a locked instruction; `comparator` holds the new word.
    fn exchange_until_unchanged(&self, asm: &mut Assembler<'_>, memory: MemoryOperand, regs: AtomicRegisters) {
        let again = asm.label();
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.old, memory));
        asm.bind(again);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.comparator, regs.value));
        self.combine(asm, regs.comparator, regs.old);
        self.locked(asm, Instruction::with2(Code::Cmpxchg_rm32_r32, memory, regs.comparator));
        asm.jump_if(ConditionCode::ne, again);
    }
}

/// The opcodes of the operation with a memory and with a register destination.
fn logic(op: AtomicOp) -> [Code; 2] {
    match op {
        AtomicOp::And => [Code::And_rm32_r32, Code::And_r32_rm32],
        AtomicOp::Or => [Code::Or_rm32_r32, Code::Or_r32_rm32],
        _ => [Code::Xor_rm32_r32, Code::Xor_r32_rm32],
    }
}

/// The address of each lane's word; only the index differs between lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneMemory {
    pub base: Register,
    pub scale: u8,
    pub disp: i32,
}

impl LaneMemory {
    pub(super) fn at(self, index: Register) -> MemoryOperand {
        let disp = i64::from(self.disp);
        MemoryOperand::with_base_index_scale_displ_size(self.base, index, u32::from(self.scale), disp, 1)
    }
}

/// An operand of all lanes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Brought {
    Nothing,
    /// The same 32-bit register for all lanes.
    Same(Register),
    /// One word per lane, at this offset in the scratch area.
    Lanes(i32),
}

/// A loop over the active lanes: the lowest first, or in the order of a schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneLoop {
    /// Bits of the active lanes.
    pub bits: Register,
    /// A copy of them; clobbered.
    pub left: Register,
    /// The current lane.
    pub lane: Register,
    /// Address of the order: 16 lane numbers, one word each.
    pub order: Option<Register>,
}

impl LaneLoop {
    /// Emits the loop; `each` emits its body.
    pub(super) fn write(&self, asm: &mut Assembler<'_>, each: impl FnOnce(&mut Assembler<'_>)) {
        let Self { bits, left, lane, order } = *self;
        let (again, done) = (asm.label(), asm.label());
        asm.put(Instruction::with2(Code::Test_rm32_r32, left, left));
        asm.jump_if(ConditionCode::e, done);
        let Some(order) = order else {
            asm.bind(again);
            asm.put(Instruction::with2(Code::Tzcnt_r32_rm32, lane, left));
            each(asm);
            asm.put(Instruction::with2(Code::VEX_Blsr_r32_rm32, left, left));
            asm.jump_if(ConditionCode::ne, again);
            asm.bind(done);
            return;
        };
        let (position, inactive) = (left, asm.label());
        asm.put(Instruction::with2(Code::Mov_r32_imm32, position, 0));
        asm.bind(again);
        let word = LaneMemory { base: order, scale: 4, disp: 0 }.at(position.full_register());
        asm.put(Instruction::with2(Code::Mov_r32_rm32, lane, word));
        asm.put(Instruction::with2(Code::Bt_rm32_r32, bits, lane));
        asm.jump_if(ConditionCode::ae, inactive);
        each(asm);
        asm.bind(inactive);
        asm.put(Instruction::with2(Code::Add_rm32_imm8, position, 1));
        asm.put(Instruction::with2(Code::Cmp_rm32_imm8, position, LANES.cast_signed()));
        asm.jump_if(ConditionCode::ne, again);
        asm.bind(done);
    }
}

/// The registers of the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicLoop {
    pub lanes: LaneLoop,
    pub lane: Register,
    /// The lane's index, zero-extended.
    pub index: Register,
    pub memory: LaneMemory,
    pub value: Brought,
    pub comparator: Brought,
}

impl AtomicLoop {
    /// The current lane's word in the scratch area at `at`.
    fn word(&self, at: i32) -> MemoryOperand {
        MemoryOperand::with_base_index_scale_displ_size(Register::RSP, self.lane, 4, i64::from(at), 1)
    }

    fn fetch(&self, asm: &mut Assembler<'_>, brought: Brought, to: Register) {
        asm.put(match brought {
            Brought::Nothing => return,
            Brought::Same(from) => Instruction::with2(Code::Mov_r32_rm32, to, from),
            Brought::Lanes(at) => Instruction::with2(Code::Mov_r32_rm32, to, self.word(at)),
        });
    }

    /// Emits the loop. Indices, values, comparators and results are in the scratch area.
    pub(super) fn write(&self, asm: &mut Assembler<'_>, atomic: &AtomicCode, regs: AtomicRegisters) {
        self.lanes.write(asm, |asm| {
            asm.put(Instruction::with2(Code::Mov_r32_rm32, self.index.full_register32(), self.word(INDEX_AT)));
            self.fetch(asm, self.value, regs.value);
            self.fetch(asm, self.comparator, regs.comparator);
            let old = atomic.operate(asm, self.memory.at(self.index), regs);
            if atomic.result {
                asm.put(Instruction::with2(Code::Mov_rm32_r32, self.word(RESULT_AT), old));
            }
        });
    }
}

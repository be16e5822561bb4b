//! One atomic operation on one word, with or without a lock, and the loop that does it lane by lane.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};

use super::encode::{Assembler, conditional};
use crate::ir::AtomicOp;

/// In the scratch area: what lanes bring, and what they take away.
pub(super) const INDEX_AT: i32 = 0;
pub(super) const VALUE_AT: i32 = 64;
pub(super) const COMPARATOR_AT: i32 = 128;
pub(super) const RESULT_AT: i32 = 192;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atomic {
    pub op: AtomicOp,
    /// Whether other threads may touch the word meanwhile.
    pub lock: bool,
    /// Whether a store has to be sequentially consistent.
    pub sequential: bool,
    /// Whether somebody asks for the old value.
    pub result: bool,
}

/// General registers, 32 bits wide, that the operation may write over. `old` is the accumulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    pub old: Register,
    pub value: Register,
    pub comparator: Register,
}

/// The accumulator, which exchanges compare with.
pub(super) const ACCUMULATOR: usize = 0;

impl Atomic {
    fn locked(&self, asm: &mut Assembler<'_>, instruction: Result<Instruction, iced_x86::IcedError>) {
        asm.put(instruction.map(|mut instruction| {
            instruction.set_has_lock_prefix(self.lock);
            instruction
        }));
    }

    /// The operation on a word in memory; the register with the old value, if it was asked for.
    pub(super) fn operate(&self, asm: &mut Assembler<'_>, memory: MemoryOperand, regs: Registers) -> Register {
        let Registers { old, value, comparator } = regs;
        let load = Instruction::with2(Code::Mov_r32_rm32, old, memory);
        match self.op {
            AtomicOp::Load => asm.put(load),
            AtomicOp::Store if !self.sequential => asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, value)),
            AtomicOp::Exchange if !self.lock => {
                asm.put(load);
                asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, value));
            }
            // An exchange with memory always locks.
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

    fn sum(&self, asm: &mut Assembler<'_>, memory: MemoryOperand, regs: Registers) -> Register {
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

    /// `value` becomes what the word holds afterwards; `old` stays.
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

    /// Operations that the machine has no locked form of; `comparator` holds the new word.
    fn exchange_until_unchanged(&self, asm: &mut Assembler<'_>, memory: MemoryOperand, regs: Registers) {
        let again = asm.label();
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.old, memory));
        asm.bind(again);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.comparator, regs.value));
        self.combine(asm, regs.comparator, regs.old);
        self.locked(asm, Instruction::with2(Code::Cmpxchg_rm32_r32, memory, regs.comparator));
        asm.jump_if(ConditionCode::ne, again);
    }
}

/// The operation on memory and on a register.
fn logic(op: AtomicOp) -> [Code; 2] {
    match op {
        AtomicOp::And => [Code::And_rm32_r32, Code::And_r32_rm32],
        AtomicOp::Or => [Code::Or_rm32_r32, Code::Or_r32_rm32],
        _ => [Code::Xor_rm32_r32, Code::Xor_r32_rm32],
    }
}

/// An address for each lane, all but the index in registers.
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

/// What lanes bring with them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Brought {
    Nothing,
    /// A register, 32 bits wide.
    Same(Register),
    /// A word for each lane, in the scratch area from there on.
    Lanes(i32),
}

/// Registers of the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    /// Bits of lanes that are on, used up.
    pub lanes: Register,
    pub lane: Register,
    /// The index of a lane, zero-extended.
    pub index: Register,
    pub memory: LaneMemory,
    pub value: Brought,
    pub comparator: Brought,
}

impl Loop {
    /// Word `at` of the lane that it is the turn of.
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

    /// Lane by lane, the lowest first. Indices, values and comparators are in the scratch area, where results go, too.
    pub(super) fn write(&self, asm: &mut Assembler<'_>, atomic: &Atomic, regs: Registers) {
        let (again, done) = (asm.label(), asm.label());
        let narrow = |reg: Register| reg.full_register32();
        asm.put(Instruction::with2(Code::Test_rm32_r32, self.lanes, self.lanes));
        asm.jump_if(ConditionCode::e, done);
        asm.bind(again);
        asm.put(Instruction::with2(Code::Tzcnt_r32_rm32, narrow(self.lane), self.lanes));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, narrow(self.index), self.word(INDEX_AT)));
        self.fetch(asm, self.value, regs.value);
        self.fetch(asm, self.comparator, regs.comparator);
        let old = atomic.operate(asm, self.memory.at(self.index), regs);
        if atomic.result {
            asm.put(Instruction::with2(Code::Mov_rm32_r32, self.word(RESULT_AT), old));
        }
        asm.put(Instruction::with2(Code::VEX_Blsr_r32_rm32, self.lanes, self.lanes));
        asm.jump_if(ConditionCode::ne, again);
        asm.bind(done);
    }
}

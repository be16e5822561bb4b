//! The stack frame: saved registers, spill slots, the scratch area.

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use regalloc2::{Allocation, Edit, Output, PReg, RegClass, SpillSlot};

use super::super::CompileError;
use super::super::vcode::{SCRATCH_BYTES, VCode};
use super::Assembler;

/// Largest frame; above some pages it is on a stack of its own (`stack.rs`).
const MOST_BYTES: usize = 256 << 10;
/// The stack is touched in steps of this, so that its guard page is not jumped over.
const PAGE: i32 = 4096;

/// Registers that belong to the caller.
const SAVED: [usize; 6] = [3, 5, 12, 13, 14, 15];

/// Layout, from the stack pointer up: scratch area, spill slots, the stack pointer as it was.
#[derive(Debug)]
pub(super) struct Frame {
    saved: Vec<Register>,
    spills_at: i32,
    /// A multiple of 64; 0 if there is no frame.
    bytes: i32,
}

impl Frame {
    pub(super) fn new(code: &VCode, out: &Output) -> Result<Self, CompileError> {
        let spills_at = if code.scratch { SCRATCH_BYTES } else { 0 };
        let bytes = spills_at as usize + out.num_spillslots * 8;
        if bytes > MOST_BYTES {
            return Err(CompileError::TooLarge);
        }
        let used = |number: usize| {
            let reg = Allocation::reg(PReg::new(number, RegClass::Int));
            let moved = |edit: &Edit| matches!(edit, Edit::Move { from, to } if *from == reg || *to == reg);
            out.allocs.contains(&reg) || out.edits.iter().any(|(_, edit)| moved(edit))
        };
        let saved = SAVED.into_iter().filter(|&number| used(number)).map(|number| Register::RAX + number as u32);
        // A function that calls another has a frame, so that its stack is aligned.
        let bytes = if code.calls { bytes.max(1) } else { bytes };
        Ok(Self { saved: saved.collect(), spills_at, bytes: bytes.next_multiple_of(64) as i32 })
    }

    pub(super) fn slot(&self, slot: SpillSlot) -> MemoryOperand {
        let at = i64::from(self.spills_at) + slot.index() as i64 * 8;
        MemoryOperand::with_base_displ_size(Register::RSP, at, 1)
    }

    pub(super) fn enter(&self, asm: &mut Assembler<'_>) {
        for &reg in &self.saved {
            asm.put(Instruction::with1(Code::Push_r64, reg));
        }
        if self.bytes == 0 {
            return;
        }
        // Neither register holds an argument.
        let (old, sp) = (Register::RAX, Register::RSP);
        asm.put(Instruction::with2(Code::Mov_r64_rm64, old, sp));
        let whole = self.bytes + 64;
        asm.put(Instruction::with2(Code::And_rm64_imm8, sp, -64));
        let mut left = whole;
        while left > PAGE {
            asm.put(Instruction::with2(Code::Sub_rm64_imm32, sp, PAGE));
            asm.put(Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::with_base(sp), old));
            left -= PAGE;
        }
        asm.put(Instruction::with2(Code::Sub_rm64_imm32, sp, left));
        asm.put(Instruction::with2(Code::Mov_rm64_r64, self.old(), old));
    }

    fn old(&self) -> MemoryOperand {
        MemoryOperand::with_base_displ_size(Register::RSP, i64::from(self.bytes), 1)
    }

    pub(super) fn leave(&self, asm: &mut Assembler<'_>) {
        if self.bytes != 0 {
            asm.put(Instruction::with2(Code::Mov_r64_rm64, Register::RSP, self.old()));
        }
        for &reg in self.saved.iter().rev() {
            asm.put(Instruction::with1(Code::Pop_r64, reg));
        }
        asm.put(Ok(Instruction::with(Code::VEX_Vzeroupper)));
        asm.put(Ok(Instruction::with(Code::Retnq)));
    }
}

//! The stack frame: callee-saved registers, spill slots, the scratch area.

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use regalloc2::{Allocation, Edit, Output, PReg, RegClass, SpillSlot};

use super::super::CompileError;
use super::super::call::offset;
use super::super::vcode::{SCRATCH_BYTES, VCode};
use super::Assembler;

/// Largest frame.
const MAX_BYTES: usize = 32 << 20;

/// Largest frame on the caller's stack: less than a page, so that it cannot skip the guard page, and small enough for
/// any thread. Larger frames are on the worker's stack (`stack.rs`).
const MAX_BYTES_ON_CALLERS_STACK: usize = 3 << 10;

/// Callee-saved general registers.
const SAVED: [usize; 6] = [3, 5, 12, 13, 14, 15];

/// Layout, from the stack pointer up: scratch area, spill slots, the old stack pointer.
#[derive(Debug)]
pub(super) struct Frame {
    saved: Vec<Register>,
    spills_at: i32,
    /// A multiple of 64; 0 if there is no frame.
    bytes: i32,
    /// Whether the frame is on the worker's stack; the caller's then holds saved registers only.
    on_worker_stack: bool,
}

fn at(base: Register, disp: i32) -> MemoryOperand {
    MemoryOperand::with_base_displ_size(base, disp.into(), 1)
}

impl Frame {
    pub(super) fn new(code: &VCode, out: &Output) -> Result<Self, CompileError> {
        let spills_at = if code.scratch { SCRATCH_BYTES } else { 0 };
        let bytes = spills_at as usize + out.num_spillslots * 8;
        if bytes > MAX_BYTES {
            return Err(CompileError::TooLarge);
        }
        let used = |number: usize| {
            let reg = Allocation::reg(PReg::new(number, RegClass::Int));
            let moved = |edit: &Edit| matches!(edit, Edit::Move { from, to } if *from == reg || *to == reg);
            out.allocs.contains(&reg) || out.edits.iter().any(|(_, edit)| moved(edit))
        };
        let saved = SAVED.into_iter().filter(|&number| used(number)).map(|number| Register::RAX + number as u32);
        // A function with calls needs a frame to align its stack.
        let bytes = if code.calls { bytes.max(1) } else { bytes };
        let bytes = bytes.next_multiple_of(64);
        Ok(Self {
            saved: saved.collect(),
            spills_at,
            bytes: bytes as i32,
            on_worker_stack: bytes > MAX_BYTES_ON_CALLERS_STACK,
        })
    }

    /// Bytes of the worker's stack that the frame takes.
    pub(super) fn stack_bytes(&self) -> usize {
        if self.on_worker_stack { self.whole() as usize } else { 0 }
    }

    /// Including the old stack pointer, padded to keep the alignment.
    fn whole(&self) -> i32 {
        self.bytes + 64
    }

    pub(super) fn slot(&self, slot: SpillSlot) -> MemoryOperand {
        at(Register::RSP, self.spills_at + slot.index() as i32 * 8)
    }

    pub(super) fn enter(&self, asm: &mut Assembler<'_>) {
        for &reg in &self.saved {
            asm.put(Instruction::with1(Code::Push_r64, reg));
        }
        if self.bytes == 0 {
            return;
        }
        // `rax` holds no argument.
        let (old, sp) = (Register::RAX, Register::RSP);
        asm.put(Instruction::with2(Code::Mov_r64_rm64, old, sp));
        if self.on_worker_stack {
            // The upper end of the worker's stack is aligned.
            asm.put(Instruction::with2(Code::Mov_r64_rm64, sp, at(Register::RDI, offset::STACK)));
        } else {
            asm.put(Instruction::with2(Code::And_rm64_imm8, sp, -64));
        }
        asm.put(Instruction::with2(Code::Sub_rm64_imm32, sp, self.whole()));
        asm.put(Instruction::with2(Code::Mov_rm64_r64, self.old(), old));
    }

    fn old(&self) -> MemoryOperand {
        at(Register::RSP, self.bytes)
    }

    /// Calls the routine whose number is in the third argument register, on the caller's stack, since the worker's has
    /// only room for the frame. The frame is `frame_offset` bytes above `base`. Clobbers the caller-saved registers;
    /// `eax` is nonzero if the kernel must end.
    pub(super) fn call(&self, asm: &mut Assembler<'_>, (base, frame_offset): (Register, i32)) {
        let function = at(Register::RDI, offset::CALL);
        if !self.on_worker_stack {
            asm.put(Instruction::with1(Code::Call_rm64, function));
            return;
        }
        // Neither register holds an argument.
        let (callers, ours, sp) = (Register::RCX, Register::RAX, Register::RSP);
        asm.put(Instruction::with2(Code::Mov_r64_rm64, callers, at(base, frame_offset + self.bytes)));
        asm.put(Instruction::with2(Code::Mov_r64_rm64, ours, sp));
        asm.put(Instruction::with2(Code::Mov_r64_rm64, sp, callers));
        asm.put(Instruction::with2(Code::And_rm64_imm8, sp, -16));
        asm.put(Instruction::with2(Code::Sub_rm64_imm8, sp, 16));
        asm.put(Instruction::with2(Code::Mov_rm64_r64, at(sp, 0), ours));
        asm.put(Instruction::with1(Code::Call_rm64, function));
        asm.put(Instruction::with2(Code::Mov_r64_rm64, sp, at(sp, 0)));
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

//! Rounding to nearest with denormals, whatever the caller's thread has chosen.
//!
//! A program in C may have told its thread to flush denormals. The function looks at the control register first; if that
//! is not as it has to be, it sets it, calls itself and restores it.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};

use super::{Assembler, Label};

/// All exceptions masked, nothing else. Below are the flags of exceptions that there were.
const DEFAULT: i32 = 0x1f80;
const FLAGS: i32 = 0x3f;

/// Where the function's body is, and where code belongs that sets the mode.
pub(super) struct Labels {
    body: Label,
    other: Label,
}

fn stack(at: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ_size(Register::RSP, at, 1)
}

/// Begins the function: goes on behind it if the mode is right.
pub(super) fn check(asm: &mut Assembler<'_>) -> Labels {
    let labels = Labels { body: asm.label(), other: asm.label() };
    // Below the stack pointer is a red zone that nobody else writes.
    let (word, mode) = (stack(-4), Register::EAX);
    asm.put(Instruction::with1(Code::Stmxcsr_m32, word));
    asm.put(Instruction::with2(Code::Mov_r32_rm32, mode, word));
    asm.put(Instruction::with2(Code::And_EAX_imm32, mode, !FLAGS));
    asm.put(Instruction::with2(Code::Cmp_EAX_imm32, mode, DEFAULT));
    asm.jump_if(ConditionCode::ne, labels.other);
    asm.bind(labels.body);
    labels
}

/// Sets the mode around a call of the body.
pub(super) fn set_and_call(asm: &mut Assembler<'_>, labels: Labels) {
    let sp = Register::RSP;
    asm.bind(labels.other);
    asm.put(Instruction::with2(Code::Sub_rm64_imm8, sp, 24));
    asm.put(Instruction::with1(Code::Stmxcsr_m32, stack(0)));
    asm.put(Instruction::with2(Code::Mov_rm32_imm32, stack(8), DEFAULT));
    asm.put(Instruction::with1(Code::Ldmxcsr_m32, stack(8)));
    asm.call(labels.body);
    asm.put(Instruction::with1(Code::Ldmxcsr_m32, stack(0)));
    asm.put(Instruction::with2(Code::Add_rm64_imm8, sp, 24));
    asm.put(Ok(Instruction::with(Code::Retnq)));
}

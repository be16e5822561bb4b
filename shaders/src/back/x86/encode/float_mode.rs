//! Floating-point mode of generated code: round to nearest, denormals preserved, independent of the caller's MXCSR.
//!
//! An application may have set flush-to-zero on its thread. The prologue compares MXCSR with the required mode; on a
//! mismatch it sets the mode, calls the body and restores the old value.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};

use super::{Assembler, Label};

/// All exceptions masked, nothing else. `FLAGS` are the sticky exception flags, which are ignored.
const DEFAULT: i32 = 0x1f80;
const FLAGS: i32 = 0x3f;

/// The function's body, and the code that sets the mode.
pub(super) struct Labels {
    body: Label,
    other: Label,
}

fn stack(at: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ_size(Register::RSP, at, 1)
}

/// Emits the check at the function's entry; falls through to the body if the mode is right.
pub(super) fn check(asm: &mut Assembler<'_>) -> Labels {
    let labels = Labels { body: asm.label(), other: asm.label() };
    // The red zone below the stack pointer is free for a leaf function.
    let (word, mode) = (stack(-4), Register::EAX);
    asm.put(Instruction::with1(Code::Stmxcsr_m32, word));
    asm.put(Instruction::with2(Code::Mov_r32_rm32, mode, word));
    asm.put(Instruction::with2(Code::And_EAX_imm32, mode, !FLAGS));
    asm.put(Instruction::with2(Code::Cmp_EAX_imm32, mode, DEFAULT));
    asm.jump_if(ConditionCode::ne, labels.other);
    asm.bind(labels.body);
    labels
}

/// Emits the code that sets the mode around a call of the body.
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

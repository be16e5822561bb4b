//! Calls that preserve all registers (as LLVM's `preserve_all`), for cold paths: the surrounding code need not spill
//! its live values.
//!
//! All such calls of a function go through one shared stub after its code, which saves every caller-saved register on
//! the stack. That takes about a hundred cycles, little compared with the callee.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};

use super::frame::Frame;
use super::{Assembler, Label};
use crate::back::x86::Isa;

/// Caller-saved general registers, in the order in which they are pushed.
const GENERAL: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// Offsets from the stack pointer: vectors, masks, the old stack pointer.
const MASKS_AT: i32 = 32 * 64;
const OLD_AT: i32 = MASKS_AT + 64;
const BYTES: i32 = OLD_AT + 64;

/// Bytes between that area and the frame: general registers, the return address, the routine's number.
const KEPT_BYTES: i32 = 8 * (GENERAL.len() as i32 + 2);

/// Emits a call of routine `routine` through the stub: the context is in the first argument register, the rows are in
/// the second.
pub(super) fn call(asm: &mut Assembler<'_>, keeper: Label, routine: u32) {
    asm.put(Instruction::with1(Code::Pushq_imm32, routine.cast_signed()));
    asm.call(keeper);
    asm.put(Instruction::with2(Code::Add_rm64_imm8, Register::RSP, 8));
}

/// Emits the stub.
pub(super) fn write(asm: &mut Assembler<'_>, keeper: Label, isa: Isa, frame: &Frame) {
    let (sp, old) = (Register::RSP, Register::RAX);
    let at = |place: i32| MemoryOperand::with_base_displ(sp, place.into());
    let (vectors, bytes, first) = match isa {
        Isa::Avx512 => (32, 64, Register::ZMM0),
        Isa::Avx2 => (16, 32, Register::YMM0),
    };
    let (to_memory, to_register) = match isa {
        Isa::Avx512 => (Code::EVEX_Vmovups_zmmm512_k1z_zmm, Code::EVEX_Vmovups_zmm_k1z_zmmm512),
        Isa::Avx2 => (Code::VEX_Vmovups_ymmm256_ymm, Code::VEX_Vmovups_ymm_ymmm256),
    };
    let mask = |number: usize| (Register::K0 + number as u32, at(MASKS_AT + 8 * number as i32));
    let masks = || isa.mask_registers().map(mask);
    let end = asm.label();
    asm.bind(keeper);
    for reg in GENERAL {
        asm.put(Instruction::with1(Code::Push_r64, reg));
    }
    asm.put(Instruction::with2(Code::Mov_r64_rm64, old, sp));
    asm.put(Instruction::with2(Code::Sub_rm64_imm32, sp, BYTES));
    asm.put(Instruction::with2(Code::And_rm64_imm8, sp, -64));
    asm.put(Instruction::with2(Code::Mov_rm64_r64, at(OLD_AT), old));
    for number in 0..vectors {
        asm.put(Instruction::with2(to_memory, at(number * bytes), first + number as u32));
    }
    for (mask, at) in masks() {
        asm.put(Instruction::with2(Code::VEX_Kmovq_m64_kr, at, mask));
    }
    // Above the general registers are the return address and the routine's number.
    let number = MemoryOperand::with_base_displ(old, i64::from(KEPT_BYTES - 8));
    asm.put(Instruction::with2(Code::Mov_r32_rm32, Register::EDX, number));
    asm.put(Ok(Instruction::with(Code::VEX_Vzeroupper)));
    frame.call(asm, (old, KEPT_BYTES));
    asm.put(Instruction::with2(Code::Test_rm32_r32, Register::EAX, Register::EAX));
    asm.jump_if(ConditionCode::ne, end);
    for number in 0..vectors {
        asm.put(Instruction::with2(to_register, first + number as u32, at(number * bytes)));
    }
    for (mask, at) in masks() {
        asm.put(Instruction::with2(Code::VEX_Kmovq_kr_km64, mask, at));
    }
    asm.put(Instruction::with2(Code::Mov_r64_rm64, sp, at(OLD_AT)));
    for reg in GENERAL.into_iter().rev() {
        asm.put(Instruction::with1(Code::Pop_r64, reg));
    }
    asm.put(Ok(Instruction::with(Code::Retnq)));
    // The kernel ends: the stack pointer becomes the frame's again; the saved registers are not restored.
    asm.bind(end);
    asm.put(Instruction::with2(Code::Mov_r64_rm64, sp, at(OLD_AT)));
    asm.put(Instruction::with2(Code::Add_rm64_imm32, sp, KEPT_BYTES));
    asm.jump(asm.stopped());
}

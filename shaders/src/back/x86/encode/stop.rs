//! The return value of a kernel that was stopped in a loop: packed into `rax`, decoded by `call.rs`.

use iced_x86::{Code, Instruction, Register};
use regalloc2::{Allocation, PReg, RegClass};

use super::super::Isa;
use super::frame::Frame;
use super::{Assembler, moves, regs};

/// `rax`, the return register.
const RESULT: usize = 0;

/// Emits the code that ends the kernel; it may clobber every register that it no longer reads. Layout of `rax` from bit
/// 0: the loop's word plus 2 (32 bits), the active lanes (16), the subgroup's number (16).
pub(super) fn write(
    asm: &mut Assembler<'_>,
    (at, number, mask): (u32, Option<u16>, Option<u16>),
    operands: &[Allocation],
    isa: Isa,
    frame: &Frame,
) {
    let (rax, eax, rdx, edx) = (Register::RAX, Register::EAX, Register::RDX, Register::EDX);
    let mut operands = operands;
    match (number, operands) {
        (None, [first, rest @ ..]) => {
            let result = Allocation::reg(PReg::new(RESULT, RegClass::Int));
            moves::write(*first, result, isa, frame, asm);
            operands = rest;
        }
        _ => set(asm, eax, number.unwrap_or(0).into()),
    }
    match (mask, operands) {
        (None, [mask]) => match (mask.as_reg(), mask.as_stack()) {
            (None, Some(slot)) => asm.put(Instruction::with2(Code::Movzx_r32_rm16, edx, frame.slot(slot))),
            (reg, _) => {
                let mask = reg.map_or(Register::K0, |reg| regs::full(reg, Register::ZMM0));
                asm.put(Instruction::with2(Code::VEX_Kmovw_r32_kr, edx, mask));
            }
        },
        (None, &[low, high]) => {
            // The temporary must not clobber the other half.
            let other = |half: Allocation| {
                let used = half.as_reg().is_some_and(|reg| reg.hw_enc() == 0);
                if used { Register::YMM1 } else { Register::YMM0 }
            };
            lanes(asm, edx, low, other(high), frame);
            lanes(asm, Register::ECX, high, Register::YMM0, frame);
            asm.put(Instruction::with2(Code::Shl_rm32_imm8, Register::ECX, 8));
            asm.put(Instruction::with2(Code::Or_r32_rm32, edx, Register::ECX));
        }
        _ => set(asm, edx, mask.unwrap_or(0).into()),
    }
    asm.put(Instruction::with2(Code::Shl_rm32_imm8, eax, 16));
    asm.put(Instruction::with2(Code::Or_r32_rm32, eax, edx));
    asm.put(Instruction::with2(Code::Shl_rm64_imm8, rax, 32));
    set(asm, edx, at.saturating_add(2));
    asm.put(Instruction::with2(Code::Or_r64_rm64, rax, rdx));
    asm.jump(asm.stopped_at());
}

fn set(asm: &mut Assembler<'_>, reg: Register, value: u32) {
    asm.put(Instruction::with2(Code::Mov_r32_imm32, reg, value));
}

/// Moves the bits of half a mask to `into`; a half on the stack is loaded into `through` first.
fn lanes(asm: &mut Assembler<'_>, into: Register, half: Allocation, through: Register, frame: &Frame) {
    let mut reg = half.as_reg().map_or(through, |reg| regs::full(reg, Register::YMM0));
    if let Some(slot) = half.as_stack() {
        asm.put(Instruction::with2(Code::VEX_Vmovaps_ymm_ymmm256, through, frame.slot(slot)));
        reg = through;
    }
    asm.put(Instruction::with2(Code::VEX_Vmovmskps_r32_ymm, into, reg));
}

//! Moves inserted by the register allocator.

use iced_x86::{Code, Instruction};
use regalloc2::{Allocation, RegClass};

use super::super::Isa;
use super::frame::Frame;
use super::{Assembler, regs};

/// Opcodes: register to register, load from the stack, store to the stack.
fn opcodes(class: RegClass, isa: Isa) -> [Code; 3] {
    match (class, isa) {
        (RegClass::Int, _) => [Code::Mov_r64_rm64, Code::Mov_r64_rm64, Code::Mov_rm64_r64],
        (RegClass::Float, Isa::Avx512) => [
            Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512,
            Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512,
            Code::EVEX_Vmovdqa32_zmmm512_k1z_zmm,
        ],
        (RegClass::Float, Isa::Avx2) => {
            [Code::VEX_Vmovaps_ymm_ymmm256, Code::VEX_Vmovaps_ymm_ymmm256, Code::VEX_Vmovaps_ymmm256_ymm]
        }
        (RegClass::Vector, _) => [Code::VEX_Kmovw_kr_km16, Code::VEX_Kmovw_kr_km16, Code::VEX_Kmovw_m16_kr],
    }
}

/// Emits one move; the allocator never moves from stack to stack.
pub(super) fn write(from: Allocation, to: Allocation, isa: Isa, frame: &Frame, asm: &mut Assembler<'_>) {
    let vector = isa.vector_register();
    match (from.as_reg(), to.as_reg()) {
        (Some(from), Some(to)) => {
            let [code, ..] = opcodes(to.class(), isa);
            asm.put(Instruction::with2(code, regs::full(to, vector), regs::full(from, vector)));
        }
        (Some(from), None) => {
            let [_, _, code] = opcodes(from.class(), isa);
            if let Some(slot) = to.as_stack() {
                asm.put(Instruction::with2(code, frame.slot(slot), regs::full(from, vector)));
            }
        }
        (None, Some(to)) => {
            let [_, code, _] = opcodes(to.class(), isa);
            if let Some(slot) = from.as_stack() {
                asm.put(Instruction::with2(code, regs::full(to, vector), frame.slot(slot)));
            }
        }
        (None, None) => unreachable!("a move from stack to stack"),
    }
}

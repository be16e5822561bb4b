//! Extracts 128-bit lanes of a vector, and words of them into general registers: cheaper than through memory.

use iced_x86::{Code, Instruction, Register};

use super::Isa;
use super::encode::{Assembler, Regs};

/// A vector in the slots of its lower and upper half; the same slot twice if one register holds all 16 lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorRegisters {
    pub isa: Isa,
    pub vector: [u8; 2],
    /// The slot of a temporary vector register (clobbered).
    pub temp: u8,
}

impl VectorRegisters {
    /// Lanes `4 * number` to `4 * number + 3`: extracted into the temporary, or in place if they are the lowest of a
    /// register.
    pub(super) fn lane128(self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) -> Register {
        let half = self.vector[usize::from(number / 2)];
        let temp = regs.xmm(self.temp);
        match (self.isa, number) {
            (Isa::Avx512, 0) => return regs.xmm(half),
            (Isa::Avx512, _) => {
                let code = Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8;
                asm.put(Instruction::with3(code, temp, regs.zmm(half), i32::from(number)));
            }
            (Isa::Avx2, 0 | 2) => return regs.xmm(half),
            (Isa::Avx2, _) => {
                asm.put(Instruction::with3(Code::VEX_Vextracti128_xmmm128_ymm_imm8, temp, regs.ymm(half), 1));
            }
        }
        temp
    }

    /// Moves the two halves of a 128-bit lane into general registers.
    pub(super) fn split(self, asm: &mut Assembler<'_>, lane128: Register, [low, high]: [Register; 2]) {
        let [first, second] = match self.isa {
            Isa::Avx512 => [Code::EVEX_Vmovq_rm64_xmm, Code::EVEX_Vpextrq_rm64_xmm_imm8],
            Isa::Avx2 => [Code::VEX_Vmovq_rm64_xmm, Code::VEX_Vpextrq_rm64_xmm_imm8],
        };
        asm.put(Instruction::with2(first, low, lane128));
        asm.put(Instruction::with3(second, high, lane128, 1));
    }

    /// Stores the vector to the scratch area.
    pub(super) fn keep(self, regs: Regs<'_>, asm: &mut Assembler<'_>, at: i32) {
        match self.isa {
            Isa::Avx512 => {
                let place = asm.scratch(at, false);
                let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
                asm.put(Instruction::with2(store, place, regs.zmm(self.vector[0])));
            }
            Isa::Avx2 => {
                for (half, at) in self.vector.into_iter().zip([at, at + 32]) {
                    let place = asm.scratch(at, false);
                    asm.put(Instruction::with2(Code::VEX_Vmovdqu_ymmm256_ymm, place, regs.ymm(half)));
                }
            }
        }
    }
}

//! Stores of one word for all lanes.

use iced_x86::{Code, ConditionCode, Instruction, Register};
use regalloc2::Operand;

use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Expand, InstKind};
use super::super::registers::OperandSlots;
use super::super::subword::put;
use super::super::uniform::UniformPlace;
use super::super::{Result, Select};
use super::Avx512;
use crate::ir::Width;
use crate::simd::{Address, Type, Value};

impl Select<'_, Avx512> {
    /// Stores the word of the last active lane, if there is one and the address is in bounds.
    pub(super) fn store_uniform(&mut self, width: Width, address: &Address, value: Value, mask: Value) -> Result {
        let mask = if self.is_all(mask) { None } else { Some(self.lanes(mask)?) };
        let scalar = self.kernel.ty(value) == Type::S32;
        let value = if scalar { self.reg(value)? } else { self.lanes(value)? };
        let checked = self.address(address)?;
        let (word, moved) = (self.general(), self.lanes_reg());
        let mut slots = OperandSlots::default();
        let store = UniformStore {
            width,
            value: (slots.add(Operand::reg_use(value)), scalar),
            mask: mask.map(|mask| slots.add(Operand::reg_use(mask))),
            place: UniformPlace::new(&checked, &mut slots),
            word: slots.add(Operand::reg_temp(word)),
            moved: slots.add(Operand::reg_temp(moved)),
        };
        self.code.push(InstKind::Sequence(Box::new(store)), &slots);
        Ok(())
    }
}

/// Slots of the operands.
#[derive(Debug)]
struct UniformStore {
    width: Width,
    /// The slot, and whether it is a scalar.
    value: (u8, bool),
    mask: Option<u8>,
    place: UniformPlace,
    word: u8,
    moved: u8,
}

impl Expand for UniformStore {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let done = asm.label();
        let word = regs.gpr32(self.word);
        if let Some(mask) = self.mask {
            asm.put(Instruction::with2(Code::VEX_Kmovw_r32_kr, word, regs.mask(mask)));
            asm.put(Instruction::with2(Code::Test_rm32_r32, word, word));
            asm.jump_if(ConditionCode::e, done);
        }
        if self.place.check(regs, asm, done) {
            let value = self.word_to_store(regs, asm);
            put(asm, self.width, self.place.memory(regs), value);
        }
        asm.bind(done);
    }
}

impl UniformStore {
    /// The register with the word; `word` holds the mask if there is one.
    fn word_to_store(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) -> Register {
        let (value, scalar) = self.value;
        if scalar {
            return regs.gpr32(value);
        }
        let (word, moved) = (regs.gpr32(self.word), self.moved);
        if self.mask.is_some() {
            asm.put(Instruction::with2(Code::Bsr_r32_rm32, word, word));
            asm.put(Instruction::with2(Code::EVEX_Vmovd_xmm_rm32, regs.xmm(moved), word));
            let permute = Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32;
            asm.put(Instruction::with3(permute, regs.zmm(moved), regs.zmm(moved), regs.zmm(value)));
            asm.put(Instruction::with2(Code::EVEX_Vmovd_rm32_xmm, word, regs.xmm(moved)));
        } else {
            let lane128 = Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8;
            asm.put(Instruction::with3(lane128, regs.xmm(moved), regs.zmm(value), 3));
            asm.put(Instruction::with3(Code::EVEX_Vpextrd_rm32_xmm_imm8, word, regs.xmm(moved), 3));
        }
        word
    }
}

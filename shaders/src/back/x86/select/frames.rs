//! Vectors in frames, and filling memory with zeros.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;

use super::super::Isa;
use super::super::encode::{Assembler, Regs};
use super::super::vcode::{AddressRegisters, Build, Expand, InstKind};
use super::{Result, Select, VectorIsa};
use crate::simd::{Inst, Type, Value};

impl<V: VectorIsa> Select<'_, V> {
    /// Loads a vector or mask from a frame.
    pub(super) fn vector_frame_load(&mut self, inst: Inst, ty: Type, frame: Value, at: u32) -> Result {
        let place = Self::at(self.reg(frame)?, at.cast_signed());
        if ty == Type::Mask {
            V::load_mask(self, inst, &place);
            return Ok(());
        }
        let result = V::define(self, self.kernel.results[inst][0]);
        self.load_vector(result, &place);
        Ok(())
    }

    /// Loads contiguous words.
    pub(super) fn load_vector(&mut self, result: V::Registers, place: &AddressRegisters) {
        for (&reg, place) in result.as_ref().iter().zip(self.register_addresses(place)) {
            let build = Build::new(V::ISA.vectors().load).def(reg, V::ISA.view());
            build.at(&place).push(&mut self.code);
        }
    }

    /// The places of a vector's registers in memory.
    pub(super) fn register_addresses(
        &self,
        first: &AddressRegisters,
    ) -> impl Iterator<Item = AddressRegisters> + use<V> {
        let first = *first;
        (0..).map(move |number| AddressRegisters { disp: first.disp + number * V::ISA.vector_bytes(), ..first })
    }

    /// Stores a vector or mask to a frame.
    pub(super) fn vector_frame_store(&mut self, frame: Value, at: u32, value: Value) -> Result {
        let place = Self::at(self.reg(frame)?, at.cast_signed());
        if self.kernel.ty(value) == Type::Mask {
            return V::store_mask(self, &place, value);
        }
        let value = V::registers(self, value)?;
        for (&reg, place) in value.as_ref().iter().zip(self.register_addresses(&place)) {
            let build = Build::new(V::ISA.vectors().store).at(&place);
            build.reads(reg, V::ISA.view()).push(&mut self.code);
        }
        Ok(())
    }

    /// Fills memory with zeros.
    pub(super) fn zero(&mut self, base: Value, bytes: u32) -> Result {
        let base = self.reg(base)?;
        let [zeros, count] = V::zeros_and_counter(self);
        let operands = [Operand::reg_use(base), Operand::reg_use(zeros), Operand::reg_temp(count)];
        self.code.push(InstKind::Sequence(Box::new(Zero { isa: V::ISA, bytes })), &operands);
        Ok(())
    }
}

/// Stores zeros (operand 1) from an address (operand 0) on; operand 2 counts.
#[derive(Debug)]
struct Zero {
    isa: Isa,
    bytes: u32,
}

/// Stores by which loops are unrolled.
const MAX_UNROLLED: u32 = 8;

impl Expand for Zero {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (base, zeros, count) = (regs.gpr(0), regs.view(1, self.isa.view()), regs.gpr(2));
        let store = self.isa.vectors().store;
        let step = self.isa.vector_bytes().cast_unsigned();
        let whole = self.bytes / step * step;
        if whole <= MAX_UNROLLED * step {
            for at in (0..whole).step_by(step as usize) {
                let place = MemoryOperand::with_base_displ_size(base, i64::from(at), 1);
                asm.put(Instruction::with2(store, place, zeros));
            }
        } else {
            let again = asm.label();
            let place = MemoryOperand::with_base_index_scale(base, count, 1);
            asm.put(Instruction::with2(Code::Xor_r32_rm32, regs.gpr32(2), regs.gpr32(2)));
            asm.bind(again);
            asm.put(Instruction::with2(store, place, zeros));
            asm.put(Instruction::with2(Code::Add_rm64_imm8, count, step.cast_signed()));
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(2), whole.cast_signed()));
            asm.jump_if(ConditionCode::b, again);
        }
        let (ymm, xmm) = (regs.ymm(1), regs.xmm(1));
        let parts: &[(u32, Code, Register)] = match self.isa {
            Isa::Avx512 => &[
                (32, Code::EVEX_Vmovdqu32_ymmm256_k1z_ymm, ymm),
                (16, Code::EVEX_Vmovdqu32_xmmm128_k1z_xmm, xmm),
                (4, Code::EVEX_Vmovd_rm32_xmm, xmm),
            ],
            Isa::Avx2 => &[(16, Code::VEX_Vmovups_xmmm128_xmm, xmm), (4, Code::VEX_Vmovd_rm32_xmm, xmm)],
        };
        let mut at = whole;
        for &(step, code, reg) in parts {
            while self.bytes - at >= step {
                let place = MemoryOperand::with_base_displ_size(base, i64::from(at), 1);
                asm.put(Instruction::with2(code, place, reg));
                at += step;
            }
        }
    }
}

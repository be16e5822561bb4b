//! Vectors and masks in frames, and filling memory with zeros.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;

use super::super::super::CompileError;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::super::Select;
use crate::simd::{Inst, Type, Value};

impl Select<'_> {
    pub(super) fn vector_frame_load(
        &mut self,
        inst: Inst,
        ty: Type,
        frame: Value,
        at: u32,
    ) -> Result<(), CompileError> {
        let place = Self::at(self.reg(frame)?, at.cast_signed());
        let result = self.define(inst);
        let (code, view) = match ty {
            Type::Mask => (Code::VEX_Kmovw_kr_km16, View::Mask),
            _ => (Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, View::Zmm),
        };
        Build::new(code).def(result, view).at(&place).push(&mut self.code);
        Ok(())
    }

    pub(super) fn vector_frame_store(&mut self, frame: Value, at: u32, value: Value) -> Result<(), CompileError> {
        let place = Self::at(self.reg(frame)?, at.cast_signed());
        let (code, view) = match self.kernel.ty(value) {
            Type::Mask => (Code::VEX_Kmovw_m16_kr, View::Mask),
            _ => (Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, View::Zmm),
        };
        let value = self.reg(value)?;
        Build::new(code).at(&place).reads(value, view).push(&mut self.code);
        Ok(())
    }

    /// Fills memory with zeros.
    pub(super) fn zero(&mut self, base: Value, bytes: u32) -> Result<(), CompileError> {
        let base = self.reg(base)?;
        let (zeros, count) = (self.lanes_reg(), self.general());
        self.set_lanes(zeros, 0);
        let operands = [Operand::reg_use(base), Operand::reg_use(zeros), Operand::reg_temp(count)];
        self.code.push(Kind::Sequence(Box::new(Zero { bytes })), &operands);
        Ok(())
    }
}

/// Stores zeros (operand 1) from an address (operand 0) on; operand 2 counts.
#[derive(Debug)]
struct Zero {
    bytes: u32,
}

impl Expand for Zero {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        const UNROLLED: u32 = 512;
        let (base, zeros, count) = (regs.gpr(0), regs.zmm(1), regs.gpr(2));
        let store = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
        let whole = self.bytes / 64 * 64;
        if whole <= UNROLLED {
            for at in (0..whole).step_by(64) {
                let place = MemoryOperand::with_base_displ_size(base, i64::from(at), 1);
                asm.put(Instruction::with2(store, place, zeros));
            }
        } else {
            let again = asm.label();
            let place = MemoryOperand::with_base_index_scale(base, count, 1);
            asm.put(Instruction::with2(Code::Xor_r32_rm32, regs.gpr32(2), regs.gpr32(2)));
            asm.bind(again);
            asm.put(Instruction::with2(store, place, zeros));
            asm.put(Instruction::with2(Code::Add_rm64_imm8, count, 64));
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(2), whole.cast_signed()));
            asm.jump_if(ConditionCode::b, again);
        }
        let mut at = whole;
        let narrow: [(u32, Code, Register); 3] = [
            (32, Code::EVEX_Vmovdqu32_ymmm256_k1z_ymm, regs.ymm(1)),
            (16, Code::EVEX_Vmovdqu32_xmmm128_k1z_xmm, regs.xmm(1)),
            (4, Code::EVEX_Vmovd_rm32_xmm, regs.xmm(1)),
        ];
        for (step, code, reg) in narrow {
            while self.bytes - at >= step {
                let place = MemoryOperand::with_base_displ_size(base, i64::from(at), 1);
                asm.put(Instruction::with2(code, place, reg));
                at += step;
            }
        }
    }
}

//! Vectors and masks in frames, and filling memory with zeros.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;

use super::super::super::CompileError;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::Halves;
use crate::simd::{Inst, Type, Value};

impl Halves<'_, '_> {
    /// Masks are kept as bits.
    pub(super) fn vector_frame_load(
        &mut self,
        inst: Inst,
        ty: Type,
        frame: Value,
        at: u32,
    ) -> Result<(), CompileError> {
        let (frame, at) = (self.reg(frame)?, at.cast_signed());
        if ty == Type::Mask {
            let bits = self.lanes_reg();
            let build = Build::new(Code::VEX_Vpbroadcastd_ymm_xmmm32).def(bits, View::Ymm);
            build.at(&Self::place(frame, at)).push(&mut self.code);
            let mask = self.mask_of_bits([bits, bits]);
            self.bind(inst, mask);
            return Ok(());
        }
        let result = [at, at + 32].map(|at| {
            let reg = self.lanes_reg();
            let build = Build::new(Code::VEX_Vmovups_ymm_ymmm256).def(reg, View::Ymm);
            build.at(&Self::place(frame, at)).push(&mut self.code);
            reg
        });
        self.bind(inst, result);
        Ok(())
    }

    pub(super) fn vector_frame_store(&mut self, frame: Value, at: u32, value: Value) -> Result<(), CompileError> {
        let (frame, at) = (self.reg(frame)?, at.cast_signed());
        if self.kernel.ty(value) == Type::Mask {
            let bits = self.mask_bits(value)?;
            let build = Build::new(Code::Mov_rm32_r32).at(&Self::place(frame, at)).reads(bits, View::Dword);
            build.push(&mut self.code);
            return Ok(());
        }
        let value = self.pair(value)?;
        for (half, at) in value.into_iter().zip([at, at + 32]) {
            let build = Build::new(Code::VEX_Vmovups_ymmm256_ymm).at(&Self::place(frame, at));
            build.reads(half, View::Ymm).push(&mut self.code);
        }
        Ok(())
    }

    /// Fills memory with zeros.
    pub(super) fn zero(&mut self, base: Value, bytes: u32) -> Result<(), CompileError> {
        let base = self.reg(base)?;
        let count = self.general();
        let zeros = self.fill(0);
        let operands = [Operand::reg_use(base), Operand::reg_use(zeros[0]), Operand::reg_temp(count)];
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
        const UNROLLED: u32 = 256;
        const STEP: u32 = 32;
        let (base, zeros, count) = (regs.gpr(0), regs.ymm(1), regs.gpr(2));
        let store = Code::VEX_Vmovups_ymmm256_ymm;
        let whole = self.bytes / STEP * STEP;
        if whole <= UNROLLED {
            for at in (0..whole).step_by(STEP as usize) {
                let place = MemoryOperand::with_base_displ_size(base, i64::from(at), 1);
                asm.put(Instruction::with2(store, place, zeros));
            }
        } else {
            let again = asm.label();
            let place = MemoryOperand::with_base_index_scale(base, count, 1);
            asm.put(Instruction::with2(Code::Xor_r32_rm32, regs.gpr32(2), regs.gpr32(2)));
            asm.bind(again);
            asm.put(Instruction::with2(store, place, zeros));
            asm.put(Instruction::with2(Code::Add_rm64_imm8, count, STEP.cast_signed()));
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(2), whole.cast_signed()));
            asm.jump_if(ConditionCode::b, again);
        }
        let mut at = whole;
        let narrow: [(u32, Code, Register); 2] =
            [(16, Code::VEX_Vmovups_xmmm128_xmm, regs.xmm(1)), (4, Code::VEX_Vmovd_rm32_xmm, regs.xmm(1))];
        for (step, code, reg) in narrow {
            while self.bytes - at >= step {
                let place = MemoryOperand::with_base_displ_size(base, i64::from(at), 1);
                asm.put(Instruction::with2(code, place, reg));
                at += step;
            }
        }
    }
}

//! Conversions in lanes.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::CompileError;
use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx512;
use super::operand::Source;
use crate::ir::Op;
use crate::simd::{Inst, Value};

/// Rounds by the current mode, which is to nearest.
const NEAREST: Code = Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er;
const COMPARE: Code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;

impl Select<'_, Avx512> {
    pub(super) fn conversion(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        match op {
            Op::SIntToFloat => self.unary_lanes(inst, Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, args[0]),
            Op::UIntToFloat => self.unary_lanes(inst, Code::EVEX_Vcvtudq2ps_zmm_k1z_zmmm512b32_er, args[0]),
            Op::FloatToSInt => self.float_to_signed(inst, args[0]),
            Op::RoundToSInt => self.unary_lanes(inst, NEAREST, args[0]),
            Op::FloorToSInt => self.floor_to_signed(inst, args[0]),
            Op::FloatToUInt => self.float_to_unsigned(inst, args[0]),
            Op::HalfBits => self.float_to_half(inst, args[0]),
            Op::HalfFromBits => self.half_to_float(inst, args[0]),
            Op::RoundHalf => self.round_half(inst, args[0]),
            _ => Err(CompileError::Unsupported(op)),
        }
    }

    /// Out of range the instruction yields `i32::MIN`: correct below the range, replaced above it, zeroed for NaN.
    fn float_to_signed(&mut self, inst: Inst, arg: Value) -> Result {
        const ORDERED: u8 = 7;
        const NOT_LESS: u8 = 0x1d;
        let arg = self.lanes(arg)?;
        let (number, above, converted) = (self.mask_reg(), self.mask_reg(), self.lanes_reg());
        let build = Build::new(COMPARE).def(number, View::Mask).reads(arg, View::Zmm);
        self.push_with(build, Source::Reg(arg), Some(ORDERED));
        let build = Build::new(COMPARE).def(above, View::Mask).reads(arg, View::Zmm);
        self.push_with(build, Source::Word((2f32).powi(31).to_bits()), Some(NOT_LESS));
        let build = Build::new(Code::EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae).def(converted, View::Zmm);
        build.reads(arg, View::Zmm).mask(number).zeroing().push(&mut self.code);
        let memory =
            super::super::super::vcode::AddressingMode { broadcast: false, ..self.pool_word(i32::MAX.cast_unsigned()) };
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32).modify(result, converted, View::Zmm);
        build.memory(memory).mask(above).push(&mut self.code);
        Ok(())
    }

    /// With embedded rounding, which excludes a memory operand.
    fn floor_to_signed(&mut self, inst: Inst, arg: Value) -> Result {
        let arg = self.lanes(arg)?;
        let result = self.define_lanes(inst);
        Build::new(NEAREST).def(result, View::Zmm).reads(arg, View::Zmm).rounds_down().push(&mut self.code);
        Ok(())
    }

    /// Out of range the instruction yields `u32::MAX`: correct above the range. Numbers that are not positive become 0
    /// first.
    fn float_to_unsigned(&mut self, inst: Inst, arg: Value) -> Result {
        const GREATER: u8 = 0x1e;
        let arg = self.lanes(arg)?;
        let positive = self.mask_reg();
        let build = Build::new(COMPARE).def(positive, View::Mask).reads(arg, View::Zmm);
        self.push_with(build, Source::Word(0), Some(GREATER));
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vcvttps2udq_zmm_k1z_zmmm512b32_sae).def(result, View::Zmm);
        build.reads(arg, View::Zmm).mask(positive).zeroing().push(&mut self.code);
        Ok(())
    }

    /// The floats of a vector at half precision, in the lower half of a register.
    pub(super) fn as_halves(&mut self, arg: Value) -> Result<VReg> {
        const NEAREST: u8 = 0;
        let arg = self.lanes(arg)?;
        let halves = self.lanes_reg();
        let build = Build::new(Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae).def(halves, View::Ymm);
        build.reads(arg, View::Zmm).imm8(NEAREST).push(&mut self.code);
        Ok(halves)
    }

    fn float_to_half(&mut self, inst: Inst, arg: Value) -> Result {
        let halves = self.as_halves(arg)?;
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256).def(result, View::Zmm);
        build.reads(halves, View::Ymm).push(&mut self.code);
        Ok(())
    }

    fn half_to_float(&mut self, inst: Inst, arg: Value) -> Result {
        let arg = self.lanes(arg)?;
        let halves = self.lanes_reg();
        let build = Build::new(Code::EVEX_Vpmovdw_ymmm256_k1z_zmm).def(halves, View::Ymm);
        build.reads(arg, View::Zmm).push(&mut self.code);
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae).def(result, View::Zmm);
        build.reads(halves, View::Ymm).push(&mut self.code);
        Ok(())
    }
}

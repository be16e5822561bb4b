//! Conversions in lanes.

use iced_x86::Code;

use super::super::super::CompileError;
use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx2;
use super::compare::FLOATS;
use super::operand::RegisterPair;
use crate::ir::Op;
use crate::simd::Value;

const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const OR: Code = Code::VEX_Vpor_ymm_ymm_ymmm256;
const XOR: Code = Code::VEX_Vpxor_ymm_ymm_ymmm256;
const SUB: Code = Code::VEX_Vsubps_ymm_ymm_ymmm256;
const TRUNCATE: Code = Code::VEX_Vcvttps2dq_ymm_ymmm256;
/// Rounds by the current mode, which is to nearest.
const NEAREST: Code = Code::VEX_Vcvtps2dq_ymm_ymmm256;
/// Inexact exceptions of rounding do not matter: they are masked.
const DOWN: u8 = 0x9;
const AT_LEAST: u8 = 0x1d;
const TWO_31: u32 = 0x4f00_0000;
const TWO_32: u32 = 0x4f80_0000;

impl Select<'_, Avx2> {
    pub(super) fn conversion(&mut self, op: Op, args: &[Value]) -> Result<RegisterPair> {
        match op {
            Op::SIntToFloat => self.unary_lanes(Code::VEX_Vcvtdq2ps_ymm_ymmm256, args[0]),
            Op::UIntToFloat => self.unsigned_to_float(args[0]),
            Op::FloatToSInt => self.float_to_signed(args[0]),
            Op::RoundToSInt => self.unary_lanes(NEAREST, args[0]),
            Op::FloorToSInt => {
                let whole = self.round(DOWN, args[0])?;
                Ok(self.op1(NEAREST, whole))
            }
            Op::FloatToUInt => self.float_to_unsigned(args[0]),
            Op::HalfBits => self.float_to_half(args[0]),
            Op::HalfFromBits => self.half_to_float(args[0]),
            Op::RoundHalf => self.round_half(args[0]),
            _ => Err(CompileError::Unsupported(op)),
        }
    }

    /// The halves of the word become significands of `2^23` and `2^39`; their sum, without those powers, is rounded
    /// once.
    fn unsigned_to_float(&mut self, arg: Value) -> Result<RegisterPair> {
        const LOW: u32 = 0x4b00_0000;
        const HIGH: u32 = 0x5300_0000;
        const BOTH: u32 = 0x5300_0080;
        let arg = self.pair(arg)?;
        let [below, low_one, high_one, both] = [0xffff, LOW, HIGH, BOTH].map(|bits| self.word(bits));
        let low = self.op2(AND, arg, below);
        let low = self.op2(OR, low, low_one);
        let high = self.shifted(Code::VEX_Vpsrld_ymm_ymm_imm8, arg, 16);
        let high = self.op2(OR, high, high_one);
        let high = self.op2(SUB, high, both);
        Ok(self.op2(Code::VEX_Vaddps_ymm_ymm_ymmm256, high, low))
    }

    /// Out of range the instruction yields `i32::MIN`: correct below the range, complemented above it, zeroed for NaN.
    fn float_to_signed(&mut self, arg: Value) -> Result<RegisterPair> {
        const ORDERED: u8 = 7;
        let arg = self.pair(arg)?;
        let number = self.op(FLOATS, &[arg], arg.into(), Some(ORDERED));
        let bound = self.word(TWO_31);
        let above = self.op(FLOATS, &[arg], bound, Some(AT_LEAST));
        let converted = self.op1(TRUNCATE, arg);
        let saturated = self.op2(XOR, converted, above);
        Ok(self.op2(AND, saturated, number))
    }

    /// Numbers that are not positive become 0 first. From `2^31` on, `2^31` is subtracted before the conversion and
    /// added after it.
    fn float_to_unsigned(&mut self, arg: Value) -> Result<RegisterPair> {
        let arg = self.pair(arg)?;
        let [zero, middle, end] = [0, TWO_31, TWO_32].map(|bits| self.word(bits));
        // Yields the last operand if the first is NaN.
        let arg = self.op2(Code::VEX_Vmaxps_ymm_ymm_ymmm256, arg, zero);
        let large = self.op(FLOATS, &[arg], middle, Some(AT_LEAST));
        let less = self.op2(AND, large, middle);
        let rest = self.op2(SUB, arg, less);
        let converted = self.op1(TRUNCATE, rest);
        let top = self.shifted(Code::VEX_Vpslld_ymm_ymm_imm8, large, 31);
        let sum = self.op2(XOR, converted, top);
        let beyond = self.op(FLOATS, &[arg], end, Some(AT_LEAST));
        Ok(self.op2(OR, sum, beyond))
    }

    fn float_to_half(&mut self, arg: Value) -> Result<RegisterPair> {
        const NEAREST: u8 = 0;
        let arg = self.pair(arg)?;
        Ok(arg.map(|arg| {
            let (halves, words) = (self.lanes_reg(), self.lanes_reg());
            let build = Build::new(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8).def(halves, View::Xmm);
            build.reads(arg, View::Ymm).imm8(NEAREST).push(&mut self.code);
            let build = Build::new(Code::VEX_Vpmovzxwd_ymm_xmmm128).def(words, View::Ymm);
            build.reads(halves, View::Xmm).push(&mut self.code);
            words
        }))
    }

    /// Words are packed within 128-bit lanes, which must be reordered.
    fn half_to_float(&mut self, arg: Value) -> Result<RegisterPair> {
        const SORTED: u8 = 0xd8;
        let [low, high] = self.with_word(AND, arg, 0xffff)?;
        let (packed, sorted, upper) = (self.lanes_reg(), self.lanes_reg(), self.lanes_reg());
        let build = Build::new(Code::VEX_Vpackusdw_ymm_ymm_ymmm256).def(packed, View::Ymm);
        build.reads(low, View::Ymm).reads(high, View::Ymm).push(&mut self.code);
        let build = Build::new(Code::VEX_Vpermq_ymm_ymmm256_imm8).def(sorted, View::Ymm);
        build.reads(packed, View::Ymm).imm8(SORTED).push(&mut self.code);
        let build = Build::new(Code::VEX_Vextracti128_xmmm128_ymm_imm8).def(upper, View::Xmm);
        build.reads(sorted, View::Ymm).imm8(1).push(&mut self.code);
        Ok([sorted, upper].map(|halves| {
            let result = self.lanes_reg();
            let build = Build::new(Code::VEX_Vcvtph2ps_ymm_xmmm128).def(result, View::Ymm);
            build.reads(halves, View::Xmm).push(&mut self.code);
            result
        }))
    }
}

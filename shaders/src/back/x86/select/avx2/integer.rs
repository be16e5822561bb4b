//! Integer arithmetic on lanes.

use iced_x86::Code;

use super::super::{Result, Select};
use super::Avx2;
use super::operand::{RegisterPair, Source};
use crate::ir::op::{works_on_doubles, works_on_subwords};
use crate::ir::{Op, Type};
use crate::simd::Value;

const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const SUB: Code = Code::VEX_Vpsubd_ymm_ymm_ymmm256;
const SHIFT_RIGHT: Code = Code::VEX_Vpsrld_ymm_ymm_imm8;

impl Select<'_, Avx2> {
    /// An operation on vectors.
    pub(super) fn lane_op(&mut self, op: Op, args: &[Value]) -> Result<RegisterPair> {
        self.code.floats |= op.result() == Type::F32 || op.params().contains(&Type::F32);
        if works_on_doubles(op)
            && let Some(result) = self.double_op(op, args)?
        {
            return Ok(result);
        }
        if works_on_subwords(op)
            && let Some(result) = self.packed(op, args)?
        {
            return Ok(result);
        }
        if let Some((code, commutes)) = binary(op) {
            return self.binary(code, commutes, args);
        }
        match op {
            Op::Shl | Op::LShr | Op::AShr => self.shift_lanes(op, args),
            Op::UMulHigh => self.high_products(Code::VEX_Vpmuludq_ymm_ymm_ymmm256, args),
            Op::SMulHigh => self.high_products(Code::VEX_Vpmuldq_ymm_ymm_ymmm256, args),
            Op::INeg => {
                let zeros = self.fill(0);
                let arg = self.source(args[0])?;
                Ok(self.op2(SUB, zeros, arg))
            }
            Op::Not => self.with_word(Code::VEX_Vpxor_ymm_ymm_ymmm256, args[0], u32::MAX),
            Op::SAbs => self.unary_lanes(Code::VEX_Vpabsd_ymm_ymmm256, args[0]),
            Op::BitCount => self.bit_count(args[0]),
            Op::FindUMsb => self.highest_bit_lanes(args[0]),
            _ => match self.compare_lanes(op, args)? {
                Some(mask) => Ok(self.materialise(mask)),
                None => self.float_op(op, args),
            },
        }
    }

    pub(super) fn unary_lanes(&mut self, code: Code, arg: Value) -> Result<RegisterPair> {
        let arg = self.source(arg)?;
        Ok(self.op1(code, arg))
    }

    fn binary(&mut self, code: Code, commutes: bool, args: &[Value]) -> Result<RegisterPair> {
        let (mut a, mut b) = (args[0], args[1]);
        if commutes && self.is_memory(a) {
            (a, b) = (b, a);
        }
        let a = self.pair(a)?;
        let b = self.source(b)?;
        Ok(self.op2(code, a, b))
    }

    /// `arg op constant`.
    pub(super) fn with_word(&mut self, code: Code, arg: Value, bits: u32) -> Result<RegisterPair> {
        let arg = self.pair(arg)?;
        let word = self.word(bits);
        Ok(self.op2(code, arg, word))
    }

    /// Shifts lanes by a constant.
    pub(super) fn shifted(&mut self, code: Code, arg: RegisterPair, amount: u8) -> RegisterPair {
        self.op(code, &[], arg.into(), Some(amount))
    }

    fn shift_lanes(&mut self, op: Op, args: &[Value]) -> Result<RegisterPair> {
        let (by_lane, by_imm) = match op {
            Op::Shl => (Code::VEX_Vpsllvd_ymm_ymm_ymmm256, Code::VEX_Vpslld_ymm_ymm_imm8),
            Op::LShr => (Code::VEX_Vpsrlvd_ymm_ymm_ymmm256, SHIFT_RIGHT),
            _ => (Code::VEX_Vpsravd_ymm_ymm_ymmm256, Code::VEX_Vpsrad_ymm_ymm_imm8),
        };
        let arg = self.pair(args[0])?;
        if let Some(amount) = self.constant(args[1]) {
            return Ok(self.shifted(by_imm, arg, amount as u8 & 31));
        }
        if self.is_shift_amount(args[1]) {
            let amount = self.pair(args[1])?;
            return Ok(self.op2(by_lane, arg, amount));
        }
        let amount = self.with_word(AND, args[1], 31)?;
        Ok(self.op2(by_lane, arg, amount))
    }

    /// High halves of the 64-bit products: even and odd lanes separately, then combined.
    fn high_products(&mut self, multiply: Code, args: &[Value]) -> Result<RegisterPair> {
        const WIDE_SHIFT: Code = Code::VEX_Vpsrlq_ymm_ymm_imm8;
        const ODD_LANES: u8 = 0xaa;
        let (a, b) = (self.pair(args[0])?, self.pair(args[1])?);
        let [odd_a, odd_b] = [a, b].map(|pair| self.shifted(WIDE_SHIFT, pair, 32));
        let even = self.op2(multiply, a, b);
        let odd = self.op2(multiply, odd_a, odd_b);
        let even = self.shifted(WIDE_SHIFT, even, 32);
        Ok(self.op(Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8, &[even], odd.into(), Some(ODD_LANES)))
    }

    /// By a table of 16 entries for each nibble, then the sum of a word's bytes.
    fn bit_count(&mut self, arg: Value) -> Result<RegisterPair> {
        const COUNTS: [u32; 4] = [0x0201_0100, 0x0302_0201, 0x0302_0201, 0x0403_0302];
        let arg = self.pair(arg)?;
        let shifted = self.shifted(SHIFT_RIGHT, arg, 4);
        let digit = self.word(0x0f0f_0f0f);
        let digits = [arg, shifted].map(|bits| self.op2(AND, bits, digit));
        let disp = self.code.pool.vector(std::array::from_fn(|lane| COUNTS[lane % 4]));
        let table = self.op1(Code::VEX_Vmovaps_ymm_ymmm256, Source::Pool(disp, true));
        let [low, high] = digits.map(|digits| self.op2(Code::VEX_Vpshufb_ymm_ymm_ymmm256, table, digits));
        let counts = self.op2(Code::VEX_Vpaddb_ymm_ymm_ymmm256, low, high);
        let ones = self.word(0x0101_0101);
        let pairs = self.op2(Code::VEX_Vpmaddubsw_ymm_ymm_ymmm256, counts, ones);
        let ones = self.word(0x0001_0001);
        Ok(self.op2(Code::VEX_Vpmaddwd_ymm_ymm_ymmm256, pairs, ones))
    }

    /// The exponent of the number as a float. The bit below the highest is cleared first, so that rounding cannot reach
    /// the next power of two. Numbers with the sign bit yield more than 31, zero less than -1.
    fn highest_bit_lanes(&mut self, arg: Value) -> Result<RegisterPair> {
        let arg = self.pair(arg)?;
        let below = self.shifted(SHIFT_RIGHT, arg, 1);
        let cleared = self.op2(Code::VEX_Vpandn_ymm_ymm_ymmm256, below, arg);
        let float = self.op1(Code::VEX_Vcvtdq2ps_ymm_ymmm256, cleared);
        let exponent = self.shifted(SHIFT_RIGHT, float, 23);
        let [bias, min, max] = [127, u32::MAX, 31].map(|bits| self.word(bits));
        let number = self.op2(SUB, exponent, bias);
        let number = self.op2(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, number, min);
        Ok(self.op2(Code::VEX_Vpminsd_ymm_ymm_ymmm256, number, max))
    }
}

/// Operations that are one instruction, and whether they commute.
fn binary(op: Op) -> Option<(Code, bool)> {
    Some(match op {
        Op::IAdd => (Code::VEX_Vpaddd_ymm_ymm_ymmm256, true),
        Op::ISub => (SUB, false),
        Op::IMul => (Code::VEX_Vpmulld_ymm_ymm_ymmm256, true),
        Op::UMin => (Code::VEX_Vpminud_ymm_ymm_ymmm256, true),
        Op::UMax => (Code::VEX_Vpmaxud_ymm_ymm_ymmm256, true),
        Op::SMin => (Code::VEX_Vpminsd_ymm_ymm_ymmm256, true),
        Op::SMax => (Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, true),
        Op::And => (AND, true),
        Op::Or => (Code::VEX_Vpor_ymm_ymm_ymmm256, true),
        Op::Xor => (Code::VEX_Vpxor_ymm_ymm_ymmm256, true),
        Op::FAdd => (Code::VEX_Vaddps_ymm_ymm_ymmm256, true),
        Op::FSub => (Code::VEX_Vsubps_ymm_ymm_ymmm256, false),
        Op::FMul => (Code::VEX_Vmulps_ymm_ymm_ymmm256, true),
        Op::FDiv => (Code::VEX_Vdivps_ymm_ymm_ymmm256, false),
        _ => return None,
    })
}

//! Single-precision arithmetic: rounds to nearest and preserves denormals.

use iced_x86::Code;

use super::super::{Result, Select};
use super::Avx2;
use super::compare::{FLOATS, UNORDERED};
use super::operand::RegisterPair;
use crate::ir::Op;
use crate::simd::Value;

const MUL: Code = Code::VEX_Vmulps_ymm_ymm_ymmm256;
const SIGN: u32 = 0x8000_0000;

impl Select<'_, Avx2> {
    /// Operations on floats that are neither a single instruction nor a comparison.
    pub(super) fn float_op(&mut self, op: Op, args: &[Value]) -> Result<RegisterPair> {
        match op {
            Op::Fma => self.fma(args),
            Op::FNeg => self.with_word(Code::VEX_Vpxor_ymm_ymm_ymmm256, args[0], SIGN),
            Op::FAbs => self.with_word(Code::VEX_Vpand_ymm_ymm_ymmm256, args[0], !SIGN),
            Op::FMin => self.number_min(Code::VEX_Vminps_ymm_ymm_ymmm256, args),
            Op::FMax => self.number_min(Code::VEX_Vmaxps_ymm_ymm_ymmm256, args),
            Op::Sqrt => self.unary_lanes(Code::VEX_Vsqrtps_ymm_ymmm256, args[0]),
            Op::InverseSqrt => self.inverse_sqrt(args[0]),
            // Inexact exceptions of rounding do not matter: they are masked.
            Op::RoundEven => self.round(0x8, args[0]),
            Op::Floor => self.round(0x9, args[0]),
            Op::Ceil => self.round(0xa, args[0]),
            Op::Trunc => self.round(0xb, args[0]),
            _ => self.conversion(op, args),
        }
    }

    pub(super) fn round(&mut self, mode: u8, arg: Value) -> Result<RegisterPair> {
        let arg = self.source(arg)?;
        Ok(self.op(Code::VEX_Vroundps_ymm_ymmm256_imm8, &[], arg, Some(mode)))
    }

    /// One factor or the addend may be in memory; the result reuses the register of another operand. Signs of operands
    /// are part of the opcode.
    fn fma(&mut self, args: &[Value]) -> Result<RegisterPair> {
        let [mut a, mut b, c] = [args[0], args[1], args[2]].map(|arg| self.without_sign(arg));
        let signs = [a.1 != b.1, c.1];
        if self.is_memory(a.0) && !self.is_memory(b.0) {
            (a, b) = (b, a);
        }
        let add_last = !self.is_memory(b.0) && self.is_memory(c.0);
        let (tied, second, last) = if add_last { (a.0, b.0, c.0) } else { (c.0, a.0, b.0) };
        let (tied, second) = (self.pair(tied)?, self.pair(second)?);
        let last = self.source(last)?;
        Ok(self.modify_lanes(fma_code(signs, add_last), tied, second, last))
    }

    /// Minimum or maximum as `op/float.rs` defines it: the second operand if it is strictly beyond the first, or if the
    /// first is NaN.
    ///
    /// The instruction yields its last operand unless the other is strictly beyond it. With exchanged operands that is
    /// correct unless the first is NaN; without exchange it is correct unless the second is NaN or both are zeros.
    fn number_min(&mut self, code: Code, args: &[Value]) -> Result<RegisterPair> {
        let number = |value| self.constant(value).map(|bits| f32::from_bits(bits as u32)).filter(|x| !x.is_nan());
        let (first, second) = (number(args[0]), number(args[1]));
        if second.is_some_and(|second| second != 0.0) {
            let a = self.pair(args[0])?;
            let b = self.source(args[1])?;
            return Ok(self.op2(code, a, b));
        }
        let b = self.pair(args[1])?;
        if first.is_some() {
            let a = self.source(args[0])?;
            return Ok(self.op2(code, b, a));
        }
        let a = self.pair(args[0])?;
        let nan = self.op(FLOATS, &[a], a.into(), Some(UNORDERED));
        let lesser = self.op2(code, b, a);
        Ok(self.blend(nan, b.into(), lesser))
    }

    /// The hardware estimate `y` of 12 bits, refined by `y + hy(1/2 + 3h/8)` where `h` is `1 - ay²`; within 2 ULP. The
    /// instruction treats denormals as zeros, so they are scaled up first. If the step makes NaN of an estimate that is
    /// none, for 0 and infinity, the estimate is the result.
    fn inverse_sqrt(&mut self, arg: Value) -> Result<RegisterPair> {
        const LESS: u8 = 0x11;
        let arg = self.pair(arg)?;
        let [min, up, root] = [f32::MIN_POSITIVE, 16_777_216.0, 4096.0].map(|x: f32| self.word(x.to_bits()));
        let small = self.op(FLOATS, &[arg], min, Some(LESS));
        let scaled = self.op2(MUL, arg, up);
        let arg = self.blend(small, scaled.into(), arg);
        let estimate = self.op1(Code::VEX_Vrsqrtps_ymm_ymmm256, arg);
        let product = self.op2(MUL, arg, estimate);
        let [one, half] = [1f32, 0.5].map(|x| self.word(x.to_bits()));
        let error = self.modify_lanes(Code::VEX_Vfnmadd213ps_ymm_ymm_ymmm256, product, estimate, one);
        let factor = self.fill(0.375f32.to_bits());
        let factor = self.modify_lanes(Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, factor, error, half);
        let step = self.op2(MUL, error, estimate);
        let refined = self.modify_lanes(Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, step, factor, estimate.into());
        let bad = self.op(FLOATS, &[refined], refined.into(), Some(UNORDERED));
        let result = self.blend(bad, estimate.into(), refined);
        let scaled = self.op2(MUL, result, root);
        Ok(self.blend(small, scaled.into(), result))
    }
}

/// `±product ± addend`: the addend or a factor is the last operand.
fn fma_code([product, addend]: [bool; 2], add_last: bool) -> Code {
    let [factor_last_code, add_last_code] = match (product, addend) {
        (false, false) => [Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256, Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256],
        (false, true) => [Code::VEX_Vfmsub231ps_ymm_ymm_ymmm256, Code::VEX_Vfmsub213ps_ymm_ymm_ymmm256],
        (true, false) => [Code::VEX_Vfnmadd231ps_ymm_ymm_ymmm256, Code::VEX_Vfnmadd213ps_ymm_ymm_ymmm256],
        (true, true) => [Code::VEX_Vfnmsub231ps_ymm_ymm_ymmm256, Code::VEX_Vfnmsub213ps_ymm_ymm_ymmm256],
    };
    if add_last { add_last_code } else { factor_last_code }
}

//! Single-precision arithmetic: rounds to nearest and preserves denormals.

use iced_x86::Code;

use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx512;
use super::operand::Source;
use crate::ir::Op;
use crate::simd::{Inst, Value};

const COMPARE: Code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
const UNORDERED: u8 = 3;
const SIGN: u32 = 0x8000_0000;

impl Select<'_, Avx512> {
    /// Operations on floats that are neither a single instruction nor a comparison.
    pub(super) fn float_op(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        match op {
            Op::Fma => self.fma(inst, args),
            Op::FNeg => self.with_constant(inst, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, args[0], SIGN),
            Op::FAbs => self.with_constant(inst, Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, args[0], !SIGN),
            Op::FMin => self.number_min(inst, Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, args),
            Op::FMax => self.number_min(inst, Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae, args),
            Op::Sqrt => self.unary_lanes(inst, Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er, args[0]),
            Op::InverseSqrt => self.inverse_sqrt(inst, args[0]),
            // Inexact exceptions of rounding do not matter: they are masked.
            Op::RoundEven => self.round(inst, 0x8, args[0]),
            Op::Floor => self.round(inst, 0x9, args[0]),
            Op::Ceil => self.round(inst, 0xa, args[0]),
            Op::Trunc => self.round(inst, 0xb, args[0]),
            Op::Exponent => self.unary_lanes(inst, Code::EVEX_Vgetexpps_zmm_k1z_zmmm512b32_sae, args[0]),
            Op::Significand => {
                // The interval from ¾ to 1½; NaN for negative numbers.
                const THREE_QUARTERS_UNSIGNED: u8 = 0xf;
                let arg = self.source(args[0])?;
                let result = self.define_lanes(inst);
                let build = Build::new(Code::EVEX_Vgetmantps_zmm_k1z_zmmm512b32_imm8_sae).def(result, View::Zmm);
                self.push_with(build, arg, Some(THREE_QUARTERS_UNSIGNED));
                Ok(())
            }
            Op::IsInf => {
                const INFINITIES: u8 = 0x18;
                let arg = self.source(args[0])?;
                let result = self.define_lanes(inst);
                let build = Build::new(Code::EVEX_Vfpclassps_kr_k1_zmmm512b32_imm8).def(result, View::Mask);
                self.push_with(build, arg, Some(INFINITIES));
                Ok(())
            }
            _ => self.conversion(inst, op, args),
        }
    }

    fn round(&mut self, inst: Inst, mode: u8, arg: Value) -> Result {
        let arg = self.source(arg)?;
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae).def(result, View::Zmm);
        self.push_with(build, arg, Some(mode));
        Ok(())
    }

    /// One factor or the addend may be in memory; the result reuses the register of another operand, of one whose last
    /// use this is if there is one. Signs of operands are part of the opcode.
    fn fma(&mut self, inst: Inst, args: &[Value]) -> Result {
        let [mut a, mut b, c] = [args[0], args[1], args[2]].map(|arg| self.without_sign(arg));
        let signs = [a.1 != b.1, c.1];
        if self.is_memory(a.0) && !self.is_memory(b.0) {
            (a, b) = (b, a);
        }
        let [a, b, c] = [a.0, b.0, c.0];
        let [a_ends, b_ends, c_ends] = [a, b, c].map(|value| self.ends_here(value));
        let (form, tied, register, last) = if self.is_memory(b) {
            if a_ends && !c_ends && !self.is_memory(c) { (FmaForm::F132, a, c, b) } else { (FmaForm::F231, c, a, b) }
        } else if self.is_memory(c) {
            if b_ends && !a_ends { (FmaForm::F213, b, a, c) } else { (FmaForm::F213, a, b, c) }
        } else if c_ends || !a_ends && !b_ends {
            (FmaForm::F231, c, a, b)
        } else if a_ends {
            (FmaForm::F213, a, b, c)
        } else {
            (FmaForm::F213, b, a, c)
        };
        let [tied, register] = [self.lanes(tied)?, self.lanes(register)?];
        let last = self.source(last)?;
        let result = self.define_lanes(inst);
        let build = Build::new(fma_code(signs, form)).modify(result, tied, View::Zmm).reads(register, View::Zmm);
        self.push_with(build, last, None);
        Ok(())
    }

    /// Minimum or maximum as `op/float.rs` defines it: the second operand if it is strictly beyond the first, or if the
    /// first is NaN.
    ///
    /// The instruction yields its last operand unless the other is strictly beyond it. With exchanged operands that is
    /// correct unless the first is NaN; without exchange it is correct unless the second is NaN or both are zeros.
    fn number_min(&mut self, inst: Inst, code: Code, args: &[Value]) -> Result {
        let number = |value| self.constant(value).map(|bits| f32::from_bits(bits as u32)).filter(|x| !x.is_nan());
        let (first, second) = (number(args[0]), number(args[1]));
        if second.is_some_and(|second| second != 0.0) {
            let a = self.lanes(args[0])?;
            let b = self.source(args[1])?;
            let result = self.define_lanes(inst);
            self.push_with(Build::new(code).def(result, View::Zmm).reads(a, View::Zmm), b, None);
            return Ok(());
        }
        let b = self.lanes(args[1])?;
        if first.is_some() {
            let a = self.source(args[0])?;
            let result = self.define_lanes(inst);
            self.push_with(Build::new(code).def(result, View::Zmm).reads(b, View::Zmm), a, None);
            return Ok(());
        }
        let a = self.lanes(args[0])?;
        let (nan, lesser) = (self.mask_reg(), self.lanes_reg());
        let build = Build::new(COMPARE).def(nan, View::Mask).reads(a, View::Zmm).reads(a, View::Zmm);
        build.imm8(UNORDERED).push(&mut self.code);
        self.lanes3(code, lesser, b, a);
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vmovaps_zmm_k1z_zmmm512).modify(result, lesser, View::Zmm);
        build.reads(b, View::Zmm).mask(nan).push(&mut self.code);
        Ok(())
    }

    /// The hardware estimate `y` of 14 bits and one Newton step, `y + ½y(1 − (a·y)·y)`; within 2 ULP. The term that the
    /// step adds is NaN for 0 and infinity, for which the estimate is exact: the minimum instruction replaces the NaN.
    fn inverse_sqrt(&mut self, inst: Inst, arg: Value) -> Result {
        const MUL: Code = Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er;
        const FNMADD: Code = Code::EVEX_Vfnmadd213ps_zmm_k1z_zmm_zmmm512b32_er;
        // Greater than any error of the estimate.
        const LIMIT: f32 = 1.0 / 1024.0;
        let arg = self.lanes(arg)?;
        let [estimate, product, error, number, half] = std::array::from_fn(|_| self.lanes_reg());
        Build::new(Code::EVEX_Vrsqrt14ps_zmm_k1z_zmmm512b32)
            .def(estimate, View::Zmm)
            .reads(arg, View::Zmm)
            .push(&mut self.code);
        self.lanes3(MUL, product, arg, estimate);
        let build = Build::new(FNMADD).modify(error, product, View::Zmm).reads(estimate, View::Zmm);
        self.push_with(build, Source::Word(1f32.to_bits()), None);
        let build = Build::new(Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae).def(number, View::Zmm);
        self.push_with(build.reads(error, View::Zmm), Source::Word(LIMIT.to_bits()), None);
        let build = Build::new(MUL).def(half, View::Zmm).reads(estimate, View::Zmm);
        self.push_with(build, Source::Word(0.5f32.to_bits()), None);
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er).modify(result, half, View::Zmm);
        build.reads(number, View::Zmm).reads(estimate, View::Zmm).push(&mut self.code);
        Ok(())
    }
}

/// Which operands are factors, counted from 1; the remaining one is the addend. The first is also the result, and the
/// last may be in memory.
#[derive(Clone, Copy, Debug)]
enum FmaForm {
    F132,
    F213,
    F231,
}

/// `±product ± addend`.
fn fma_code([product, addend]: [bool; 2], form: FmaForm) -> Code {
    let [f132, f213, f231] = match (product, addend) {
        (false, false) => [
            Code::EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
        ],
        (false, true) => [
            Code::EVEX_Vfmsub132ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfmsub213ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfmsub231ps_zmm_k1z_zmm_zmmm512b32_er,
        ],
        (true, false) => [
            Code::EVEX_Vfnmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfnmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfnmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
        ],
        (true, true) => [
            Code::EVEX_Vfnmsub132ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfnmsub213ps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vfnmsub231ps_zmm_k1z_zmm_zmmm512b32_er,
        ],
    };
    match form {
        FmaForm::F132 => f132,
        FmaForm::F213 => f213,
        FmaForm::F231 => f231,
    }
}

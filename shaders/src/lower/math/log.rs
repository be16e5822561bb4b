//! Logarithms: the exponent plus a polynomial in the significand minus 1.

use super::emit::Emit;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let &[a] = args else { return None };
    match op {
        Op::Log => Some(log(e, a)),
        Op::Log2 => Some(log2(e, a)),
        _ => None,
    }
}

/// `(ln(1 + f) - f + f² / 2) / f³` for 1 + f from √½ to √2, within 2^-27 of the logarithm.
const LN: [f32; 8] =
    [-0.076_348_97, 0.127_617_42, -0.131_601_11, 0.142_017_3, -0.166_233_61, 0.200_012_28, -0.250_008_2, 0.333_333_3];

/// The same for 1 + f from ¾ to 1½.
const LN_OF_SIGNIFICAND: [f32; 8] = [
    -0.045_076_474,
    0.104_633_36,
    -0.131_613_72,
    0.144_784_06,
    -0.166_472_94,
    0.199_908_57,
    -0.250_000_95,
    0.333_334_5,
];

/// ln 2 in two parts, both positive, so that they agree about infinity.
const LN_2: [f32; 2] = [std::f32::consts::LN_2.next_down(), 5.77e-8];

/// log₂ e in two parts.
pub(super) const LOG2_E: [f32; 2] = [std::f32::consts::LOG2_E, 1.925_963e-8];

/// A positive number as `2^exponent * (1 + f)` with 1 + f from √½ to √2.
pub(super) struct Split {
    /// A float.
    pub(super) exponent: Value,
    pub(super) significand: Value,
    pub(super) f: Value,
}

/// Splits a positive finite number, denormals included; the result is unspecified for others.
pub(super) fn split(e: &mut Emit<'_>, a: Value) -> Split {
    const ROOT_HALF: u32 = 0x3f35_04f3;
    let denormal = e.ford_lt(a, f32::MIN_POSITIVE);
    let scaled = e.fmul(a, 8_388_608f32);
    let a = e.select(denormal, scaled, a);
    let base = e.select(denormal, ROOT_HALF + (23 << 23), ROOT_HALF);
    let bits = e.float_bits(a);
    let above = e.isub(bits, base);
    let exponent = e.ashr(above, 23u32);
    let fraction = e.and(above, 0x007f_ffffu32);
    let fraction = e.iadd(fraction, ROOT_HALF);
    let significand = e.float_from_bits(fraction);
    Split { exponent: e.sint_to_float(exponent), significand, f: e.fsub(significand, 1f32) }
}

/// `2^exponent * (1 + f)` with 1 + f from ¾ to 1½. For zeros and infinity `f` is 0 and the exponent infinite; for
/// negative numbers and NaN `f` is NaN. So results need no special cases.
fn split_exactly(e: &mut Emit<'_>, a: Value) -> [Value; 2] {
    let significand = e.significand(a);
    let [whole, half] = [a, significand].map(|of| e.exponent(of));
    [e.fsub(whole, half), e.fsub(significand, 1f32)]
}

/// Natural logarithm.
pub(super) fn log(e: &mut Emit<'_>, a: Value) -> Value {
    if e.has_exponents() {
        let [exponent, f] = split_exactly(e, a);
        let square = e.fmul(f, f);
        let cube = e.fmul(f, square);
        let tail = e.polynomial(f, &LN_OF_SIGNIFICAND);
        let tail = e.fmul(cube, tail);
        let tail = e.fma(exponent, LN_2[1], tail);
        let tail = e.fma(square, -0.5f32, tail);
        let fraction = e.fadd(f, tail);
        return e.fma(exponent, LN_2[0], fraction);
    }
    let Split { exponent, f, .. } = split(e, a);
    let square = e.fmul(f, f);
    let cube = e.fmul(f, square);
    let tail = e.polynomial(f, &LN);
    let tail = e.fmul(cube, tail);
    let tail = e.fma(exponent, -1.904_654_2e-9f32, tail);
    let tail = e.fma(square, -0.5f32, tail);
    let fraction = e.fadd(f, tail);
    let result = e.fma(exponent, std::f32::consts::LN_2, fraction);
    special(e, a, result)
}

fn log2(e: &mut Emit<'_>, a: Value) -> Value {
    let (exponent, f, coefficients) = if e.has_exponents() {
        let [exponent, f] = split_exactly(e, a);
        (exponent, f, &LN_OF_SIGNIFICAND)
    } else {
        let Split { exponent, f, .. } = split(e, a);
        (exponent, f, &LN)
    };
    let square = e.fmul(f, f);
    let cube = e.fmul(f, square);
    let tail = e.polynomial(f, &coefficients.map(|c| (f64::from(c) * std::f64::consts::LOG2_E) as f32));
    let tail = e.fmul(cube, tail);
    let tail = e.fma(f, LOG2_E[1], tail);
    let tail = e.fma(square, -0.5 * LOG2_E[0], tail);
    let fraction = e.fma(f, LOG2_E[0], tail);
    let result = e.fadd(exponent, fraction);
    if e.has_exponents() { result } else { special(e, a, result) }
}

/// Corrects the result for zeros, negative numbers, infinity and NaN.
fn special(e: &mut Emit<'_>, a: Value, result: Value) -> Value {
    let finite = e.ford_lt(a, f32::INFINITY);
    let result = e.select(finite, result, a);
    let negative = e.ford_lt(a, 0f32);
    let result = e.select(negative, f32::NAN, result);
    let zero = e.ford_eq(a, 0f32);
    e.select(zero, f32::NEG_INFINITY, result)
}

/// `ln(1 + a)`, also for small `a`; NaN below -1.
pub(super) fn log_1p(e: &mut Emit<'_>, a: Value) -> Value {
    let sum = e.fadd(1f32, a);
    // The rounding error of the sum: ln(sum + lost) = ln(sum) + lost / sum.
    let other = e.fsub(sum, 1f32);
    let one = e.fsub(sum, other);
    let lost = e.fsub(1f32, one);
    let other_lost = e.fsub(a, other);
    let lost = e.fadd(lost, other_lost);
    let correction = e.fdiv(lost, sum);
    let small = e.ford_lt(a, 16_777_216f32);
    let correction = e.select(small, correction, 0f32);
    let log = log(e, sum);
    e.fadd(log, correction)
}

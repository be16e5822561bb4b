//! Splits floats into integer and fraction or into significand and exponent, and assembles them.

use super::emit::Emit;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    Some(match (op, args) {
        (Op::ModfFract, &[a]) => {
            let whole = e.trunc(a);
            let fraction = e.fsub(a, whole);
            let infinite = e.is_inf(a);
            let fraction = e.select(infinite, 0f32, fraction);
            e.copysign(fraction, a)
        }
        (Op::FrexpSignificand, &[a]) => {
            let FloatParts { bits, number, .. } = decompose(e, a);
            let kept = e.and(bits, 0x807f_ffffu32);
            let placed = e.or(kept, 0x3f00_0000u32);
            let significand = e.float_from_bits(placed);
            e.select(number, significand, a)
        }
        (Op::FrexpExponent, &[a]) => {
            let FloatParts { bits, bias, number } = decompose(e, a);
            let field = e.lshr(bits, 23u32);
            let field = e.and(field, 0xffu32);
            let exponent = e.isub(field, bias);
            e.select(number, exponent, 0u32)
        }
        (Op::Ldexp, &[a, exponent]) => ldexp(e, a, exponent),
        (Op::Significand, &[a]) => {
            let FloatParts { bits, number, .. } = decompose(e, a);
            let digits = e.and(bits, 0x007f_ffffu32);
            let placed = e.or(digits, 0x3f80_0000u32);
            let significand = e.float_from_bits(placed);
            let half = e.fmul(significand, 0.5f32);
            let small = e.ford_lt(significand, 1.5f32);
            let significand = e.select(small, significand, half);
            let significand = e.select(number, significand, 1f32);
            let negative = e.ford_lt(a, 0f32);
            let ordered = e.ford_eq(a, a);
            let significand = e.select(ordered, significand, f32::NAN);
            e.select(negative, f32::NAN, significand)
        }
        (Op::Exponent, &[a]) => {
            let FloatParts { bits, bias, number } = decompose(e, a);
            let field = e.lshr(bits, 23u32);
            let field = e.and(field, 0xffu32);
            let exponent = e.isub(field, bias);
            let exponent = e.isub(exponent, 1u32);
            let exponent = e.sint_to_float(exponent);
            let size = e.fabs(a);
            let zero = e.ford_eq(a, 0f32);
            let other = e.select(zero, f32::NEG_INFINITY, size);
            e.select(number, exponent, other)
        }
        (Op::Scale, &[a, n]) => scale(e, a, n),
        _ => return None,
    })
}

struct FloatParts {
    /// The bits of the number, with denormals scaled up.
    bits: Value,
    /// Bias of the exponent field.
    bias: Value,
    /// Whether the number is neither 0 nor infinite nor NaN.
    number: Value,
}

fn decompose(e: &mut Emit<'_>, a: Value) -> FloatParts {
    let size = e.fabs(a);
    let denormal = e.ford_lt(size, f32::MIN_POSITIVE);
    let scaled = e.fmul(a, 16_777_216f32);
    let normal = e.select(denormal, scaled, a);
    let bits = e.float_bits(normal);
    let bias = e.select(denormal, 126u32 + 24, 126u32);
    let not_zero = e.ford_lt(0f32, size);
    let finite = e.ford_lt(size, f32::INFINITY);
    FloatParts { bits, bias, number: e.land(not_zero, finite) }
}

/// Multiplies by three powers of 2. The last takes as much of the exponent as it can: if an earlier product is rounded
/// because it is denormal, the result is 0 anyway.
fn ldexp(e: &mut Emit<'_>, a: Value, exponent: Value) -> Value {
    // Beyond 278 every result is 0 or infinite.
    let exponent = e.smax(exponent, -278i32);
    let exponent = e.smin(exponent, 278i32);
    let last = e.smax(exponent, -126i32);
    let last = e.smin(last, 127i32);
    let rest = e.isub(exponent, last);
    let first = e.ashr(rest, 1u32);
    let second = e.isub(rest, first);
    [first, second, last].into_iter().fold(a, |product, exponent| {
        let power = power_of_two(e, exponent);
        e.fmul(product, power)
    })
}

fn scale(e: &mut Emit<'_>, a: Value, n: Value) -> Value {
    let whole = e.floor(n);
    let exponent = e.float_to_sint(whole);
    let number = ldexp(e, a, exponent);
    // An infinite exponent is not a large one where it meets its opposite: that product is NaN, as with a NaN operand.
    let infinite = e.is_inf(n);
    let up = e.ford_lt(0f32, n);
    let power = e.select(up, f32::INFINITY, 0f32);
    let limit = e.fmul(a, power);
    let result = e.select(infinite, limit, number);
    let counts = e.ford_eq(n, n);
    e.select(counts, result, f32::NAN)
}

/// `2^exponent` for -126 to 127.
fn power_of_two(e: &mut Emit<'_>, exponent: Value) -> Value {
    let field = e.iadd(exponent, 127u32);
    let bits = e.shl(field, 23u32);
    e.float_from_bits(bits)
}

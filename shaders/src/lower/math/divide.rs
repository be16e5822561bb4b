//! Integer division by a divisor that is not constant: two steps with a float reciprocal.
//!
//! The reciprocal is too small by more than the rounding errors of conversions and products. So each step subtracts a
//! multiple of the divisor that is not too large. The first leaves less than the divisor plus about 2^-20 of the
//! dividend, the second less than twice the divisor; a comparison finishes.
//!
//! Only the reciprocal needs a division, and it depends on the divisor alone: a loop with an invariant divisor computes
//! it once.

use super::emit::Emit;
use crate::ir::{Op, Value};

/// `1 - 2^-21`. A step rounds four times (dividend, divisor, reciprocal, product), each by up to 2^-24.
const SLIGHTLY_LESS: f32 = 1.0 - 1.0 / 2_097_152.0;

/// 1.5 × 2^23: adding it to a small number leaves the nearest integer in the low bits.
const TO_INTEGER: f32 = 12_582_912.0;

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let &[a, b] = args else { return None };
    Some(match op {
        Op::UDiv => quotient(e, a, b),
        Op::UMod => remainder(e, a, b),
        Op::SDiv => signed_quotient(e, a, b),
        Op::SRem => signed_remainder(e, a, b),
        Op::SMod => {
            let rem = signed_remainder(e, a, b);
            let differ = e.xor(rem, b);
            let differ = e.slt(differ, 0i32);
            let not_zero = e.ine(rem, 0u32);
            let adjust = e.land(differ, not_zero);
            let moved = e.iadd(rem, b);
            e.select(adjust, moved, rem)
        }
        _ => return None,
    })
}

/// A quotient that is exact or one too small, and its remainder. Unspecified if the divisor is 0.
fn almost(e: &mut Emit<'_>, a: Value, b: Value) -> [Value; 2] {
    let divisor = e.uint_to_float(b);
    let reciprocal = e.fdiv(SLIGHTLY_LESS, divisor);
    let dividend = e.uint_to_float(a);
    let product = e.fmul(dividend, reciprocal);
    let first = e.float_to_uint(product);
    let rest = less_multiple(e, a, first, b);
    // This quotient is below 2^13: the integer nearest to it less a half needs no conversion, and is not too large.
    let dividend = e.uint_to_float(rest);
    let product = e.fma(dividend, reciprocal, -0.5f32);
    let moved = e.fadd(product, TO_INTEGER);
    let bits = e.float_bits(moved);
    let second = e.isub(bits, TO_INTEGER.to_bits());
    let rest = less_multiple(e, rest, second, b);
    [e.iadd(first, second), rest]
}

fn less_multiple(e: &mut Emit<'_>, a: Value, factor: Value, b: Value) -> Value {
    let taken = e.imul(factor, b);
    e.isub(a, taken)
}

fn quotient(e: &mut Emit<'_>, a: Value, b: Value) -> Value {
    let [quotient, rest] = almost(e, a, b);
    let one_more = e.ule(b, rest);
    let one_more = e.bool_to_int(one_more);
    let quotient = e.iadd(quotient, one_more);
    zero_by_zero(e, b, quotient)
}

fn remainder(e: &mut Emit<'_>, a: Value, b: Value) -> Value {
    let [_, rest] = almost(e, a, b);
    // If the remainder is less than the divisor, the difference wraps and is larger.
    let less = e.isub(rest, b);
    let remainder = e.umin(rest, less);
    zero_by_zero(e, b, remainder)
}

fn zero_by_zero(e: &mut Emit<'_>, b: Value, result: Value) -> Value {
    let by_zero = e.ieq(b, 0u32);
    e.select(by_zero, 0u32, result)
}

fn signed_quotient(e: &mut Emit<'_>, a: Value, b: Value) -> Value {
    let magnitudes = [e.sabs(a), e.sabs(b)];
    let magnitude = quotient(e, magnitudes[0], magnitudes[1]);
    let signs = e.xor(a, b);
    with_sign_of(e, magnitude, signs)
}

fn signed_remainder(e: &mut Emit<'_>, a: Value, b: Value) -> Value {
    let magnitudes = [e.sabs(a), e.sabs(b)];
    let magnitude = remainder(e, magnitudes[0], magnitudes[1]);
    with_sign_of(e, magnitude, a)
}

/// Negates if `sign` is negative.
fn with_sign_of(e: &mut Emit<'_>, magnitude: Value, sign: Value) -> Value {
    let mask = e.ashr(sign, 31u32);
    let flipped = e.xor(magnitude, mask);
    e.isub(flipped, mask)
}

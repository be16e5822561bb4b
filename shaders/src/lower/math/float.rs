//! Simple float operations: clamps, blends, remainders.
//!
//! A remainder takes one division, as Vulkan allows. It is exact, and less than the divisor, where the quotient is
//! below 2^24; larger quotients do not have enough digits.

use super::emit::{Emit, IntoValue};
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    Some(match (op, args) {
        (Op::FRem, &[a, b]) => {
            let magnitude = remainder(e, a, b);
            let sign = e.sign_bit(a);
            e.flip_sign(magnitude, sign)
        }
        (Op::FMod, &[a, b]) => modulo(e, a, b),
        (Op::FSign, &[a]) => {
            let one = e.copysign(1f32, a);
            let signed = e.ford_ne(a, 0f32);
            e.select(signed, one, a)
        }
        (Op::FClamp, &[a, low, high]) => clamp(e, a, low, high),
        (Op::Fract, &[a]) => {
            let whole = e.floor(a);
            e.fsub(a, whole)
        }
        (Op::InverseSqrt, &[a]) => {
            let root = e.sqrt(a);
            e.fdiv(1f32, root)
        }
        (Op::FMix, &[a, b, t]) => {
            let rest = e.fsub(1f32, t);
            let first = e.fmul(a, rest);
            product_and_sum(e, b, t, first)
        }
        (Op::Step, &[edge, a]) => {
            let below = e.ford_lt(a, edge);
            e.select(below, 0f32, 1f32)
        }
        (Op::SmoothStep, &[low, high, a]) => {
            let [way, length] = [e.fsub(a, low), e.fsub(high, low)];
            let t = e.fdiv(way, length);
            let t = clamp(e, t, 0f32, 1f32);
            let [minus_two, three] = [(-2f32).value(e), 3f32.value(e)];
            let factor = product_and_sum(e, minus_two, t, three);
            let square = e.fmul(t, t);
            e.fmul(square, factor)
        }
        _ => return None,
    })
}

/// `a * b + c`, rounded once where that is allowed.
fn product_and_sum(e: &mut Emit<'_>, a: Value, b: Value, c: Value) -> Value {
    if e.is_precise() {
        let product = e.fmul(a, b);
        return e.fadd(product, c);
    }
    e.fma(a, b, c)
}

/// `fclamp`.
pub(super) fn clamp(e: &mut Emit<'_>, a: Value, low: impl IntoValue, high: impl IntoValue) -> Value {
    let at_least = e.fmax(a, low);
    e.fmin(at_least, high)
}

/// The remainder of the magnitudes of `a` and `b`.
fn remainder(e: &mut Emit<'_>, a: Value, b: Value) -> Value {
    let [a, b] = [e.fabs(a), e.fabs(b)];
    let quotient = e.fdiv(a, b);
    let whole = e.trunc(quotient);
    let whole = e.fneg(whole);
    let rest = e.fma(whole, b, a);
    // The quotient may have been rounded up to an integer.
    let back = e.fadd(rest, b);
    let too_much = e.ford_lt(rest, 0f32);
    let rest = e.select(too_much, back, rest);
    // Also if the divisor is infinite.
    let smaller = e.ford_lt(a, b);
    e.select(smaller, a, rest)
}

fn modulo(e: &mut Emit<'_>, a: Value, b: Value) -> Value {
    let rest = remainder(e, a, b);
    let size = e.fabs(b);
    let other_end = e.fsub(size, rest);
    let [a_bits, b_bits] = [e.float_bits(a), e.float_bits(b)];
    let differ = e.xor(a_bits, b_bits);
    let differ = e.slt(differ, 0i32);
    let not_zero = e.ford_ne(rest, 0f32);
    let from_end = e.land(differ, not_zero);
    let magnitude = e.select(from_end, other_end, rest);
    let sign = e.sign_bit(b);
    e.flip_sign(magnitude, sign)
}

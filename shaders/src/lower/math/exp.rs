//! Exponential functions: the nearest power of 2 by its exponent bits, the rest by a polynomial.

use std::f32::consts::{LN_2, LOG2_E};

use super::emit::Emit;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let &[a] = args else { return None };
    match op {
        Op::Exp => Some(exp(e, a, 0)),
        Op::Exp2 => Some(exp2(e, a)),
        _ => None,
    }
}

/// 1.5 × 2^23: adding it to a small number leaves the nearest integer in the low bits. 254 is the bias of two exponent
/// fields, for [`scale`].
const TO_INTEGER: f32 = 12_582_912.0 + 254.0;

/// `e^r` for |r| up to half of ln 2, within 2^-28.
const E_TO_R: [f32; 7] = [0.001_381_452, 0.008_368_781, 0.041_668_393, 0.166_665_2, 0.499_999_94, 1.0, 1.0];

/// `2^r` for -1/2 to 1/2, within 2^-28.
const TWO_TO_R: [f32; 7] = [0.000_153_532_69, 0.001_339_900_3, 0.009_618_439, 0.055_503_32, 0.240_226_48, LN_2, 1.0];

/// `e^a / 2^less`; `less` is 0 or 1.
pub(super) fn exp(e: &mut Emit<'_>, a: Value, less: u8) -> Value {
    // Below this the result is 0. NaN is kept.
    let low = e.ford_lt(a, -104.5f32);
    let a = e.select(low, -104.5f32, a);
    let to_integer = TO_INTEGER - f32::from(less);
    let near = e.fmin(90f32, a);
    let moved = e.fma(near, LOG2_E, to_integer);
    let whole = e.fsub(moved, to_integer);
    // Above the limit the rest is large, too, and the result infinite.
    let rest = e.fma(whole, -LN_2, a);
    let rest = e.fma(whole, 1.904_654_2e-9f32, rest);
    let power = e.polynomial(rest, &E_TO_R);
    let whole = if less > 0 && e.has_exponents() { e.fsub(whole, f32::from(less)) } else { whole };
    scale(e, power, moved, whole)
}

fn exp2(e: &mut Emit<'_>, a: Value) -> Value {
    exp2_of_sum(e, a, None)
}

/// `2^(a + tail)`; the tail is much smaller than 1.
pub(super) fn exp2_of_sum(e: &mut Emit<'_>, a: Value, tail: Option<Value>) -> Value {
    let low = e.ford_lt(a, -151f32);
    let a = e.select(low, -151f32, a);
    let near = e.fmin(130f32, a);
    let moved = e.fadd(near, TO_INTEGER);
    let whole = e.fsub(moved, TO_INTEGER);
    let mut rest = e.fsub(a, whole);
    if let Some(tail) = tail {
        rest = e.fadd(rest, tail);
    }
    let power = e.polynomial(rest, &TWO_TO_R);
    scale(e, power, moved, whole)
}

/// `a * 2^n`. Without a machine operation, uses `n + 254` in the low bits of `moved`: two factors with half the
/// exponent each, so that results may be infinite or denormal and are rounded once. The bits above the exponent fields
/// are shifted out.
fn scale(e: &mut Emit<'_>, a: Value, moved: Value, n: Value) -> Value {
    if e.has_exponents() {
        return e.scale(a, n);
    }
    let both = e.float_bits(moved);
    let first = e.lshr(both, 1u32);
    let second = e.isub(both, first);
    [first, second].into_iter().fold(a, |product, field| {
        let bits = e.shl(field, 23u32);
        let power = e.float_from_bits(bits);
        e.fmul(product, power)
    })
}

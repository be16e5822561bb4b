//! Sine, cosine and tangent of a reduced angle.

use super::angle::reduce;
use super::emit::Emit;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let &[a] = args else { return None };
    match op {
        Op::Sin => Some(sin(e, a)),
        Op::Cos => Some(cos(e, a)),
        Op::Tan => Some(tan(e, a)),
        _ => None,
    }
}

/// `(sin r - r) / r³` as a polynomial in r², for r up to 0.797, within 2^-27 of the sine.
const SIN: [f32; 3] = [-0.000_195_077_36, 0.008_332_109, -0.166_666_54];

/// `(cos r - 1) / r²` as a polynomial in r², for r up to 0.797, within 2^-32.
const COS: [f32; 4] = [2.442_212e-5, -0.001_388_722, 0.041_666_646, -0.5];

/// Sine and cosine of a reduced angle.
fn both(e: &mut Emit<'_>, rest: Value) -> [Value; 2] {
    let square = e.fmul(rest, rest);
    let sine = e.polynomial(square, &SIN);
    let cube = e.fmul(square, rest);
    let sine = e.fma(sine, cube, rest);
    let cosine = e.polynomial(square, &COS);
    [sine, e.fma(cosine, square, 1f32)]
}

fn is_odd(e: &mut Emit<'_>, turns: Value) -> Value {
    let bit = e.and(turns, 1u32);
    e.ine(bit, 0u32)
}

fn sin(e: &mut Emit<'_>, a: Value) -> Value {
    let [turns, rest] = e.angle(a, reduce);
    let [sine, cosine] = both(e, rest);
    let odd = is_odd(e, turns);
    let magnitude = e.select(odd, cosine, sine);
    let sign = e.shl(turns, 30u32);
    let bits = e.float_bits(a);
    let sign = e.xor(sign, bits);
    let sign = e.and(sign, 0x8000_0000u32);
    e.flip_sign(magnitude, sign)
}

fn cos(e: &mut Emit<'_>, a: Value) -> Value {
    let [turns, rest] = e.angle(a, reduce);
    let [sine, cosine] = both(e, rest);
    let odd = is_odd(e, turns);
    let magnitude = e.select(odd, sine, cosine);
    let next = e.iadd(turns, 1u32);
    let sign = e.shl(next, 30u32);
    let sign = e.and(sign, 0x8000_0000u32);
    e.flip_sign(magnitude, sign)
}

fn tan(e: &mut Emit<'_>, a: Value) -> Value {
    let [turns, rest] = e.angle(a, reduce);
    let [sine, cosine] = both(e, rest);
    let odd = is_odd(e, turns);
    let above = e.select(odd, cosine, sine);
    let below = e.select(odd, sine, cosine);
    let quotient = e.fdiv(above, below);
    let sign = e.shl(turns, 31u32);
    let bits = e.float_bits(a);
    let bits = e.and(bits, 0x8000_0000u32);
    let sign = e.xor(sign, bits);
    e.flip_sign(quotient, sign)
}

//! Inverse trigonometric functions.
//!
//! Where the result is π/2 or π minus an angle, the rounding error of the constant is first subtracted from the angle.

use std::f32::consts::{FRAC_PI_2, PI};

use super::emit::Emit;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    match (op, args) {
        (Op::Asin, &[a]) => Some(asin(e, a)),
        (Op::Acos, &[a]) => Some(acos(e, a)),
        (Op::Atan, &[a]) => Some(atan(e, a)),
        (Op::Atan2, &[y, x]) => Some(atan2(e, y, x)),
        _ => None,
    }
}

/// Rounding error of the constant π.
const PI_EXCESS: f32 = 8.742_278e-8;

/// `(asin s - s) / s³` as a polynomial in s², up to 1/2, within 2^-27.
const ASIN: [f32; 5] = [0.042_189_877, 0.024_166_547, 0.045_472_81, 0.074_952_796, 0.166_667_54];

/// `(atan t - t) / t³` as a polynomial in t², up to 1, within 2^-28.
const ATAN: [f32; 9] = [
    -0.001_793_148,
    0.010_912_608,
    -0.031_174_358,
    0.057_954_33,
    -0.084_032_74,
    0.109_521_31,
    -0.142_642_32,
    0.199_985_47,
    -0.333_333,
];

/// `a + a * square * polynomial + extra`.
fn odd(e: &mut Emit<'_>, a: Value, square: Value, coefficients: &[f32], extra: Value) -> Value {
    let cube = e.fmul(a, square);
    let series = e.polynomial(square, coefficients);
    let tail = e.fma(cube, series, extra);
    e.fadd(a, tail)
}

/// For magnitudes above 1/2: half of `acos a`, the sine of which is `√((1 - a) / 2)`.
struct Half {
    large: Value,
    /// Argument of the polynomial.
    sine: Value,
    square: Value,
}

fn half(e: &mut Emit<'_>, size: Value) -> Half {
    let large = e.ford_lt(0.5f32, size);
    let half_square = e.fma(size, -0.5f32, 0.5f32);
    let root = e.sqrt(half_square);
    let square = e.fmul(size, size);
    Half { large, sine: e.select(large, root, size), square: e.select(large, half_square, square) }
}

fn asin(e: &mut Emit<'_>, a: Value) -> Value {
    let size = e.fabs(a);
    let Half { large, sine, square } = half(e, size);
    let extra = e.select(large, PI_EXCESS / 4.0, 0f32);
    let angle = odd(e, sine, square, &ASIN, extra);
    let rest = e.fma(angle, -2f32, FRAC_PI_2);
    let magnitude = e.select(large, rest, angle);
    let sign = e.sign_bit(a);
    e.flip_sign(magnitude, sign)
}

fn acos(e: &mut Emit<'_>, a: Value) -> Value {
    let size = e.fabs(a);
    let Half { large, sine, square } = half(e, size);
    let bits = e.float_bits(a);
    let negative = e.slt(bits, 0i32);
    // Large and positive: twice the angle. Large and negative: π minus that. Small: π/2 minus the angle of the sine.
    let extra = e.select(negative, PI_EXCESS / 2.0, 0f32);
    let small_sign = e.sign_bit(a);
    let small_sine = e.flip_sign(sine, small_sign);
    let sine = e.select(large, sine, small_sine);
    let extra = e.select(large, extra, PI_EXCESS / 2.0);
    let angle = odd(e, sine, square, &ASIN, extra);
    let twice = e.fadd(angle, angle);
    let rest = e.fsub(PI, twice);
    let near_end = e.select(negative, rest, twice);
    let middle = e.fsub(FRAC_PI_2, angle);
    e.select(large, near_end, middle)
}

fn atan(e: &mut Emit<'_>, a: Value) -> Value {
    let size = e.fabs(a);
    let large = e.ford_lt(1f32, size);
    let above = e.select(large, 1f32, size);
    let below = e.select(large, size, 1f32);
    let tangent = e.fdiv(above, below);
    let magnitude = first_quadrant(e, tangent, large);
    let sign = e.sign_bit(a);
    e.flip_sign(magnitude, sign)
}

/// The angle of a tangent of at most 1; if `inverted`, π/2 minus that.
fn first_quadrant(e: &mut Emit<'_>, tangent: Value, inverted: Value) -> Value {
    let square = e.fmul(tangent, tangent);
    let extra = e.select(inverted, PI_EXCESS / 2.0, 0f32);
    let angle = odd(e, tangent, square, &ATAN, extra);
    let rest = e.fsub(FRAC_PI_2, angle);
    e.select(inverted, rest, angle)
}

fn atan2(e: &mut Emit<'_>, y: Value, x: Value) -> Value {
    let [rise, run] = [e.fabs(y), e.fabs(x)];
    let steep = e.ford_lt(run, rise);
    let above = e.select(steep, run, rise);
    let below = e.select(steep, rise, run);
    let tangent = e.fdiv(above, below);
    // Both zero, or both infinite.
    let zero = e.ford_eq(below, 0f32);
    let limit = e.select(zero, 0f32, 1f32);
    let equal = e.ford_eq(above, below);
    let tangent = e.select(equal, limit, tangent);
    let angle = first_quadrant(e, tangent, steep);
    let moved = e.fadd(angle, PI_EXCESS);
    let supplement = e.fsub(PI, moved);
    let bits = e.float_bits(x);
    let left = e.slt(bits, 0i32);
    let magnitude = e.select(left, supplement, angle);
    let sign = e.sign_bit(y);
    e.flip_sign(magnitude, sign)
}

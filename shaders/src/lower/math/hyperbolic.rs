//! Hyperbolic functions by exponentials, their inverses by logarithms; near 0, where those cancel, by polynomials.

use super::emit::Emit;
use super::exp::exp;
use super::log::log_1p;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let &[a] = args else { return None };
    match op {
        Op::Sinh => Some(sinh(e, a)),
        Op::Cosh => Some(cosh(e, a)),
        Op::Tanh => Some(tanh(e, a)),
        Op::Asinh => Some(asinh(e, a)),
        Op::Acosh => Some(acosh(e, a)),
        Op::Atanh => Some(atanh(e, a)),
        _ => None,
    }
}

/// `(sinh a - a) / a³` as a polynomial in a², up to 1, within 2^-34.
const SINH: [f32; 4] = [2.817_012e-6, 0.000_198_361_5, 0.008_333_351, 0.166_666_67];

/// `(tanh a - a) / a³` as a polynomial in a², up to 5/8, within 2^-27.
const TANH: [f32; 5] = [-0.005_704_543, 0.020_638_706, -0.053_739_604, 0.133_314_42, -0.333_332_8];

/// From here on, 1 is negligible against the number and its square.
const LARGE: f32 = 1_073_741_824.0;

fn odd(e: &mut Emit<'_>, a: Value, coefficients: &[f32]) -> Value {
    let square = e.fmul(a, a);
    let series = e.polynomial(square, coefficients);
    let cube = e.fmul(a, square);
    e.fma(cube, series, a)
}

/// Half of `e^a`, and half of `e^-a`.
fn halves(e: &mut Emit<'_>, a: Value) -> [Value; 2] {
    let growing = exp(e, a, 1);
    [growing, e.fdiv(0.25f32, growing)]
}

fn sinh(e: &mut Emit<'_>, a: Value) -> Value {
    let size = e.fabs(a);
    let [growing, falling] = halves(e, size);
    let difference = e.fsub(growing, falling);
    let near_zero = odd(e, size, &SINH);
    let large = e.ford_lt(1f32, size);
    let magnitude = e.select(large, difference, near_zero);
    let sign = e.sign_bit(a);
    e.flip_sign(magnitude, sign)
}

fn cosh(e: &mut Emit<'_>, a: Value) -> Value {
    let size = e.fabs(a);
    let [growing, falling] = halves(e, size);
    e.fadd(growing, falling)
}

fn tanh(e: &mut Emit<'_>, a: Value) -> Value {
    let size = e.fabs(a);
    let twice = e.fadd(size, size);
    let square = exp(e, twice, 0);
    let below = e.fadd(square, 1f32);
    let quotient = e.fdiv(2f32, below);
    let far = e.fsub(1f32, quotient);
    let near_zero = odd(e, size, &TANH);
    let large = e.ford_lt(0.625f32, size);
    let magnitude = e.select(large, far, near_zero);
    let sign = e.sign_bit(a);
    e.flip_sign(magnitude, sign)
}

/// `ln(1 + small)`; where `large`, the logarithm of twice `a`.
fn log_1p_or_twice(e: &mut Emit<'_>, a: Value, large: Value, small: Value) -> Value {
    let argument = e.select(large, a, small);
    let log = log_1p(e, argument);
    let more = e.select(large, std::f32::consts::LN_2, 0f32);
    e.fadd(log, more)
}

fn asinh(e: &mut Emit<'_>, a: Value) -> Value {
    // a + √(a² + 1) - 1, without cancellation.
    let size = e.fabs(a);
    let square = e.fmul(size, size);
    let radicand = e.fma(size, size, 1f32);
    let root = e.sqrt(radicand);
    let root = e.fadd(root, 1f32);
    let rise = e.fdiv(square, root);
    let small = e.fadd(size, rise);
    let large = e.ford_lt(LARGE, size);
    let magnitude = log_1p_or_twice(e, size, large, small);
    let sign = e.sign_bit(a);
    e.flip_sign(magnitude, sign)
}

fn acosh(e: &mut Emit<'_>, a: Value) -> Value {
    // a + √(a² - 1) - 1, from the distance to 1.
    let above = e.fsub(a, 1f32);
    let twice = e.fadd(above, above);
    let radicand = e.fma(above, above, twice);
    let root = e.sqrt(radicand);
    let small = e.fadd(above, root);
    let large = e.ford_lt(LARGE, a);
    let result = log_1p_or_twice(e, a, large, small);
    let outside = e.ford_lt(a, 1f32);
    e.select(outside, f32::NAN, result)
}

fn atanh(e: &mut Emit<'_>, a: Value) -> Value {
    let size = e.fabs(a);
    let above = e.fadd(size, size);
    let below = e.fsub(1f32, size);
    let quotient = e.fdiv(above, below);
    let log = log_1p(e, quotient);
    let magnitude = e.fmul(log, 0.5f32);
    let sign = e.sign_bit(a);
    e.flip_sign(magnitude, sign)
}

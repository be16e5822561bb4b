//! Powers: the logarithm in two parts, so that a large exponent does not magnify its error.

use super::emit::{Emit, IntoValue};
use super::exp::exp2_of_sum;
use super::log::{LOG2_E, Split, split};
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let (Op::Pow, &[a, b]) = (op, args) else { return None };
    Some(simple(e, a, b).unwrap_or_else(|| pow(e, a, b)))
}

/// Powers with common constant exponents.
fn simple(e: &mut Emit<'_>, a: Value, b: Value) -> Option<Value> {
    let exponent = e.known(b)?;
    Some(match exponent {
        -1.0 => e.fdiv(1f32, a),
        0.5 => root(e, a),
        1.0 => a,
        2.0 => e.fmul(a, a),
        3.0..=5.0 if exponent.fract() == 0.0 => {
            let square = e.fmul(a, a);
            let other = if exponent == 3.0 { a } else { square };
            let product = e.fmul(square, other);
            if exponent == 5.0 { e.fmul(product, a) } else { product }
        }
        _ => return None,
    })
}

/// Like the square root, but positive for the negative zero and the negative infinity.
fn root(e: &mut Emit<'_>, a: Value) -> Value {
    let radicand = e.fadd(a, 0f32);
    let root = e.sqrt(radicand);
    let infinite = e.ford_eq(a, f32::NEG_INFINITY);
    e.select(infinite, f32::INFINITY, root)
}

fn pow(e: &mut Emit<'_>, a: Value, b: Value) -> Value {
    let size = e.fabs(a);
    let [log, log_tail] = log2_in_parts(e, size);
    let finite = e.ford_lt(size, f32::INFINITY);
    let log = e.select(finite, log, size);
    let zero = e.ford_eq(size, 0f32);
    let log = e.select(zero, f32::NEG_INFINITY, log);

    let product = e.fmul(b, log);
    let negated = e.fneg(product);
    let tail = e.fma(b, log, negated);
    let tail = e.fma(b, log_tail, tail);
    // The tail would be NaN for an infinite product.
    let product_size = e.fabs(product);
    let counts = e.ford_lt(product_size, 256f32);
    let tail = e.select(counts, tail, 0f32);
    let magnitude = exp2_of_sum(e, product, Some(tail));

    let magnitude = ones(e, size, b, magnitude);
    signed(e, a, b, finite, magnitude)
}

/// `x^0` and `1^y` are 1, whatever the other operand is.
fn ones(e: &mut Emit<'_>, size: Value, b: Value, magnitude: Value) -> Value {
    let no_exponent = e.ford_eq(b, 0f32);
    let unity = e.ford_eq(size, 1f32);
    // 1 to a finite power is 1 without a special case.
    let unity = if e.known(b).is_some_and(f32::is_finite) { no_exponent } else { e.lor(no_exponent, unity) };
    e.select(unity, 1f32, magnitude)
}

/// Negative if the base is negative and the exponent odd; NaN if the base is negative and the exponent not an integer.
fn signed(e: &mut Emit<'_>, a: Value, b: Value, finite: Value, magnitude: Value) -> Value {
    let whole = e.trunc(b);
    let is_whole = e.ford_eq(whole, b);
    let half = e.fmul(b, 0.5f32);
    let whole_half = e.trunc(half);
    let is_uneven = e.ford_ne(whole_half, half);
    let odd = e.land(is_whole, is_uneven);
    let sign = e.sign_bit(a);
    let sign = e.select(odd, sign, 0u32);
    let result = e.flip_sign(magnitude, sign);

    let negative = e.ford_lt(a, 0f32);
    let negative = e.land(negative, finite);
    let fraction = e.lnot(is_whole);
    let undefined = e.land(negative, fraction);
    e.select(undefined, f32::NAN, result)
}

/// The logarithm of a positive number, to about 2^-31.
///
/// With `s = f / (2 + f)` in two parts, `ln(1 + f) = 2 (s + s³ / 3 + s⁵ / 5 + ...)`; only the first term needs more
/// digits than a float has.
fn log2_in_parts(e: &mut Emit<'_>, a: Value) -> [Value; 2] {
    let Split { exponent, significand, f } = split(e, a);
    let one = 1f32.value(e);
    let [sum, sum_tail] = exact_sum(e, one, significand);
    let reciprocal = e.fdiv(1f32, sum);
    let s = e.fmul(f, reciprocal);
    let minus_s = e.fneg(s);
    let left = e.fma(minus_s, sum, f);
    let left = e.fma(minus_s, sum_tail, left);
    let s_tail = e.fmul(left, reciprocal);

    const SERIES: [f32; 4] = [0.341_489_67, 0.411_629_6, 0.577_084_3, 0.961_796_64];
    let [twice, twice_tail] = LOG2_E.map(|part| 2.0 * part);
    let square = e.fmul(s, s);
    let cube = e.fmul(s, square);
    let series = e.polynomial(square, &SERIES);
    let first = e.fmul(s, twice);
    let minus_first = e.fneg(first);
    let tail = e.fma(s, twice, minus_first);
    let tail = e.fma(s, twice_tail, tail);
    // The derivative, 2 log₂e / (1 - s²), propagates the tail of s through all terms.
    let slope = e.fma(square, twice, twice);
    let tail = e.fma(s_tail, slope, tail);
    let tail = e.fma(cube, series, tail);

    let [log, lost] = exact_sum(e, exponent, first);
    let tail = e.fadd(lost, tail);
    exact_sum(e, log, tail)
}

/// A sum and its rounding error; `a` is 0, or its exponent is at least that of `b`.
fn exact_sum(e: &mut Emit<'_>, a: Value, b: Value) -> [Value; 2] {
    let sum = e.fadd(a, b);
    let taken = e.fsub(sum, a);
    [sum, e.fsub(b, taken)]
}

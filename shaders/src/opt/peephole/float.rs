//! Floats: only rewrites that preserve rounding, signs and overflow. Adding +0 is not an identity: it turns -0 into +0.

use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    match (op, args) {
        (Op::FAdd, &[a, b]) => sum(e, a, b),
        (Op::FSub, &[a, b]) => difference(e, a, b),
        (Op::FMul, &[a, b]) => product(e, a, b),
        (Op::FDiv, &[a, b]) => quotient(e, a, b),
        (Op::Fma, &[a, b, c]) => fused(e, a, b, c),
        (Op::FNeg, &[a]) => e.args(a, Op::FNeg).map(|[x]| Existing(x)),
        (Op::FAbs, &[a]) => match (e.args::<1>(a, Op::FAbs), e.args(a, Op::FNeg)) {
            (Some(_), _) => Some(Existing(a)),
            (_, Some([x])) => e.becomes(Op::FAbs, [x]),
            _ => None,
        },
        (Op::FloatBits, &[a]) => e.args(a, Op::FloatFromBits).map(|[x]| Existing(x)),
        (Op::FloatFromBits, &[a]) => e.args(a, Op::FloatBits).map(|[x]| Existing(x)),
        (Op::HalfBits, &[a]) => half_bits(e, a),
        (Op::RoundHalf, &[a]) => {
            let exact = e.args::<1>(a, Op::HalfFromBits).is_some() || e.args::<1>(a, Op::RoundHalf).is_some();
            exact.then_some(Existing(a))
        }
        _ => None,
    }
}

/// The value of a constant.
fn constant(e: &Editor<'_>, value: Value) -> Option<f32> {
    e.bits(value).map(f32::from_bits)
}

fn is(e: &Editor<'_>, value: Value, wanted: f32) -> bool {
    e.bits(value) == Some(wanted.to_bits())
}

/// Half-precision bits from memory stay as they are, including signaling NaNs: programs copy all kinds of data as
/// halves. A number is never rounded twice.
fn half_bits(e: &mut Editor<'_>, a: Value) -> Option<Replacement> {
    if let Some([bits]) = e.args(a, Op::HalfFromBits) {
        return e.becomes_with(Op::And, bits, 0xffff);
    }
    let [x] = e.args(a, Op::RoundHalf)?;
    e.becomes(Op::HalfBits, [x])
}

fn sum(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    if is(e, b, -0.0) {
        return Some(Existing(a));
    }
    if let Some([y]) = e.args(b, Op::FNeg) {
        return e.becomes(Op::FSub, [a, y]);
    }
    let [x] = e.args(a, Op::FNeg)?;
    e.becomes(Op::FSub, [b, x])
}

fn difference(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    if is(e, b, 0.0) {
        return Some(Existing(a));
    }
    if is(e, a, -0.0) {
        return e.becomes(Op::FNeg, [b]);
    }
    let [y] = e.args(b, Op::FNeg)?;
    e.becomes(Op::FAdd, [a, y])
}

fn product(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    if is(e, b, 1.0) {
        return Some(Existing(a));
    }
    if is(e, b, -1.0) {
        return e.becomes(Op::FNeg, [a]);
    }
    if let Some((whole, factor)) = whole_times(e, a, b) {
        return e.becomes(Op::FMul, [whole, factor]);
    }
    let [x] = e.args(a, Op::FNeg)?;
    if let Some(factor) = constant(e, b) {
        let factor = e.constant(-factor);
        return e.becomes(Op::FMul, [x, factor]);
    }
    let [y] = e.args(b, Op::FNeg)?;
    e.becomes(Op::FMul, [x, y])
}

/// A division by a power of two is an exact product with its reciprocal.
fn quotient(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    if let Some(divisor) = constant(e, b) {
        let reciprocal = 1.0 / divisor;
        let is_power = divisor.to_bits() & 0x007f_ffff == 0;
        if !(is_power && divisor.is_normal() && reciprocal.is_normal()) {
            return None;
        }
        let reciprocal = e.constant(reciprocal);
        return e.becomes(Op::FMul, [a, reciprocal]);
    }
    let ([x], [y]) = (e.args(a, Op::FNeg)?, e.args(b, Op::FNeg)?);
    e.becomes(Op::FDiv, [x, y])
}

fn fused(e: &mut Editor<'_>, a: Value, b: Value, c: Value) -> Option<Replacement> {
    if is(e, b, 1.0) {
        return e.becomes(Op::FAdd, [a, c]);
    }
    if is(e, c, -0.0) {
        return e.becomes(Op::FMul, [a, b]);
    }
    if let Some((whole, factor)) = whole_times(e, a, b) {
        return e.becomes(Op::Fma, [whole, factor, c]);
    }
    let ([x], [y]) = (e.args(a, Op::FNeg)?, e.args(b, Op::FNeg)?);
    e.becomes(Op::Fma, [x, y, c])
}

/// A converted integer times a power of two, times `b`: the first product is exact, so the two constant factors may be
/// multiplied first.
fn whole_times(e: &mut Editor<'_>, a: Value, b: Value) -> Option<(Value, Value)> {
    let [whole, power] = e.args(a, Op::FMul)?;
    let (power, factor) = (constant(e, power)?, constant(e, b)?);
    let is_power = power.to_bits() & 0x007f_ffff == 0 && (2f32.powi(-64)..=2f32.powi(64)).contains(&power);
    let is_whole = e.args::<1>(whole, Op::SIntToFloat).or(e.args(whole, Op::UIntToFloat)).is_some();
    let both = power * factor;
    (is_power && is_whole && factor.is_normal() && both.is_normal()).then(|| (whole, e.constant(both)))
}

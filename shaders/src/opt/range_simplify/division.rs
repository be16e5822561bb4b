//! Divisions by constants as multiplications by a reciprocal (Granlund and Montgomery, "Division by Invariant Integers
//! using Multiplication", 1994; Warren, "Hacker's Delight", chapter 10).
//!
//! With a reciprocal `m / 2^p` that is too large by `e / (c * 2^p)`, the quotient of `n` by `c` is exact as long as `n
//! * e` is below `2^p`. A smaller range of `n` allows a smaller reciprocal; sometimes the product fits in one word.

use crate::analysis::Range;
use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement};

/// Divisors except 0, 1, -1 and, for unsigned division, powers of two, which `peephole` handles.
pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, [a, b]: [Value; 2], range: Range) -> Option<Replacement> {
    if !matches!(op, Op::UDiv | Op::UMod | Op::SDiv | Op::SRem | Op::SMod) || e.bits(a).is_some() {
        return None;
    }
    let divisor = e.bits(b)?;
    let is_small = if matches!(op, Op::UDiv | Op::UMod) { divisor < 2 } else { divisor.wrapping_add(1) < 3 };
    if is_small {
        return None;
    }
    let result = match op {
        Op::UDiv | Op::UMod if divisor.is_power_of_two() => return None,
        Op::UDiv => unsigned(e, a, divisor, range.high),
        Op::UMod => {
            let quotient = unsigned(e, a, divisor, range.high);
            rest(e, a, quotient, divisor)
        }
        Op::SDiv => signed(e, a, divisor.cast_signed()),
        // The remainder with the dividend's sign does not depend on the divisor's sign.
        Op::SRem => remainder(e, a, divisor.cast_signed()),
        _ => modulo(e, a, divisor.cast_signed()),
    };
    Some(Replacement::Existing(result))
}

/// `a - quotient * divisor`
fn rest(e: &mut Editor<'_>, a: Value, quotient: Value, divisor: u32) -> Value {
    let taken = e.pure_with(Op::IMul, quotient, divisor);
    e.pure(Op::ISub, [a, taken])
}

/// The least `m` for which `m / 2^power` gives exact quotients of dividends up to `max`; `None` if it is not exact.
fn reciprocal(divisor: u32, power: u32, max: u32) -> Option<u64> {
    let wide = 1u128 << power;
    let factor = wide.div_ceil(divisor.into());
    let error = factor * u128::from(divisor) - wide;
    (u128::from(max) * error < wide).then_some(factor as u64)
}

/// The quotient of a dividend of at most `max` by a divisor of 3 or more that is not a power of two.
fn unsigned(e: &mut Editor<'_>, a: Value, divisor: u32, max: u32) -> Value {
    // The product fits in 32 bits.
    let fits = |factor: u64| factor * u64::from(max) <= u64::from(u32::MAX);
    let in_one_word =
        (1..32).find_map(|power| reciprocal(divisor, power, max).filter(|&m| fits(m)).map(|m| (power, m)));
    if let Some((power, factor)) = in_one_word {
        let product = e.pure_with(Op::IMul, a, factor as u32);
        return e.pure_with(Op::LShr, product, power);
    }
    // Divides by the power of two in the divisor first: a smaller dividend needs a smaller reciprocal.
    let twos = divisor.trailing_zeros();
    for before in [0, twos] {
        let (odd, max) = (divisor >> before, max >> before);
        let found = (0..32).find_map(|shift| {
            let factor = reciprocal(odd, 32 + shift, max)?;
            Some((shift, u32::try_from(factor).ok()?))
        });
        if let Some((shift, factor)) = found {
            let a = if before == 0 { a } else { e.pure_with(Op::LShr, a, before) };
            let high = e.pure_with(Op::UMulHigh, a, factor);
            return if shift == 0 { high } else { e.pure_with(Op::LShr, high, shift) };
        }
    }
    // A 33-bit factor: the topmost bit is an addition, done on halves so that it does not overflow.
    let shift = 32 - divisor.leading_zeros();
    let factor = (1u128 << (32 + shift)).div_ceil(divisor.into()) as u32;
    let high = e.pure_with(Op::UMulHigh, a, factor);
    let left = e.pure(Op::ISub, [a, high]);
    let half = e.pure_with(Op::LShr, left, 1);
    let sum = e.pure(Op::IAdd, [half, high]);
    e.pure_with(Op::LShr, sum, shift - 1)
}

/// The quotient by a divisor other than 0, 1 and -1.
fn signed(e: &mut Editor<'_>, a: Value, divisor: i32) -> Value {
    if divisor == i32::MIN {
        let min = e.constant(divisor);
        let equal = e.pure(Op::IEq, [a, min]);
        return e.pure(Op::BoolToInt, [equal]);
    }
    let magnitude = divisor.unsigned_abs();
    let quotient = if magnitude.is_power_of_two() {
        let rounded = towards_zero(e, a, magnitude);
        e.pure_with(Op::AShr, rounded, magnitude.trailing_zeros())
    } else {
        signed_product(e, a, magnitude)
    };
    if divisor < 0 { e.pure(Op::INeg, [quotient]) } else { quotient }
}

/// Adds `power - 1` to negative dividends, so that an arithmetic shift rounds the quotient towards zero.
fn towards_zero(e: &mut Editor<'_>, a: Value, power: u32) -> Value {
    let sign = e.pure_with(Op::AShr, a, 31);
    let more = e.pure_with(Op::LShr, sign, 32 - power.trailing_zeros());
    e.pure(Op::IAdd, [a, more])
}

fn signed_product(e: &mut Editor<'_>, a: Value, magnitude: u32) -> Value {
    // For negative dividends the product is slightly below the quotient, and the sign bit is added to round up. So the
    // least integer needs no larger reciprocal than the greatest.
    let found = (0..31).find_map(|shift| {
        let factor = reciprocal(magnitude, 32 + shift, i32::MAX.cast_unsigned())?;
        Some((shift, u32::try_from(factor).ok()?))
    });
    // A shift of at most 31 always suffices, with a factor below 2^32.
    let (shift, factor) = found.unwrap_or((31, u32::MAX));
    let mut quotient = e.pure_with(Op::SMulHigh, a, factor);
    if factor > i32::MAX.cast_unsigned() {
        // SMulHigh reads the factor as negative, which is 2^32 too small.
        quotient = e.pure(Op::IAdd, [quotient, a]);
    }
    if shift > 0 {
        quotient = e.pure_with(Op::AShr, quotient, shift);
    }
    let negative = e.pure_with(Op::LShr, a, 31);
    e.pure(Op::IAdd, [quotient, negative])
}

/// The remainder with the dividend's sign.
fn remainder(e: &mut Editor<'_>, a: Value, divisor: i32) -> Value {
    let magnitude = divisor.unsigned_abs();
    if magnitude.is_power_of_two() {
        // Rounded towards zero to a multiple of the divisor; for the least integer that is itself or 0.
        let rounded = towards_zero(e, a, magnitude);
        let multiple = e.pure_with(Op::And, rounded, magnitude.wrapping_neg());
        return e.pure(Op::ISub, [a, multiple]);
    }
    let quotient = signed_product(e, a, magnitude);
    rest(e, a, quotient, magnitude)
}

/// The remainder with the divisor's sign.
fn modulo(e: &mut Editor<'_>, a: Value, divisor: i32) -> Value {
    let rest = remainder(e, a, divisor);
    // All ones where dividend and divisor differ in sign. The negation cannot overflow: the remainder is not the least
    // integer, unless the divisor is 0.
    let toward = if divisor < 0 { e.pure(Op::INeg, [rest]) } else { rest };
    let differ = e.pure_with(Op::AShr, toward, 31);
    let more = e.pure_with(Op::And, differ, divisor.cast_unsigned());
    e.pure(Op::IAdd, [rest, more])
}

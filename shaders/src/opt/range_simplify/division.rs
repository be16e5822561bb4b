//! Divisions by constants as products with a reciprocal (Granlund and Montgomery, "Division by Invariant Integers using
//! Multiplication", 1994; Warren, "Hacker's Delight", chapter 10).
//!
//! With a reciprocal `m / 2^p` that is too large by `e / (c * 2^p)`, the quotient of `n` is right as long as `n * e` stays
//! below `2^p`. The less `n` can be, the smaller a reciprocal will do; with luck a product of one word holds it.

use crate::analysis::Range;
use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, New};

/// Divisors other than 0, 1 and -1, and than powers of two where `peephole` knows better.
pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, [a, b]: [Value; 2], range: Range) -> Option<New> {
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
        // The divisor's sign makes no difference to the remainder with the dividend's.
        Op::SRem => remainder(e, a, divisor.cast_signed()),
        _ => modulo(e, a, divisor.cast_signed()),
    };
    Some(New::Same(result))
}

/// `a - quotient * divisor`
fn rest(e: &mut Editor<'_>, a: Value, quotient: Value, divisor: u32) -> Value {
    let taken = e.pure_with(Op::IMul, quotient, divisor);
    e.pure(Op::ISub, [a, taken])
}

/// The least reciprocal for dividends up to `most` with `2^power` below the line, if it is exact enough.
fn reciprocal(divisor: u32, power: u32, most: u32) -> Option<u64> {
    let wide = 1u128 << power;
    let factor = wide.div_ceil(divisor.into());
    let error = factor * u128::from(divisor) - wide;
    (u128::from(most) * error < wide).then_some(factor as u64)
}

/// The quotient of a dividend of at most `most` by 3 or more, not a power of two.
fn unsigned(e: &mut Editor<'_>, a: Value, divisor: u32, most: u32) -> Value {
    // In one word.
    let fits = |factor: u64| factor * u64::from(most) <= u64::from(u32::MAX);
    let narrow = (1..32).find_map(|power| reciprocal(divisor, power, most).filter(|&m| fits(m)).map(|m| (power, m)));
    if let Some((power, factor)) = narrow {
        let product = e.pure_with(Op::IMul, a, factor as u32);
        return e.pure_with(Op::LShr, product, power);
    }
    // The divisor's factors of two first: they make the dividend smaller.
    let twos = divisor.trailing_zeros();
    for before in [0, twos] {
        let (odd, most) = (divisor >> before, most >> before);
        let found = (0..32).find_map(|shift| {
            let factor = reciprocal(odd, 32 + shift, most)?;
            Some((shift, u32::try_from(factor).ok()?))
        });
        if let Some((shift, factor)) = found {
            let a = if before == 0 { a } else { e.pure_with(Op::LShr, a, before) };
            let high = e.pure_with(Op::UMulHigh, a, factor);
            return if shift == 0 { high } else { e.pure_with(Op::LShr, high, shift) };
        }
    }
    // A factor of 33 bits: the topmost is added by hand, half of it at a time lest it overflows.
    let shift = 32 - divisor.leading_zeros();
    let factor = (1u128 << (32 + shift)).div_ceil(divisor.into()) as u32;
    let high = e.pure_with(Op::UMulHigh, a, factor);
    let left = e.pure(Op::ISub, [a, high]);
    let half = e.pure_with(Op::LShr, left, 1);
    let sum = e.pure(Op::IAdd, [half, high]);
    e.pure_with(Op::LShr, sum, shift - 1)
}

/// The quotient by a number other than 0, 1 and -1.
fn signed(e: &mut Editor<'_>, a: Value, divisor: i32) -> Value {
    if divisor == i32::MIN {
        let least = e.constant(divisor);
        let equal = e.pure(Op::IEq, [a, least]);
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

/// What rounds to the quotient by a power of two when it is cut off below: one less than the power more, if negative.
fn towards_zero(e: &mut Editor<'_>, a: Value, power: u32) -> Value {
    let sign = e.pure_with(Op::AShr, a, 31);
    let more = e.pure_with(Op::LShr, sign, 32 - power.trailing_zeros());
    e.pure(Op::IAdd, [a, more])
}

fn signed_product(e: &mut Editor<'_>, a: Value, magnitude: u32) -> Value {
    // Negative quotients are rounded up, from a little less than they are: the least integer needs no more than the greatest.
    let found = (0..31).find_map(|shift| {
        let factor = reciprocal(magnitude, 32 + shift, i32::MAX.cast_unsigned())?;
        Some((shift, u32::try_from(factor).ok()?))
    });
    // 31 bits of shift are always enough; the largest factor is below 2^32.
    let (shift, factor) = found.unwrap_or((31, u32::MAX));
    let mut quotient = e.pure_with(Op::SMulHigh, a, factor);
    if factor > i32::MAX.cast_unsigned() {
        // The factor was taken as negative: 2^32 too small.
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
        // Rounded to a multiple; of the least integer that is itself or 0.
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
    // All ones where the signs differ; the remainder is not the least integer, unless the divisor is 0.
    let toward = if divisor < 0 { e.pure(Op::INeg, [rest]) } else { rest };
    let differ = e.pure_with(Op::AShr, toward, 31);
    let more = e.pure_with(Op::And, differ, divisor.cast_unsigned());
    e.pure(Op::IAdd, [rest, more])
}

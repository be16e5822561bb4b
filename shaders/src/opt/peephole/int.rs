//! Peephole rules for integer addition, multiplication and division.

use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    match (op, args) {
        (Op::IAdd, &[a, b]) => sum(e, a, b),
        (Op::ISub, &[a, b]) => difference(e, a, b),
        (Op::IMul, &[a, b]) => product(e, a, b),
        (Op::INeg, &[a]) => negation(e, a),
        (Op::SAbs, &[a]) => match (e.args::<1>(a, Op::SAbs), e.args::<1>(a, Op::INeg)) {
            (Some(_), _) => Some(Existing(a)),
            (_, Some([x])) => e.becomes(Op::SAbs, [x]),
            _ => None,
        },
        (Op::UMulHigh | Op::SMulHigh, &[a, b]) => high_word(e, op, a, b),
        (Op::UDiv | Op::UMod | Op::SDiv | Op::SRem | Op::SMod, &[a, b]) => division(e, op, a, b),
        (Op::UCarry | Op::UBorrow, &[_, b]) if e.bits(b) == Some(0) => e.becomes_constant(0u32),
        _ => None,
    }
}

fn sum(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    if let Some(c) = e.bits(b) {
        if c == 0 {
            return Some(Existing(a));
        }
        if let Some((x, more)) = e.with_constant(a, Op::IAdd) {
            return e.becomes_with(Op::IAdd, x, c.wrapping_add(more));
        }
        let [from, x] = e.args(a, Op::ISub)?;
        let from = e.bits(from)?.wrapping_add(c);
        let from = e.constant(from);
        return e.becomes(Op::ISub, [from, x]);
    }
    for (a, b) in [(a, b), (b, a)] {
        if let Some([x]) = e.args(a, Op::INeg) {
            return e.becomes(Op::ISub, [b, x]);
        }
        if let Some([x, y]) = e.args(a, Op::ISub)
            && y == b
        {
            return Some(Existing(x));
        }
    }
    None
}

fn difference(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    if a == b {
        return e.becomes_constant(0u32);
    }
    if let Some(c) = e.bits(b) {
        return if c == 0 { Some(Existing(a)) } else { e.becomes_with(Op::IAdd, a, c.wrapping_neg()) };
    }
    if let Some(c) = e.bits(a) {
        if c == 0 {
            return e.becomes(Op::INeg, [b]);
        }
        if let Some((x, less)) = e.with_constant(b, Op::IAdd) {
            let c = e.constant(c.wrapping_sub(less));
            return e.becomes(Op::ISub, [c, x]);
        }
    }
    if let Some([x]) = e.args(b, Op::INeg) {
        return e.becomes(Op::IAdd, [a, x]);
    }
    if let Some((x, mask)) = e.with_constant(b, Op::And)
        && x == a
    {
        return e.becomes_with(Op::And, a, !mask);
    }
    match e.args(a, Op::IAdd) {
        Some([x, y]) if y == b => return Some(Existing(x)),
        Some([x, y]) if x == b => return Some(Existing(y)),
        _ => {}
    }
    match e.args(b, Op::IAdd) {
        Some([x, y]) if x == a => e.becomes(Op::INeg, [y]),
        Some([x, y]) if y == a => e.becomes(Op::INeg, [x]),
        _ => None,
    }
}

fn product(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    let c = e.bits(b)?;
    match c {
        0 => return e.becomes_constant(0u32),
        1 => return Some(Existing(a)),
        u32::MAX => return e.becomes(Op::INeg, [a]),
        c if c.is_power_of_two() => return e.becomes_with(Op::Shl, a, c.trailing_zeros()),
        _ => {}
    }
    if let Some((x, factor)) = e.with_constant(a, Op::IMul) {
        return e.becomes_with(Op::IMul, x, factor.wrapping_mul(c));
    }
    if let Some((x, by)) = e.with_constant(a, Op::Shl) {
        return e.becomes_with(Op::IMul, x, c.wrapping_shl(by));
    }
    let [x] = e.args(a, Op::INeg)?;
    e.becomes_with(Op::IMul, x, c.wrapping_neg())
}

fn negation(e: &mut Editor<'_>, a: Value) -> Option<Replacement> {
    if let Some([x]) = e.args(a, Op::INeg) {
        return Some(Existing(x));
    }
    let [x, y] = e.args(a, Op::ISub)?;
    e.becomes(Op::ISub, [y, x])
}

fn high_word(e: &mut Editor<'_>, op: Op, a: Value, b: Value) -> Option<Replacement> {
    match (op, e.bits(b)?) {
        (_, 0) | (Op::UMulHigh, 1) => e.becomes_constant(0u32),
        (Op::SMulHigh, 1) => e.becomes_with(Op::AShr, a, 31),
        (Op::UMulHigh, c) if c.is_power_of_two() => e.becomes_with(Op::LShr, a, 32 - c.trailing_zeros()),
        _ => None,
    }
}

/// Divisors with a simple replacement; `range_simplify` handles the others, with the sign of the dividend known.
fn division(e: &mut Editor<'_>, op: Op, a: Value, b: Value) -> Option<Replacement> {
    if e.bits(a) == Some(0) {
        return e.becomes_constant(0u32);
    }
    let c = e.bits(b)?;
    match (op, c) {
        (_, 0) => e.becomes_constant(0u32),
        (Op::UDiv | Op::SDiv, 1) => Some(Existing(a)),
        (Op::SDiv, u32::MAX) => e.becomes(Op::INeg, [a]),
        (Op::UMod | Op::SRem | Op::SMod, 1) | (Op::SRem | Op::SMod, u32::MAX) => e.becomes_constant(0u32),
        (Op::UDiv, c) if c.is_power_of_two() => e.becomes_with(Op::LShr, a, c.trailing_zeros()),
        (Op::UMod, c) if c.is_power_of_two() => e.becomes_with(Op::And, a, c - 1),
        // The remainder with a positive divisor's sign; 2^31 as a signed divisor is negative.
        (Op::SMod, c) if c.is_power_of_two() && c < 1 << 31 => e.becomes_with(Op::And, a, c - 1),
        (Op::UDiv, c) => {
            let (x, first) = e.with_constant(a, Op::UDiv)?;
            match first.checked_mul(c) {
                Some(divisor) => e.becomes_with(Op::UDiv, x, divisor),
                None => e.becomes_constant(0u32),
            }
        }
        _ => None,
    }
}

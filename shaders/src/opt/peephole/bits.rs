//! Bitwise and, or, exclusive or and complement.

use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    match (op, args) {
        (Op::And, &[a, b]) => match e.bits(b) {
            Some(mask) => and_constant(e, a, b, mask),
            None => and_or(e, Op::And, a, b, 0),
        },
        (Op::Or, &[a, b]) => match e.bits(b) {
            Some(0) => Some(Existing(a)),
            Some(u32::MAX) => Some(Existing(b)),
            Some(c) => {
                let (x, more) = e.with_constant(a, Op::Or)?;
                e.becomes_with(Op::Or, x, c | more)
            }
            None => disjoin_masks(e, a, b).or_else(|| and_or(e, Op::Or, a, b, u32::MAX)),
        },
        (Op::Xor, &[a, b]) => match e.bits(b) {
            Some(c) => xor_constant(e, a, c),
            None => xor(e, a, b),
        },
        (Op::Not, &[a]) => {
            if let Some([x]) = e.args(a, Op::Not) {
                return Some(Existing(x));
            }
            let (x, c) = e.with_constant(a, Op::Xor)?;
            e.becomes_with(Op::Xor, x, !c)
        }
        _ => None,
    }
}

/// `(x & some) | (x & more)`
fn disjoin_masks(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    let (x, some) = e.with_constant(a, Op::And)?;
    let (y, more) = e.with_constant(b, Op::And)?;
    if x == y { e.becomes_with(Op::And, x, some | more) } else { None }
}

/// `and` and `or` without a constant operand; `opposite` is the result for a value and its complement.
fn and_or(e: &mut Editor<'_>, op: Op, a: Value, b: Value, opposite: u32) -> Option<Replacement> {
    if a == b {
        return Some(Existing(a));
    }
    for (a, b) in [(a, b), (b, a)] {
        if let Some([x, y]) = e.args(a, op)
            && (x == b || y == b)
        {
            return Some(Existing(a));
        }
        if e.args(a, Op::Not) == Some([b]) {
            return e.becomes_constant(opposite);
        }
    }
    None
}

/// `a & mask`; `b` is the mask's value.
fn and_constant(e: &mut Editor<'_>, a: Value, b: Value, mask: u32) -> Option<Replacement> {
    match mask {
        0 => return Some(Existing(b)),
        u32::MAX => return Some(Existing(a)),
        _ => {}
    }
    if let Some((x, more)) = e.with_constant(a, Op::And) {
        return e.becomes_with(Op::And, x, mask & more);
    }
    if let Some((x, set)) = e.with_constant(a, Op::Or) {
        match set & mask {
            0 => return e.becomes(Op::And, [x, b]),
            kept if kept == mask => return Some(Existing(b)),
            _ => {}
        }
    }
    // Bits of `a` that can be 1.
    let possible = if let Some((_, amount)) = e.with_constant(a, Op::LShr) {
        u32::MAX.wrapping_shr(amount)
    } else if let Some((_, amount)) = e.with_constant(a, Op::Shl) {
        u32::MAX.wrapping_shl(amount)
    } else {
        let [_] = e.args(a, Op::BoolToInt)?;
        1
    };
    match mask & possible {
        0 => e.becomes_constant(0u32),
        kept if kept == possible => Some(Existing(a)),
        _ => None,
    }
}

/// `a ^ c`
fn xor_constant(e: &mut Editor<'_>, a: Value, c: u32) -> Option<Replacement> {
    match c {
        0 => return Some(Existing(a)),
        u32::MAX => return e.becomes(Op::Not, [a]),
        _ => {}
    }
    if let Some((x, more)) = e.with_constant(a, Op::Xor) {
        return e.becomes_with(Op::Xor, x, c ^ more);
    }
    let [x] = e.args(a, Op::Not)?;
    e.becomes_with(Op::Xor, x, !c)
}

fn xor(e: &mut Editor<'_>, a: Value, b: Value) -> Option<Replacement> {
    if a == b {
        return e.becomes_constant(0u32);
    }
    for (a, b) in [(a, b), (b, a)] {
        // `x ^ (x & mask)` clears the bits of the mask.
        if let Some((x, mask)) = e.with_constant(a, Op::And)
            && x == b
        {
            return e.becomes_with(Op::And, x, !mask);
        }
        match e.args(a, Op::Xor) {
            Some([x, y]) if y == b => return Some(Existing(x)),
            Some([x, y]) if x == b => return Some(Existing(y)),
            _ => {}
        }
        if e.args(a, Op::Not) == Some([b]) {
            return e.becomes_constant(u32::MAX);
        }
    }
    None
}

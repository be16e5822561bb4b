//! Minimum, maximum and clamp.

use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    match (op, args) {
        (Op::UMin | Op::UMax | Op::SMin | Op::SMax | Op::FMin | Op::FMax, &[a, b]) => min_max(e, op, a, b),
        (Op::UClamp, &[a, low, high]) => clamp(e, [Op::UMin, Op::UMax], [a, low, high], [0, u32::MAX]),
        (Op::SClamp, &[a, low, high]) => {
            let limits = [i32::MIN, i32::MAX].map(i32::cast_unsigned);
            clamp(e, [Op::SMin, Op::SMax], [a, low, high], limits)
        }
        _ => None,
    }
}

fn min_max(e: &mut Editor<'_>, op: Op, a: Value, b: Value) -> Option<Replacement> {
    if a == b {
        return Some(Existing(a));
    }
    if let Some([x, y]) = e.args::<2>(b, op)
        // Of `fmin(y, fmin(x, y))` with two zeros the result is `y`, that of the inner operation `x`.
        && (a == x || a == y && op.is_commutative())
    {
        return Some(Existing(b));
    }
    if let Some([x, y]) = e.args::<2>(a, op) {
        if b == x || b == y {
            // The inner operation has chosen already, also among zeros and NaN.
            return Some(Existing(a));
        }
        if let Some(both) = e.fold(op, &[y, b]) {
            return e.becomes(op, [x, both]);
        }
    }
    let neutral = match op {
        Op::UMin => u32::MAX,
        Op::UMax => 0,
        Op::SMin => i32::MAX.cast_unsigned(),
        Op::SMax => i32::MIN.cast_unsigned(),
        _ => return None,
    };
    match e.bits(b)? {
        c if c == neutral => Some(Existing(a)),
        // The complement of the neutral value is the absorbing value.
        c if c == !neutral => Some(Existing(b)),
        _ => None,
    }
}

/// `min(max(a, low), high)`, where a limit may have no effect; `lowest` and `highest` are the limits of the type.
fn clamp(
    e: &mut Editor<'_>,
    [min, max]: [Op; 2],
    [a, low, high]: [Value; 3],
    [lowest, highest]: [u32; 2],
) -> Option<Replacement> {
    if e.bits(low) == Some(lowest) || low == high {
        return if low == high { Some(Existing(high)) } else { e.becomes(min, [a, high]) };
    }
    if e.bits(high) == Some(highest) {
        return e.becomes(max, [a, low]);
    }
    let crossed = e.fold(max, &[low, high])?;
    (e.bits(crossed) == e.bits(low)).then_some(Existing(high))
}

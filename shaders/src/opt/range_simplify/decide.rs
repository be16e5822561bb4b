//! Operations whose result, or a cheaper form, follows from the ranges of their operands.

use crate::analysis::Range;
use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn unary(e: &mut Editor<'_>, op: Op, a: Value, range: Range) -> Option<Replacement> {
    match op {
        Op::SAbs if range.is_natural() => Some(Existing(a)),
        // Machines convert signed integers at least as fast as unsigned ones.
        Op::UIntToFloat if range.is_natural() => e.becomes(Op::SIntToFloat, [a]),
        _ => None,
    }
}

/// A `clamp` of a value that is always within the limits.
pub(super) fn clamp(op: Op, value: Value, [a, low, high]: [Range; 3]) -> Option<Replacement> {
    let non_negative = [a, low, high].iter().all(|range| range.is_natural());
    let applies = op == Op::UClamp || op == Op::SClamp && non_negative;
    (applies && low.high <= a.low && a.high <= high.low).then_some(Existing(value))
}

pub(super) fn binary(e: &mut Editor<'_>, op: Op, [a, b]: [Value; 2], [x, y]: [Range; 2]) -> Option<Replacement> {
    if let Some(truth) = Range::compare(op, x, y) {
        return e.becomes_constant(truth);
    }
    let non_negative = x.is_natural() && y.is_natural();
    match op {
        Op::And => and_mask(e, [a, b], x, e.bits(b)?),
        Op::UMin | Op::UMax => min_or_max(op == Op::UMin, [a, b], x, y),
        Op::SMin | Op::SMax if non_negative => min_or_max(op == Op::SMin, [a, b], x, y),
        Op::UMod if x.high < y.low => Some(Existing(a)),
        Op::UDiv if x.high < y.low => e.becomes_constant(0u32),
        Op::SDiv if non_negative => e.becomes(Op::UDiv, [a, b]),
        Op::SRem | Op::SMod if non_negative => e.becomes(Op::UMod, [a, b]),
        Op::AShr if x.is_natural() => e.becomes(Op::LShr, [a, b]),
        Op::UCarry if x.high.checked_add(y.high).is_some() => e.becomes_constant(0u32),
        Op::UBorrow if y.high <= x.low => e.becomes_constant(0u32),
        _ => None,
    }
}

/// The minimum or maximum of two values in disjoint ranges.
fn min_or_max(is_min: bool, [a, b]: [Value; 2], x: Range, y: Range) -> Option<Replacement> {
    if x.high <= y.low {
        return Some(Existing(if is_min { a } else { b }));
    }
    (y.high <= x.low).then_some(Existing(if is_min { b } else { a }))
}

/// `a & mask`, where the mask keeps all bits of `a` that can be set, or none of them.
fn and_mask(e: &mut Editor<'_>, [a, _]: [Value; 2], x: Range, mask: u32) -> Option<Replacement> {
    let below = u32::MAX.checked_shr(x.high.leading_zeros()).unwrap_or(0);
    let possible = below & u32::MAX.checked_shl(x.zeros.into()).unwrap_or(0);
    match possible & mask {
        0 => e.becomes_constant(0u32),
        all if all == possible => Some(Existing(a)),
        _ => None,
    }
}

//! Facts from branch conditions: ranges of compared values where a condition is known to be true or false.

use smallvec::SmallVec;

use super::range::Range;
use crate::ir::{InstData, Kernel, Op, Value, ValueDef};

/// Values with their ranges.
pub(super) type Facts = SmallVec<[(Value, Range); 4]>;

/// Nesting of `and`, `or` and `not` that is followed.
const MAX_DEPTH: u32 = 4;

/// Collects the facts that follow from `condition == truth`; `range` gives the ranges known so far.
pub(super) fn facts(kernel: &Kernel, condition: Value, truth: bool, range: impl Fn(Value) -> Range) -> Facts {
    let mut facts = Facts::new();
    gather(kernel, condition, truth, MAX_DEPTH, &range, &mut facts);
    facts
}

fn gather(
    kernel: &Kernel,
    condition: Value,
    truth: bool,
    depth: u32,
    range: &impl Fn(Value) -> Range,
    facts: &mut Facts,
) {
    let ValueDef::Result { inst, .. } = kernel.values[condition] else { return };
    let InstData::Pure { op, ref args } = kernel.insts[inst] else { return };
    match (op, &args[..]) {
        (Op::LNot, &[a]) if depth > 0 => gather(kernel, a, !truth, depth - 1, range, facts),
        (Op::LAnd, &[a, b]) if truth && depth > 0 => {
            gather(kernel, a, true, depth - 1, range, facts);
            gather(kernel, b, true, depth - 1, range, facts);
        }
        (Op::LOr, &[a, b]) if !truth && depth > 0 => {
            gather(kernel, a, false, depth - 1, range, facts);
            gather(kernel, b, false, depth - 1, range, facts);
        }
        (_, &[a, b]) => {
            if let Some((of_a, of_b)) = comparison(op, truth, range(a), range(b)) {
                facts.extend([(a, of_a), (b, of_b)]);
            }
        }
        _ => {}
    }
}

/// The ranges of the operands of a comparison that yields `truth`; `None` if it implies nothing.
fn comparison(op: Op, truth: bool, a: Range, b: Range) -> Option<(Range, Range)> {
    let swap = |(b, a)| (a, b);
    match (op, truth) {
        (Op::ULt, true) => less(a, b),
        (Op::ULt, false) => at_most(b, a).map(swap),
        (Op::ULe, true) => at_most(a, b),
        (Op::ULe, false) => less(b, a).map(swap),
        (Op::SLt, true) => signed(a, b, less),
        (Op::SLt, false) => signed(b, a, at_most).map(swap),
        (Op::SLe, true) => signed(a, b, at_most),
        (Op::SLe, false) => signed(b, a, less).map(swap),
        (Op::IEq, true) | (Op::INe, false) => Some((a.meet(b), b.meet(a))),
        (Op::IEq, false) | (Op::INe, true) => Some((without(a, b), without(b, a))),
        _ => None,
    }
}

/// `a < b`.
fn less(a: Range, b: Range) -> Option<(Range, Range)> {
    let (max, min) = (b.high.checked_sub(1)?, a.low.checked_add(1)?);
    Some((a.meet(Range::up_to(max)), b.meet(Range::between(min, u32::MAX))))
}

/// `a <= b`.
fn at_most(a: Range, b: Range) -> Option<(Range, Range)> {
    Some((a.meet(Range::up_to(b.high)), b.meet(Range::between(a.low, u32::MAX))))
}

/// A signed comparison whose lesser side is not negative: then neither is the other, and the comparison is unsigned.
fn signed(a: Range, b: Range, unsigned: impl Fn(Range, Range) -> Option<(Range, Range)>) -> Option<(Range, Range)> {
    if !a.is_natural() {
        return None;
    }
    unsigned(a, b.meet(Range::up_to(i32::MAX.cast_unsigned())))
}

/// The range without the only value of `other`, if that is one of its bounds.
fn without(range: Range, other: Range) -> Range {
    match other.value() {
        Some(value) if value == range.low && range.low < range.high => Range { low: range.low + 1, ..range },
        Some(value) if value == range.high && range.low < range.high => {
            Range { high: range.high - 1, ..range }.with_zeros(range.zeros.into())
        }
        _ => range,
    }
}

//! Integer comparisons. `<=` with a constant becomes `<` where possible.

use crate::ir::{InstData, Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    let &[a, b] = args else { return None };
    match op {
        Op::IEq | Op::INe => equality(e, op, a, b),
        Op::ULt | Op::ULe => order(e, op, a, b, [0, u32::MAX]),
        Op::SLt | Op::SLe => order(e, op, a, b, [i32::MIN, i32::MAX].map(i32::cast_unsigned)),
        _ => None,
    }
}

fn equality(e: &mut Editor<'_>, op: Op, a: Value, b: Value) -> Option<Replacement> {
    if a == b {
        return e.becomes_constant(op == Op::IEq);
    }
    if let Some(c) = e.bits(b) {
        return equal_to(e, op, a, c).or_else(|| of_selected(e, op, [a, b], 0));
    }
    // `x + y == z + y`
    let ([x, y], [z, w]) = (e.args::<2>(a, Op::IAdd)?, e.args::<2>(b, Op::IAdd)?);
    if y == w { e.becomes(op, [x, z]) } else { None }
}

/// `a == c` or `a != c`
fn equal_to(e: &mut Editor<'_>, op: Op, a: Value, c: u32) -> Option<Replacement> {
    if let Some((x, more)) = e.with_constant(a, Op::IAdd) {
        return e.becomes_with(op, x, c.wrapping_sub(more));
    }
    if let Some((x, flip)) = e.with_constant(a, Op::Xor) {
        return e.becomes_with(op, x, c ^ flip);
    }
    if let Some([x]) = e.args(a, Op::Not) {
        return e.becomes_with(op, x, !c);
    }
    if let Some([x]) = e.args(a, Op::INeg) {
        return e.becomes_with(op, x, c.wrapping_neg());
    }
    if c == 0
        && let Some([x, y]) = e.args::<2>(a, Op::ISub).or(e.args(a, Op::Xor))
    {
        return e.becomes(op, [x, y]);
    }
    None
}

/// `<` and `<=`; `lowest` and `highest` are the limits of the type.
fn order(e: &mut Editor<'_>, op: Op, a: Value, b: Value, [lowest, highest]: [u32; 2]) -> Option<Replacement> {
    let strict = matches!(op, Op::ULt | Op::SLt);
    if a == b {
        return e.becomes_constant(!strict);
    }
    match (e.bits(a), e.bits(b)) {
        (Some(c), _) if c == highest => {
            return if strict { e.becomes_constant(false) } else { e.becomes(Op::IEq, [b, a]) };
        }
        (Some(c), _) if c == lowest => {
            return if strict { e.becomes(Op::INe, [b, a]) } else { e.becomes_constant(true) };
        }
        (_, Some(c)) if c == lowest => {
            return if strict { e.becomes_constant(false) } else { e.becomes(Op::IEq, [a, b]) };
        }
        (_, Some(c)) if c == highest => {
            return if strict { e.becomes(Op::INe, [a, b]) } else { e.becomes_constant(true) };
        }
        _ => {}
    }
    let less = if op == Op::ULe { Op::ULt } else { Op::SLt };
    match (strict, e.bits(a), e.bits(b)) {
        // The limits were handled above, so the constant does not wrap.
        (false, Some(c), _) => {
            let c = e.constant(c.wrapping_sub(1));
            e.becomes(less, [c, b])
        }
        (false, _, Some(c)) => e.becomes_with(less, a, c.wrapping_add(1)),
        (true, _, Some(c)) if c == lowest.wrapping_add(1) => e.becomes_with(Op::IEq, a, lowest),
        (true, Some(c), _) if c == highest.wrapping_sub(1) => e.becomes_with(Op::IEq, b, highest),
        (true, Some(_), _) => of_selected(e, op, [b, a], 1),
        (true, _, Some(_)) => of_selected(e, op, [a, b], 0),
        _ => None,
    }
}

/// A comparison of a selected constant with a constant is the select's condition, its negation, or constant. `position`
/// is the operand index of the selected value.
fn of_selected(e: &mut Editor<'_>, op: Op, [chosen, constant]: [Value; 2], position: usize) -> Option<Replacement> {
    let constant = e.bits(constant)?;
    let (condition, values) = match *e.definition(chosen)? {
        InstData::Pure { op: Op::BoolToInt, ref args } => (args[0], [1, 0]),
        InstData::Select { condition, then, otherwise } => (condition, [e.bits(then)?, e.bits(otherwise)?]),
        _ => return None,
    };
    let compare = |value: u32| {
        let pair = if position == 0 { [value, constant] } else { [constant, value] };
        op.fold(&pair.map(u64::from)) != 0
    };
    match values.map(compare) {
        [true, true] => e.becomes_constant(true),
        [false, false] => e.becomes_constant(false),
        [true, false] => Some(Existing(condition)),
        [false, true] => e.becomes(Op::LNot, [condition]),
    }
}

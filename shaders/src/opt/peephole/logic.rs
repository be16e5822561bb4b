//! Truth values.

use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    match (op, args) {
        (Op::LAnd, &[a, b]) => and_or(e, op, a, b, false),
        (Op::LOr, &[a, b]) => and_or(e, op, a, b, true),
        (Op::LXor, &[a, b]) if a == b => e.becomes_constant(false),
        (Op::LXor, &[a, b]) => match e.bits(b)? {
            0 => Some(Existing(a)),
            _ => e.becomes(Op::LNot, [a]),
        },
        (Op::LNot, &[a]) => opposite(e, a),
        _ => None,
    }
}

/// `land` and `lor`; `absorbing` is the operand value that determines the result.
fn and_or(e: &mut Editor<'_>, op: Op, a: Value, b: Value, absorbing: bool) -> Option<Replacement> {
    if a == b {
        return Some(Existing(a));
    }
    if let Some(bit) = e.bits(b) {
        return Some(Existing(if bit == u32::from(absorbing) { b } else { a }));
    }
    for (a, b) in [(a, b), (b, a)] {
        if let Some([x, y]) = e.args(a, op)
            && (x == b || y == b)
        {
            return Some(Existing(a));
        }
        if e.args(a, Op::LNot) == Some([b]) {
            return e.becomes_constant(absorbing);
        }
    }
    None
}

/// The negation of a comparison is the opposite comparison.
fn opposite(e: &mut Editor<'_>, a: Value) -> Option<Replacement> {
    if let Some([x]) = e.args(a, Op::LNot) {
        return Some(Existing(x));
    }
    let &crate::ir::InstData::Pure { op, ref args } = e.definition(a)? else { return None };
    let &[x, y] = &args[..] else { return None };
    let (op, args) = match op {
        Op::IEq => (Op::INe, [x, y]),
        Op::INe => (Op::IEq, [x, y]),
        Op::ULt => (Op::ULe, [y, x]),
        Op::ULe => (Op::ULt, [y, x]),
        Op::SLt => (Op::SLe, [y, x]),
        Op::SLe => (Op::SLt, [y, x]),
        Op::FOrdEq => (Op::FUnordNe, [x, y]),
        Op::FOrdNe => (Op::FUnordEq, [x, y]),
        Op::FUnordEq => (Op::FOrdNe, [x, y]),
        Op::FUnordNe => (Op::FOrdEq, [x, y]),
        Op::FOrdLt => (Op::FUnordLe, [y, x]),
        Op::FOrdLe => (Op::FUnordLt, [y, x]),
        Op::FUnordLt => (Op::FOrdLe, [y, x]),
        Op::FUnordLe => (Op::FOrdLt, [y, x]),
        _ => return None,
    };
    e.becomes(op, args)
}

//! Selects.

use crate::ir::{InstData, Op, Type, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, condition: Value, then: Value, otherwise: Value) -> Option<Replacement> {
    if then == otherwise {
        return Some(Existing(then));
    }
    if let Some(bit) = e.bits(condition) {
        return Some(Existing(if bit == 0 { otherwise } else { then }));
    }
    if let Some([condition]) = e.args(condition, Op::LNot) {
        return choose(condition, otherwise, then);
    }
    if let Some((inner, first, _)) = selected(e, then)
        && inner == condition
    {
        return choose(condition, first, otherwise);
    }
    if let Some((inner, _, second)) = selected(e, otherwise)
        && inner == condition
    {
        return choose(condition, then, second);
    }
    match e.ty(then) {
        Type::Bool => truth(e, condition, then, otherwise),
        Type::I32 => integer(e, condition, then, otherwise),
        Type::F32 | Type::Buffer => None,
    }
}

fn choose(condition: Value, then: Value, otherwise: Value) -> Option<Replacement> {
    Some(Replacement::Inst(InstData::Select { condition, then, otherwise }))
}

fn selected(e: &Editor<'_>, value: Value) -> Option<(Value, Value, Value)> {
    match *e.definition(value)? {
        InstData::Select { condition, then, otherwise } => Some((condition, then, otherwise)),
        _ => None,
    }
}

fn truth(e: &mut Editor<'_>, condition: Value, then: Value, otherwise: Value) -> Option<Replacement> {
    // An operand that is the condition itself has a known value when it is selected.
    let then = if then == condition { Some(1) } else { e.bits(then) }.ok_or(then);
    let otherwise = if otherwise == condition { Some(0) } else { e.bits(otherwise) }.ok_or(otherwise);
    match (then, otherwise) {
        (Ok(1), Ok(0)) => Some(Existing(condition)),
        (Ok(0), Ok(1)) => e.becomes(Op::LNot, [condition]),
        (Ok(bit), Ok(_)) => e.becomes_constant(bit != 0),
        (Ok(1), Err(otherwise)) => e.becomes(Op::LOr, [condition, otherwise]),
        (Err(then), Ok(0)) => e.becomes(Op::LAnd, [condition, then]),
        (Ok(_), Err(otherwise)) => {
            let not = e.pure(Op::LNot, [condition]);
            e.becomes(Op::LAnd, [not, otherwise])
        }
        (Err(then), Ok(_)) => {
            let not = e.pure(Op::LNot, [condition]);
            e.becomes(Op::LOr, [not, then])
        }
        (Err(_), Err(_)) => None,
    }
}

fn integer(e: &mut Editor<'_>, condition: Value, then: Value, otherwise: Value) -> Option<Replacement> {
    match (e.bits(then), e.bits(otherwise)) {
        (Some(1), Some(0)) => return e.becomes(Op::BoolToInt, [condition]),
        (Some(0), Some(1)) => {
            let not = e.pure(Op::LNot, [condition]);
            return e.becomes(Op::BoolToInt, [not]);
        }
        _ => {}
    }
    if let Some(new) = of_truths(e, condition, then, otherwise) {
        return Some(new);
    }
    let &InstData::Pure { op, ref args } = e.definition(condition)? else { return None };
    let &[a, b] = &args[..] else { return None };
    let (straight, crossed) = ([a, b] == [then, otherwise], [b, a] == [then, otherwise]);
    if !straight && !crossed {
        return None;
    }
    let [min, max] = match op {
        Op::ULt | Op::ULe => [Op::UMin, Op::UMax],
        Op::SLt | Op::SLe => [Op::SMin, Op::SMax],
        // `a == b ? a : b` is `b`; with `!=` it is `a`.
        Op::IEq => return Some(Existing(otherwise)),
        Op::INe => return Some(Existing(then)),
        _ => return None,
    };
    e.becomes(if straight { min } else { max }, [a, b])
}

/// A select between converted truth values becomes a converted logical operation.
fn of_truths(e: &mut Editor<'_>, condition: Value, then: Value, otherwise: Value) -> Option<Replacement> {
    let truth = match (e.args(then, Op::BoolToInt), e.args(otherwise, Op::BoolToInt)) {
        (Some([then]), None) => match e.bits(otherwise)? {
            0 => e.pure(Op::LAnd, [condition, then]),
            1 => {
                let not = e.pure(Op::LNot, [condition]);
                e.pure(Op::LOr, [not, then])
            }
            _ => return None,
        },
        (None, Some([otherwise])) => match e.bits(then)? {
            0 => {
                let not = e.pure(Op::LNot, [condition]);
                e.pure(Op::LAnd, [not, otherwise])
            }
            1 => e.pure(Op::LOr, [condition, otherwise]),
            _ => return None,
        },
        (Some([then]), Some([otherwise])) => e.emit(InstData::Select { condition, then, otherwise }, Type::Bool),
        (None, None) => return None,
    };
    e.becomes(Op::BoolToInt, [truth])
}

//! Pure operations: folded where their operands are known, otherwise computed by the litmus program.

use std::rc::Rc;

use spelter_memory_model::program::{Binary, BranchCondition, Comparison, Operand};
use spelter_shaders::ir::Op;

use super::code::{Code, Val, negated, of_operand};

/// The result of an operation.
pub(super) fn apply(code: &mut Code, op: Op, args: &[Val]) -> Val {
    let known: Option<Vec<u64>> =
        args.iter().map(|arg| if let Val::Number(bits) = arg { Some(*bits) } else { None }).collect();
    if let Some(bits) = known {
        return Val::Number(op.fold(&bits));
    }
    match op {
        Op::FloatBits | Op::FloatFromBits => args[0].clone(),
        Op::LNot => match &args[0] {
            Val::Compare(comparison, a, b) => Val::Compare(negated(*comparison), a.clone(), b.clone()),
            other => truth(code, other).map_or_else(Val::Unknown, |bit| Val::Compare(Comparison::Equal, bit, zero())),
        },
        _ => symbolic(code, op, args).unwrap_or_else(Val::Unknown),
    }
}

fn zero() -> Operand {
    Operand::Constant(0)
}

/// A bool as 0 or 1.
fn truth(code: &mut Code, value: &Val) -> Result<Operand, Rc<str>> {
    code.operand(value)
}

fn symbolic(code: &mut Code, op: Op, args: &[Val]) -> Result<Val, Rc<str>> {
    let mut operands = Vec::new();
    for arg in args {
        operands.push(code.operand(arg)?);
    }
    let unsupported = || -> Rc<str> { format!("the result of `{}` on a value that it loads", op.name()).into() };
    let [a, b] = match &operands[..] {
        [a] => [a.clone(), zero()],
        [a, b] => [a.clone(), b.clone()],
        _ => return Err(unsupported()),
    };
    // A shift by a constant is a product or quotient.
    let power = |b: &Operand| match b {
        Operand::Constant(shift @ 0..32) => Some(Operand::Constant(1 << shift)),
        _ => None,
    };
    let divisor = |b: &Operand| matches!(b, Operand::Constant(1..)).then(|| b.clone());
    let compare = |comparison, a, b| Ok(Val::Compare(comparison, a, b));
    let result = match op {
        Op::IAdd => code.wrapped(Binary::Add, a, b),
        Op::ISub => code.wrapped(Binary::Sub, a, b),
        Op::INeg => code.wrapped(Binary::Sub, zero(), a),
        Op::IMul => code.wrapped(Binary::Mul, a, b),
        Op::And => code.plain(Binary::And, a, b),
        Op::Or => code.plain(Binary::Or, a, b),
        Op::Xor => code.plain(Binary::Xor, a, b),
        Op::Not => code.plain(Binary::Xor, a, Operand::Constant(0xffff_ffff)),
        Op::Shl => code.wrapped(Binary::Mul, a, power(&b).ok_or_else(unsupported)?),
        Op::LShr => code.plain(Binary::Div, a, power(&b).ok_or_else(unsupported)?),
        Op::UDiv => code.plain(Binary::Div, a, divisor(&b).ok_or_else(unsupported)?),
        Op::UMod => {
            let divisor = divisor(&b).ok_or_else(unsupported)?;
            let quotient = code.plain(Binary::Div, a.clone(), divisor.clone());
            let product = code.plain(Binary::Mul, quotient, divisor);
            code.plain(Binary::Sub, a, product)
        }
        Op::UMin => extreme(code, Comparison::Less, a, b),
        Op::UMax => extreme(code, Comparison::Greater, a, b),
        Op::BoolToInt => a,
        Op::IEq => return compare(Comparison::Equal, a, b),
        Op::INe | Op::LXor => return compare(Comparison::NotEqual, a, b),
        Op::ULt => return compare(Comparison::Less, a, b),
        Op::ULe => return compare(Comparison::LessEqual, a, b),
        Op::SLt | Op::SLe => {
            let (a, b) = (code.signed(a), code.signed(b));
            return compare(if op == Op::SLt { Comparison::Less } else { Comparison::LessEqual }, a, b);
        }
        Op::LAnd | Op::LOr => {
            let binary = if op == Op::LAnd { Binary::And } else { Binary::Or };
            let both = code.plain(binary, a, b);
            return compare(Comparison::NotEqual, both, zero());
        }
        _ => return Err(unsupported()),
    };
    Ok(of_operand(result))
}

/// The first of two operands if it compares so with the second, else the second: a minimum or maximum.
fn extreme(code: &mut Code, comparison: Comparison, left: Operand, right: Operand) -> Operand {
    code.choose(BranchCondition { comparison, left: left.clone(), right: right.clone() }, left, right)
}

/// `select`: one of two values.
pub(super) fn select(code: &mut Code, condition: &Val, then: &Val, other: &Val) -> Val {
    let (comparison, left, right) = match condition {
        Val::Number(bits) => return if *bits != 0 { then.clone() } else { other.clone() },
        Val::Compare(comparison, a, b) => (*comparison, a.clone(), b.clone()),
        Val::Cell(register) => (Comparison::NotEqual, Operand::Register(register.clone()), zero()),
        Val::Unknown(reason) => return Val::Unknown(Rc::clone(reason)),
        Val::Buffer(_) => return Val::Unknown("a buffer as a condition".into()),
    };
    match (code.operand(then), code.operand(other)) {
        (Ok(then), Ok(other)) => of_operand(code.choose(BranchCondition { comparison, left, right }, then, other)),
        (Err(reason), _) | (_, Err(reason)) => Val::Unknown(reason),
    }
}

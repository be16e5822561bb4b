//! Boolean operations and selection.

use spirv::Op as Spv;

use super::call::{describe, expect};
use super::{ArithmeticResult, ArithmeticType, Call, Nums};
use crate::front::spirv::scalar::Scalar;
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, op: Spv) -> Option<ArithmeticResult> {
    Some(match op {
        Spv::LogicalAnd => call.each(Op::LAnd),
        Spv::LogicalOr => call.each(Op::LOr),
        Spv::LogicalNot => call.each(Op::LNot),
        Spv::LogicalNotEqual => call.each(Op::LXor),
        Spv::LogicalEqual => equal(call),
        Spv::Any => reduce(call, Op::LOr),
        Spv::All => reduce(call, Op::LAnd),
        Spv::Select => select(call),
        _ => return None,
    })
}

fn equal(call: &mut Call<'_>) -> ArithmeticResult {
    let different = call.each(Op::LXor)?;
    Ok(different.into_iter().map(|value| call.pure(Op::LNot, [value])).collect())
}

fn reduce(call: &mut Call<'_>, op: Op) -> ArithmeticResult {
    let [operand] = call.operands()?;
    call.expect_result(ArithmeticType::Scalar(Scalar::Bool))?;
    match (operand.shape, operand.values) {
        (ArithmeticType::Vector(Scalar::Bool, _), [first, rest @ ..]) => {
            Ok(Nums::from_elem(rest.iter().fold(*first, |sum, &value| call.pure(op, [sum, value])), 1))
        }
        (shape, _) => Err(format!("takes a vector of bool, not {}", describe(shape))),
    }
}

/// The condition is one bool for all components (SPIR-V 1.4), or a vector with one per component.
fn select(call: &mut Call<'_>) -> ArithmeticResult {
    let [condition, then, otherwise] = call.operands()?;
    let result = call.result;
    if matches!(result, ArithmeticType::Matrix { .. }) {
        return Err(format!("cannot choose between {}", describe(result)));
    }
    expect(1, then.shape, result)?;
    expect(2, otherwise.shape, result)?;
    let bools: Nums = match condition.shape {
        ArithmeticType::Scalar(Scalar::Bool) => Nums::from_elem(condition.values[0], result.scalars()),
        ArithmeticType::Vector(Scalar::Bool, count) if result == ArithmeticType::Vector(result.element(), count) => {
            condition.values.into()
        }
        shape => return Err(format!("operand 0 must be one bool, or one for each component, not {}", describe(shape))),
    };
    let choices = bools.iter().zip(then.values.iter().zip(otherwise.values));
    Ok(choices.map(|(&bool, (&then, &otherwise))| call.select(bool, then, otherwise)).collect())
}

//! Conversions between 32-bit types. A conversion to another width has no operand here that it could be right for.

use spirv::Op as Spv;

use super::call::describe;
use super::{Call, Outcome, Shape};
use crate::ir::{Op, Type};

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, op: Spv) -> Option<Outcome> {
    Some(match op {
        Spv::ConvertFToU => call.each(Op::FloatToUInt),
        Spv::ConvertFToS => call.each(Op::FloatToSInt),
        Spv::ConvertUToF => call.each(Op::UIntToFloat),
        Spv::ConvertSToF => call.each(Op::SIntToFloat),
        Spv::QuantizeToF16 => call.each(Op::QuantizeF16),
        Spv::Bitcast => bitcast(call),
        Spv::UConvert | Spv::SConvert | Spv::FConvert => {
            Err("converts between widths, and 32 bits is the only one".into())
        }
        _ => return None,
    })
}

fn bitcast(call: &mut Call<'_>) -> Outcome {
    let [operand] = call.operands()?;
    let (from, to) = (operand.shape, call.result);
    let numerical = |shape: Shape| {
        matches!(shape, Shape::Scalar(_) | Shape::Vector(..)) && matches!(shape.element(), Type::I32 | Type::F32)
    };
    if !numerical(from) || !numerical(to) || from.len() != to.len() {
        return Err(format!("cannot take {} for {}", describe(from), describe(to)));
    }
    match (from.element(), to.element()) {
        (Type::F32, Type::I32) => call.each(Op::FloatBits),
        (Type::I32, Type::F32) => call.each(Op::FloatFromBits),
        _ => Ok(operand.values.into()),
    }
}

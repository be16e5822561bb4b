//! Components packed into the bits of a word, the first component lowest.

use spirv::GlslStd450Op as Glsl;

use super::super::arithmetic::{Call, Outcome, Shape, Values, expect};
use crate::ir::{Op, Type};

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, instruction: Glsl) -> Option<Outcome> {
    Some(match instruction {
        Glsl::PackSnorm4x8 => pack(call, Op::PackSnorm8, 4),
        Glsl::PackUnorm4x8 => pack(call, Op::PackUnorm8, 4),
        Glsl::PackSnorm2x16 => pack(call, Op::PackSnorm16, 2),
        Glsl::PackUnorm2x16 => pack(call, Op::PackUnorm16, 2),
        Glsl::PackHalf2x16 => pack(call, Op::HalfBits, 2),
        Glsl::UnpackSnorm4x8 => unpack(call, Op::UnpackSnorm8, 4),
        Glsl::UnpackUnorm4x8 => unpack(call, Op::UnpackUnorm8, 4),
        Glsl::UnpackSnorm2x16 => unpack(call, Op::UnpackSnorm16, 2),
        Glsl::UnpackUnorm2x16 => unpack(call, Op::UnpackUnorm16, 2),
        Glsl::UnpackHalf2x16 => unpack(call, Op::HalfFromBits, 2),
        _ => return None,
    })
}

fn pack(call: &mut Call<'_>, op: Op, count: u32) -> Outcome {
    let [operand] = call.operands()?;
    expect(0, operand.shape, Shape::Vector(Type::F32, count))?;
    call.expect_result(Shape::Scalar(Type::I32))?;
    let mut word = call.builder.constant(0u32);
    for (&value, number) in operand.values.iter().zip(0u32..) {
        let field = call.pure(op, [value]);
        let distance = call.builder.constant(number * (32 / count));
        let placed = if number == 0 { field } else { call.pure(Op::Shl, [field, distance]) };
        word = if number == 0 { placed } else { call.pure(Op::Or, [word, placed]) };
    }
    Ok(Values::from_elem(word, 1))
}

fn unpack(call: &mut Call<'_>, op: Op, count: u32) -> Outcome {
    let [operand] = call.operands()?;
    expect(0, operand.shape, Shape::Scalar(Type::I32))?;
    call.expect_result(Shape::Vector(Type::F32, count))?;
    let word = operand.values[0];
    Ok((0..count)
        .map(|number| {
            let distance = call.builder.constant(number * (32 / count));
            let field = if number == 0 { word } else { call.pure(Op::LShr, [word, distance]) };
            call.pure(op, [field])
        })
        .collect())
}

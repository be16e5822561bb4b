//! Packing of components into the bits of a word, the first component lowest.

use spirv::GlslStd450Op as Glsl;

use super::super::arithmetic::{ArithmeticResult, ArithmeticType, Call, Num, Nums, expect};
use super::super::scalar::Scalar;
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, instruction: Glsl) -> Option<ArithmeticResult> {
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
        Glsl::PackDouble2x32 => pack_double(call),
        Glsl::UnpackDouble2x32 => unpack_double(call),
        _ => return None,
    })
}

fn pack(call: &mut Call<'_>, op: Op, count: u32) -> ArithmeticResult {
    let [operand] = call.operands()?;
    expect(0, operand.shape, ArithmeticType::Vector(Scalar::F32, count))?;
    call.expect_result(ArithmeticType::Scalar(Scalar::I32))?;
    let mut word = call.int(0);
    for (&value, number) in operand.values.iter().zip(0u32..) {
        let field = call.pure(op, [value]).low;
        let distance = call.int(number * (32 / count));
        let placed = if number == 0 { field } else { call.builder.pure(Op::Shl, &[field, distance]) };
        word = if number == 0 { placed } else { call.builder.pure(Op::Or, &[word, placed]) };
    }
    Ok(Nums::from_elem(Num::new(Scalar::I32, word), 1))
}

fn unpack(call: &mut Call<'_>, op: Op, count: u32) -> ArithmeticResult {
    let [operand] = call.operands()?;
    expect(0, operand.shape, ArithmeticType::Scalar(Scalar::I32))?;
    call.expect_result(ArithmeticType::Vector(Scalar::F32, count))?;
    let word = operand.values[0].low;
    Ok((0..count)
        .map(|number| {
            let distance = call.int(number * (32 / count));
            let field = if number == 0 { word } else { call.builder.pure(Op::LShr, &[word, distance]) };
            Num::new(Scalar::F32, call.builder.pure(op, &[field]))
        })
        .collect())
}

/// Two words are the bits of a double.
fn pack_double(call: &mut Call<'_>) -> ArithmeticResult {
    let [operand] = call.operands()?;
    expect(0, operand.shape, ArithmeticType::Vector(Scalar::I32, 2))?;
    call.expect_result(ArithmeticType::Scalar(Scalar::F64))?;
    let words = [operand.values[0].low, operand.values[1].low];
    Ok(Nums::from_elem(Num::wide(Scalar::F64, words), 1))
}

fn unpack_double(call: &mut Call<'_>) -> ArithmeticResult {
    let [operand] = call.operands()?;
    expect(0, operand.shape, ArithmeticType::Scalar(Scalar::F64))?;
    call.expect_result(ArithmeticType::Vector(Scalar::I32, 2))?;
    Ok(operand.values[0].words().into_iter().map(|word| Num::new(Scalar::I32, word)).collect())
}

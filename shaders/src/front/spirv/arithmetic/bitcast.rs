//! Bitcasts between types of any component width with the same number of bits.

use super::call::describe;
use super::{ArithmeticResult, ArithmeticType, Call, Num, Nums, Operand, Values};
use crate::front::spirv::scalar::Scalar;
use crate::ir::Op;

pub(super) fn bitcast(call: &mut Call<'_>) -> ArithmeticResult {
    let [operand] = call.operands()?;
    let (from, to) = (operand.shape, call.result);
    let numerical = |shape: ArithmeticType| {
        let number = shape.element().is_int() || shape.element().is_float();
        matches!(shape, ArithmeticType::Scalar(_) | ArithmeticType::Vector(..)) && number
    };
    let bits = |shape: ArithmeticType| shape.scalars() as u32 * shape.element().bits();
    if !numerical(from) || !numerical(to) || bits(from) != bits(to) {
        return Err(format!("cannot take {} for {}", describe(from), describe(to)));
    }
    if from.element() == to.element() {
        return Ok(operand.values.into());
    }
    let words = to_words(call, operand);
    Ok(from_words(call, &words, to))
}

/// All bits in 32-bit words; the last word may have fewer.
fn to_words(call: &mut Call<'_>, operand: Operand<'_>) -> Values {
    let ty = operand.shape.element();
    if ty.words() == 2 {
        return operand.values.iter().flat_map(|value| value.words()).collect();
    }
    let parts: Values = operand
        .values
        .iter()
        .map(|value| match ty {
            Scalar::F16 => call.builder.pure(Op::HalfBits, &[value.low]),
            Scalar::F32 => call.builder.pure(Op::FloatBits, &[value.low]),
            _ => value.low,
        })
        .collect();
    parts
        .chunks((32 / ty.bits()) as usize)
        .map(|parts| {
            let mut word = parts[0];
            for (number, &part) in (1u32..).zip(&parts[1..]) {
                let place = call.int(number * ty.bits());
                let placed = call.builder.pure(Op::Shl, &[part, place]);
                word = call.builder.pure(Op::Or, &[word, placed]);
            }
            word
        })
        .collect()
}

fn from_words(call: &mut Call<'_>, words: &[crate::ir::Value], to: ArithmeticType) -> Nums {
    let ty = to.element();
    if ty.words() == 2 {
        return words.chunks_exact(2).map(|pair| Num::wide(ty, [pair[0], pair[1]])).collect();
    }
    let each = 32 / ty.bits();
    (0..to.scalars() as u32)
        .map(|number| {
            let word = words[(number / each) as usize];
            let place = number % each * ty.bits();
            let value = match (ty, place) {
                (Scalar::F32, _) => call.builder.pure(Op::FloatFromBits, &[word]),
                (Scalar::I32, _) => word,
                (_, 0) => word,
                _ => {
                    let place = call.int(place);
                    call.builder.pure(Op::LShr, &[word, place])
                }
            };
            let value = match ty {
                Scalar::F16 => call.builder.pure(Op::HalfFromBits, &[value]),
                _ => super::widths::cut(call.builder, value, ty),
            };
            Num::new(ty, value)
        })
        .collect()
}

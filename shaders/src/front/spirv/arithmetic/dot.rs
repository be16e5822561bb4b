//! Integer dot products of vectors or of bytes packed into a word, optionally with a saturating accumulator.

use spirv::Op as Spv;

use super::call::describe;
use super::widths::{self, resized, sign_resized};
use super::{ArithmeticResult, ArithmeticType, Call, Num, Nums, Operand};
use crate::front::spirv::scalar::Scalar;
use crate::ir::Op;

/// Signedness of the two factors.
#[derive(Clone, Copy)]
struct Signs([bool; 2]);

/// Translates an instruction of this chapter. The operand for the format of packed vectors has been removed.
pub(super) fn translate(call: &mut Call<'_>, op: Spv) -> Option<ArithmeticResult> {
    let (signs, saturates) = match op {
        Spv::SDot => ([true, true], false),
        Spv::UDot => ([false, false], false),
        Spv::SUDot => ([true, false], false),
        Spv::SDotAccSat => ([true, true], true),
        Spv::UDotAccSat => ([false, false], true),
        Spv::SUDotAccSat => ([true, false], true),
        _ => return None,
    };
    Some(if saturates { accumulated(call, Signs(signs)) } else { alone(call, Signs(signs)) })
}

fn alone(call: &mut Call<'_>, signs: Signs) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    let sum = product(call, a, b, signs)?;
    Ok(Nums::from_elem(sum, 1))
}

fn accumulated(call: &mut Call<'_>, signs: Signs) -> ArithmeticResult {
    let [a, b, before] = call.operands()?;
    super::expect(2, before.shape, call.result)?;
    let more = product(call, a, b, signs)?;
    let before = before.values[0];
    let sum = call.pure(Op::IAdd, [before, more]);
    let [first, _] = signs.0;
    let result = if first { saturated(call, before, more, sum) } else { capped(call, before, sum) };
    Ok(Nums::from_elem(result, 1))
}

/// Unsigned saturation: the greatest number if the sum has wrapped.
fn capped(call: &mut Call<'_>, before: Num, sum: Num) -> Num {
    let wrapped = call.pure(Op::ULt, [sum, before]);
    let max = integer(call, sum.ty, u64::MAX);
    call.select(wrapped, max, sum)
}

/// Signed saturation: the nearer end of the range if the sum has wrapped.
fn saturated(call: &mut Call<'_>, before: Num, more: Num, sum: Num) -> Num {
    let zero = integer(call, sum.ty, 0);
    let down = call.pure(Op::SLt, [more, zero]);
    let less = call.pure(Op::SLt, [sum, before]);
    let left = call.pure(Op::LXor, [down, less]);
    let bits = sum.ty.bits();
    let (min, max) = (integer(call, sum.ty, 1 << (bits - 1)), integer(call, sum.ty, (1 << (bits - 1)) - 1));
    let end = call.select(down, min, max);
    call.select(left, end, sum)
}

fn integer(call: &mut Call<'_>, ty: Scalar, bits: u64) -> Num {
    let words = widths::words(call.builder, bits);
    match ty {
        Scalar::I64 => Num::wide(ty, words),
        _ => {
            let low = widths::cut(call.builder, words[0], ty);
            Num::new(ty, low)
        }
    }
}

/// The sum of the products, modulo the result's range.
fn product(call: &mut Call<'_>, a: Operand<'_>, b: Operand<'_>, signs: Signs) -> Result<Num, String> {
    let ArithmeticType::Scalar(ty) = call.result else {
        return Err(format!("gives one integer, not {}", describe(call.result)));
    };
    let vector = |shape: ArithmeticType| match shape {
        ArithmeticType::Scalar(Scalar::I32) => Some((Scalar::I8, 4)),
        ArithmeticType::Vector(element, count) if element.is_int() && count > 0 => Some((element, count)),
        _ => None,
    };
    let fits = vector(a.shape).is_some_and(|(element, _)| element.bits() <= ty.bits());
    if !ty.is_int() || !fits || vector(a.shape) != vector(b.shape) || a.shape != b.shape {
        return Err(format!("does not multiply {} and {}", describe(a.shape), describe(b.shape)));
    }
    let [first, second] = [a, b].map(|operand| components(call, operand));
    let mut sum: Option<Num> = None;
    for (&a, &b) in first.iter().zip(&second) {
        let [a, b] = [(a, signs.0[0]), (b, signs.0[1])].map(|(value, sign)| match sign {
            true => sign_resized(call.builder, value, ty),
            false => resized(call.builder, value, ty),
        });
        let product = call.pure(Op::IMul, [a, b]);
        sum = Some(match sum {
            None => product,
            Some(sum) => call.pure(Op::IAdd, [sum, product]),
        });
    }
    sum.ok_or_else(|| "multiplies vectors of no components".into())
}

/// The components of a vector, or the bytes of a word.
fn components(call: &mut Call<'_>, operand: Operand<'_>) -> Nums {
    if !matches!(operand.shape, ArithmeticType::Scalar(_)) {
        return operand.values.into();
    }
    let word = operand.values[0].low;
    (0..4u32)
        .map(|byte| {
            let place = call.int(8 * byte);
            let moved = if byte == 0 { word } else { call.builder.pure(Op::LShr, &[word, place]) };
            let value = widths::cut(call.builder, moved, Scalar::I8);
            Num::new(Scalar::I8, value)
        })
        .collect()
}

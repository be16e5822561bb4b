//! The extended instruction set GLSL.std.450.
//!
//! Most instructions are one operation of the table for each component (`componentwise.rs`); the others are composed.

mod componentwise;
mod geometry;
mod matrix;
mod pack;
#[cfg(test)]
mod precision;

use spirv::GlslStd450Op as Glsl;

use super::arithmetic::{ArithmeticResult, ArithmeticType, Call, OperandValues, Values, run_chapters};
use crate::ir::{Builder, Op};

/// A chapter's translator: `None` for instructions of other chapters.
type GlslChapter = fn(&mut Call<'_>, Glsl) -> Option<ArithmeticResult>;

const CHAPTERS: &[GlslChapter] =
    &[componentwise::translate, parts, geometry::translate, pack::translate, matrix::translate];

/// Translates an extended instruction.
///
/// `Modf` and `Frexp` are passed without their pointer operand. For these and for `ModfStruct` and `FrexpStruct`,
/// `result` is the shape of the first result (of the structure's first member); they return the scalars of the first
/// result (fraction or significand), then those of the second (whole part, or exponent as integers).
pub(super) fn extended(
    builder: &mut Builder,
    instruction: Glsl,
    result: &ArithmeticType,
    operands: &[OperandValues<'_>],
) -> Result<Values, String> {
    let run = |call: &mut Call<'_>| CHAPTERS.iter().find_map(|chapter| chapter(call, instruction));
    let outcome = run_chapters(builder, *result, operands, run).unwrap_or_else(|| Err("is not supported".into()));
    outcome.map_err(|problem| format!("GLSL.std.450 {instruction:?}: {problem}"))
}

/// Instructions with two results.
fn parts(call: &mut Call<'_>, instruction: Glsl) -> Option<ArithmeticResult> {
    Some(match instruction {
        Glsl::Modf | Glsl::ModfStruct => call.each_pair(Op::ModfFract, Op::Trunc),
        Glsl::Frexp | Glsl::FrexpStruct => call.each_pair(Op::FrexpSignificand, Op::FrexpExponent),
        _ => return None,
    })
}

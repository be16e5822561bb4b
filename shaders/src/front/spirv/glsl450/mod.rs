//! The extended instruction set GLSL.std.450, for 32-bit types.

use super::arithmetic::{Call, Operand, Outcome, Shape};
use crate::ir::Builder;

/// Translates an extended instruction.
///
/// `Modf` and `Frexp` are given without their pointer. They, `ModfStruct` and `FrexpStruct` take the shape of the first
/// result (for the structures: of the first member) as `result`; they give the scalars of the first result (fraction or
/// significand), then those of the second (whole part, or exponent as integers).
pub(super) fn extended(
    builder: &mut Builder,
    instruction: spirv::GlslStd450Op,
    result: &Shape,
    operands: &[Operand<'_>],
) -> Outcome {
    let _ = Call::new(builder, *result, operands)?;
    Err(format!("GLSL.std.450 {instruction:?} is not supported"))
}

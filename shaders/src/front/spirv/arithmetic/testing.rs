//! Evaluates instructions on constants for tests: the builder folds them, so no interpreter is needed.

use super::{ArithmeticType, OperandValues, Values, translate};
use crate::front::spirv::glsl450::extended;
use crate::front::spirv::scalar::Scalar;
use crate::ir::{Builder, Kernel, Value};

/// A core or GLSL.std.450 instruction.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum AnyInst {
    Core(spirv::Op),
    Glsl(spirv::GlslStd450Op),
}

pub(in super::super) fn builder() -> Builder {
    Builder::new(Kernel::new("test", [1, 1, 1]))
}

pub(in super::super) fn apply(
    builder: &mut Builder,
    which: AnyInst,
    result: ArithmeticType,
    operands: &[OperandValues<'_>],
) -> Option<Result<Values, String>> {
    match which {
        AnyInst::Core(op) => translate(builder, op, &result, operands),
        AnyInst::Glsl(instruction) => Some(extended(builder, instruction, &result, operands)),
    }
}

/// The result bits for operands with these shapes and bits, scalar by scalar.
pub(in super::super) fn evaluate(
    builder: &mut Builder,
    which: AnyInst,
    result: ArithmeticType,
    shapes: &[ArithmeticType],
    bits: &[u32],
) -> Result<Vec<u32>, String> {
    let mut rest = bits;
    let mut operands: Vec<(ArithmeticType, Vec<Value>)> = Vec::new();
    for &shape in shapes {
        let (own, others) = rest.split_at(shape.len());
        rest = others;
        let constants = own.iter().map(|&bits| builder.constant_bits(shape.element().ty(), bits.into()));
        operands.push((shape, constants.collect()));
    }
    let operands: Vec<_> = operands.iter().map(|(shape, values)| OperandValues { values, shape: *shape }).collect();
    let values = apply(builder, which, result, &operands).expect("an instruction of these chapters")?;
    Ok(values.iter().map(|&value| builder.kernel().constant(value).expect("folded") as u32).collect())
}

pub(in super::super) const BOOL: ArithmeticType = ArithmeticType::Scalar(Scalar::Bool);
pub(in super::super) const INT: ArithmeticType = ArithmeticType::Scalar(Scalar::I32);
pub(in super::super) const FLOAT: ArithmeticType = ArithmeticType::Scalar(Scalar::F32);
pub(in super::super) const VEC2: ArithmeticType = ArithmeticType::Vector(Scalar::F32, 2);
pub(in super::super) const VEC3: ArithmeticType = ArithmeticType::Vector(Scalar::F32, 3);
pub(in super::super) const VEC4: ArithmeticType = ArithmeticType::Vector(Scalar::F32, 4);

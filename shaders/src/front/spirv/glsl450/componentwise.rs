//! Instructions that apply one operation to each component.

use spirv::GlslStd450Op as Glsl;

use super::super::arithmetic::{ArithmeticResult, ArithmeticType, Call, Operand};
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, instruction: Glsl) -> Option<ArithmeticResult> {
    if let Some(op) = float(instruction).or_else(|| transcendental(instruction)).or_else(|| integer(instruction)) {
        return Some(call.each(op));
    }
    match instruction {
        Glsl::Radians => Some(scale(call, std::f64::consts::PI / 180.0)),
        Glsl::Degrees => Some(scale(call, 180.0 / std::f64::consts::PI)),
        _ => None,
    }
}

fn float(instruction: Glsl) -> Option<Op> {
    Some(match instruction {
        Glsl::Round | Glsl::RoundEven => Op::RoundEven,
        Glsl::Trunc => Op::Trunc,
        Glsl::Floor => Op::Floor,
        Glsl::Ceil => Op::Ceil,
        Glsl::Fract => Op::Fract,
        Glsl::FAbs => Op::FAbs,
        Glsl::FSign => Op::FSign,
        Glsl::FMin | Glsl::NMin => Op::FMin,
        Glsl::FMax | Glsl::NMax => Op::FMax,
        Glsl::FClamp | Glsl::NClamp => Op::FClamp,
        Glsl::FMix => Op::FMix,
        Glsl::Step => Op::Step,
        Glsl::SmoothStep => Op::SmoothStep,
        Glsl::Fma => Op::Fma,
        Glsl::Ldexp => Op::Ldexp,
        _ => return None,
    })
}

fn transcendental(instruction: Glsl) -> Option<Op> {
    Some(match instruction {
        Glsl::Sin => Op::Sin,
        Glsl::Cos => Op::Cos,
        Glsl::Tan => Op::Tan,
        Glsl::Asin => Op::Asin,
        Glsl::Acos => Op::Acos,
        Glsl::Atan => Op::Atan,
        Glsl::Sinh => Op::Sinh,
        Glsl::Cosh => Op::Cosh,
        Glsl::Tanh => Op::Tanh,
        Glsl::Asinh => Op::Asinh,
        Glsl::Acosh => Op::Acosh,
        Glsl::Atanh => Op::Atanh,
        Glsl::Atan2 => Op::Atan2,
        Glsl::Pow => Op::Pow,
        Glsl::Exp => Op::Exp,
        Glsl::Log => Op::Log,
        Glsl::Exp2 => Op::Exp2,
        Glsl::Log2 => Op::Log2,
        Glsl::Sqrt => Op::Sqrt,
        Glsl::InverseSqrt => Op::InverseSqrt,
        _ => return None,
    })
}

fn integer(instruction: Glsl) -> Option<Op> {
    Some(match instruction {
        Glsl::SAbs => Op::SAbs,
        Glsl::SSign => Op::SSign,
        Glsl::UMin => Op::UMin,
        Glsl::SMin => Op::SMin,
        Glsl::UMax => Op::UMax,
        Glsl::SMax => Op::SMax,
        Glsl::UClamp => Op::UClamp,
        Glsl::SClamp => Op::SClamp,
        Glsl::FindILsb => Op::FindLsb,
        Glsl::FindSMsb => Op::FindSMsb,
        Glsl::FindUMsb => Op::FindUMsb,
        _ => return None,
    })
}

fn scale(call: &mut Call<'_>, factor: f64) -> ArithmeticResult {
    let [operand] = call.operands()?;
    let element = operand.shape.element();
    if !element.is_float() {
        return Err(format!("takes floats, not {element}"));
    }
    let factor = [call.float(element, factor)];
    call.each_of(Op::FMul, &[operand, Operand { values: &factor, shape: ArithmeticType::Scalar(element) }], 1)
}

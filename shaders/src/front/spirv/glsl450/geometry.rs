//! Lengths and directions, from operations within the precision that Vulkan inherits for them.
//!
//! A scalar is treated as a vector of one component, but its length is its magnitude: squaring could overflow.

use spirv::GlslStd450Op as Glsl;

use super::super::arithmetic::{ArithmeticResult, ArithmeticType, Call, Num, Nums, Operand, describe, expect};
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, instruction: Glsl) -> Option<ArithmeticResult> {
    Some(match instruction {
        Glsl::Length => length(call),
        Glsl::Distance => distance(call),
        Glsl::Cross => cross(call),
        Glsl::Normalize => normalize(call),
        Glsl::FaceForward => face_forward(call),
        Glsl::Reflect => reflect(call),
        Glsl::Refract => refract(call),
        _ => return None,
    })
}

fn length(call: &mut Call<'_>) -> ArithmeticResult {
    let [a] = call.operands()?;
    floats(a.shape)?;
    call.expect_result(ArithmeticType::Scalar(a.shape.element()))?;
    Ok(Nums::from_elem(length_of(call, a.values), 1))
}

fn distance(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    floats(a.shape)?;
    expect(1, b.shape, a.shape)?;
    call.expect_result(ArithmeticType::Scalar(a.shape.element()))?;
    let difference: Nums = a.values.iter().zip(b.values).map(|(&a, &b)| call.pure(Op::FSub, [a, b])).collect();
    Ok(Nums::from_elem(length_of(call, &difference), 1))
}

fn length_of(call: &mut Call<'_>, values: &[Num]) -> Num {
    if let [value] = values {
        return call.pure(Op::FAbs, [*value]);
    }
    let square = call.dot(values, values);
    call.pure(Op::Sqrt, [square])
}

fn cross(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    floats(a.shape)?;
    let shape = ArithmeticType::Vector(a.shape.element(), 3);
    expect(0, a.shape, shape)?;
    expect(1, b.shape, shape)?;
    call.expect_result(shape)?;
    let (a, b) = (a.values, b.values);
    Ok([(1, 2), (2, 0), (0, 1)]
        .into_iter()
        .map(|(i, j)| {
            let left = call.pure(Op::FMul, [a[i], b[j]]);
            let right = call.pure(Op::FMul, [b[i], a[j]]);
            call.pure(Op::FSub, [left, right])
        })
        .collect())
}

fn normalize(call: &mut Call<'_>) -> ArithmeticResult {
    let [a] = call.operands()?;
    floats(a.shape)?;
    call.expect_result(a.shape)?;
    if let [value] = a.values {
        let length = call.pure(Op::FAbs, [*value]);
        return Ok(Nums::from_elem(call.pure(Op::FDiv, [*value, length]), 1));
    }
    let square = call.dot(a.values, a.values);
    let factor = call.pure(Op::InverseSqrt, [square]);
    Ok(scaled(call, a.values, factor))
}

/// `n` if `reference` and `incident` point in opposite directions, else `-n`.
fn face_forward(call: &mut Call<'_>) -> ArithmeticResult {
    let [n, incident, reference] = same_floats(call)?;
    let dot = call.dot(reference, incident);
    let zero = call.float(call.result.element(), 0.0);
    let apart = call.pure(Op::FOrdLt, [dot, zero]);
    Ok(n.iter()
        .map(|&value| {
            let negated = call.pure(Op::FNeg, [value]);
            call.select(apart, value, negated)
        })
        .collect())
}

/// `i - 2 * dot(n, i) * n`.
fn reflect(call: &mut Call<'_>) -> ArithmeticResult {
    let [i, n] = same_floats(call)?;
    let dot = call.dot(n, i);
    let twice = call.pure(Op::FAdd, [dot, dot]);
    Ok(add_scaled(call, Op::FSub, i, n, twice))
}

/// `eta * i - (eta * dot + sqrt(k)) * n` with `k = 1 - eta² (1 - dot²)`, or zeros if `k` is negative.
fn refract(call: &mut Call<'_>) -> ArithmeticResult {
    let [i, n, eta] = call.operands()?;
    floats(i.shape)?;
    expect(1, n.shape, i.shape)?;
    expect(2, eta.shape, ArithmeticType::Scalar(i.shape.element()))?;
    call.expect_result(i.shape)?;
    let eta = eta.values[0];
    let element = i.shape.element();
    let (one, zero) = (call.float(element, 1.0), call.float(element, 0.0));
    let dot = call.dot(n.values, i.values);
    let dot_square = call.pure(Op::FMul, [dot, dot]);
    let sine_square = call.pure(Op::FSub, [one, dot_square]);
    let eta_square = call.pure(Op::FMul, [eta, eta]);
    let lost = call.pure(Op::FMul, [eta_square, sine_square]);
    let k = call.pure(Op::FSub, [one, lost]);
    let root = call.pure(Op::Sqrt, [k]);
    let along = call.pure(Op::FMul, [eta, dot]);
    let factor = call.pure(Op::FAdd, [along, root]);
    let bent = scaled(call, i.values, eta);
    let refracted = add_scaled(call, Op::FSub, &bent, n.values, factor);
    let reflected = call.pure(Op::FOrdLt, [k, zero]);
    Ok(refracted.into_iter().map(|value| call.select(reflected, zero, value)).collect())
}

fn scaled(call: &mut Call<'_>, values: &[Num], factor: Num) -> Nums {
    values.iter().map(|&value| call.pure(Op::FMul, [value, factor])).collect()
}

/// `a op (b * factor)` for each component.
fn add_scaled(call: &mut Call<'_>, op: Op, a: &[Num], b: &[Num], factor: Num) -> Nums {
    let b = scaled(call, b, factor);
    a.iter().zip(b).map(|(&a, b)| call.pure(op, [a, b])).collect()
}

/// `N` operands of the result's shape, which must be of floats.
fn same_floats<'a, const N: usize>(call: &Call<'a>) -> Result<[&'a [Num]; N], String> {
    let operands: [Operand<'a>; N] = call.operands()?;
    floats(call.result)?;
    for (number, operand) in operands.iter().enumerate() {
        expect(number, operand.shape, call.result)?;
    }
    Ok(operands.map(|operand| operand.values))
}

/// Checks that a shape is a scalar or vector of floats.
fn floats(shape: ArithmeticType) -> Result<(), String> {
    match shape {
        ArithmeticType::Scalar(element) | ArithmeticType::Vector(element, 1..) if element.is_float() => Ok(()),
        _ => Err(format!("takes one float or a vector of floats, not {}", describe(shape))),
    }
}

//! Linear algebra: products of vectors and matrices as sums in term order, with each step rounded.

use spirv::Op as Spv;

use super::call::describe;
use super::{ArithmeticResult, ArithmeticType, Call, Num, Nums, Operand};
use crate::front::spirv::scalar::Scalar;
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, op: Spv) -> Option<ArithmeticResult> {
    Some(match op {
        Spv::Dot => dot(call),
        Spv::VectorTimesScalar => call.each_then_scalars(Op::FMul, 1),
        Spv::MatrixTimesScalar => matrix_times_scalar(call),
        Spv::VectorTimesMatrix => vector_times_matrix(call),
        Spv::MatrixTimesVector => matrix_times_vector(call),
        Spv::MatrixTimesMatrix => matrix_times_matrix(call),
        Spv::OuterProduct => outer_product(call),
        Spv::Transpose => transpose(call),
        _ => return None,
    })
}

fn dot(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    call.expect_result(ArithmeticType::Scalar(a.shape.element()))?;
    if vector(a)? != vector(b)? || a.shape != b.shape {
        return Err("takes vectors of one length".into());
    }
    Ok(Nums::from_elem(call.dot(a.values, b.values), 1))
}

fn matrix_times_scalar(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, factor] = call.operands()?;
    matrix(a)?;
    call.expect_result(a.shape)?;
    let [factor] = scalar(factor, a.shape.element())?;
    Ok(a.values.iter().map(|&value| call.pure(Op::FMul, [value, factor])).collect())
}

fn vector_times_matrix(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    let (columns, rows) = matrix(b)?;
    if vector(a)? != rows || a.shape.element() != b.shape.element() {
        return Err(format!("a vector of {} components has no product with {}", a.values.len(), describe(b.shape)));
    }
    call.expect_result(ArithmeticType::Vector(a.shape.element(), columns))?;
    Ok(columns_of(b, rows).map(|column| call.dot(a.values, column)).collect())
}

fn matrix_times_vector(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    let (columns, rows) = matrix(a)?;
    if vector(b)? != columns || a.shape.element() != b.shape.element() {
        return Err(format!("{} has no product with a vector of {} components", describe(a.shape), b.values.len()));
    }
    call.expect_result(ArithmeticType::Vector(a.shape.element(), rows))?;
    Ok(combine(call, a, rows, b.values))
}

fn matrix_times_matrix(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    let (inner, rows) = matrix(a)?;
    let (columns, b_rows) = matrix(b)?;
    if inner != b_rows || a.shape.element() != b.shape.element() {
        return Err(format!("{} has no product with {}", describe(a.shape), describe(b.shape)));
    }
    call.expect_result(ArithmeticType::Matrix { element: a.shape.element(), columns, rows })?;
    Ok(columns_of(b, b_rows).flat_map(|column| combine(call, a, rows, column)).collect())
}

/// The sum of the columns of a matrix, each multiplied by its weight.
fn combine(call: &mut Call<'_>, a: Operand<'_>, rows: u32, weights: &[Num]) -> Nums {
    (0..rows as usize)
        .map(|row| {
            let terms: Nums = columns_of(a, rows).map(|column| column[row]).collect();
            call.dot(&terms, weights)
        })
        .collect()
}

fn outer_product(call: &mut Call<'_>) -> ArithmeticResult {
    let [a, b] = call.operands()?;
    let (rows, columns) = (vector(a)?, vector(b)?);
    let element = a.shape.element();
    if element != b.shape.element() {
        return Err(format!("does not multiply {} and {}", describe(a.shape), describe(b.shape)));
    }
    call.expect_result(ArithmeticType::Matrix { element, columns, rows })?;
    let pairs = b.values.iter().flat_map(|&b| a.values.iter().map(move |&a| (a, b)));
    Ok(pairs.map(|(a, b)| call.pure(Op::FMul, [a, b])).collect())
}

fn transpose(call: &mut Call<'_>) -> ArithmeticResult {
    let [a] = call.operands()?;
    let (columns, rows) = matrix(a)?;
    call.expect_result(ArithmeticType::Matrix { element: a.shape.element(), columns: rows, rows: columns })?;
    Ok((0..rows as usize).flat_map(|row| columns_of(a, rows).map(move |column| column[row])).collect())
}

fn columns_of<'a>(matrix: Operand<'a>, rows: u32) -> impl Iterator<Item = &'a [Num]> {
    matrix.values.chunks_exact(rows as usize)
}

fn scalar(operand: Operand<'_>, ty: Scalar) -> Result<[Num; 1], String> {
    match (operand.shape, operand.values) {
        (ArithmeticType::Scalar(element), &[value]) if element == ty => Ok([value]),
        (shape, _) => Err(format!("takes one {ty}, not {}", describe(shape))),
    }
}

/// Component count of a float vector; at least one.
fn vector(operand: Operand<'_>) -> Result<u32, String> {
    match operand.shape {
        ArithmeticType::Vector(element, count) if count != 0 && element.is_float() => Ok(count),
        shape => Err(format!("takes a vector of floats, not {}", describe(shape))),
    }
}

/// Column and row count of a matrix; at least one each.
fn matrix(operand: Operand<'_>) -> Result<(u32, u32), String> {
    match operand.shape {
        ArithmeticType::Matrix { columns, rows, .. } if columns != 0 && rows != 0 => Ok((columns, rows)),
        shape => Err(format!("takes a matrix, not {}", describe(shape))),
    }
}

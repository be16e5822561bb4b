//! Determinant and inverse of square matrices of 2 to 4 columns, by cofactor expansion.
//!
//! Inverses of half matrices are computed in floats: products of halves soon lose all significant bits. Determinants of
//! halves are rounded to halves towards zero at each step. Vulkan allows that rounding if a module requests no rounding
//! mode, and the CTS's script for them expects the result of such devices: 5140 within 4, where the exact value is
//! 5150.1.

use smallvec::SmallVec;
use spirv::GlslStd450Op as Glsl;

use super::super::arithmetic::{
    ArithmeticResult, ArithmeticType, Call, Num, Nums, Operand, describe, half_towards_zero,
};
use super::super::scalar::Scalar;
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, instruction: Glsl) -> Option<ArithmeticResult> {
    Some(match instruction {
        Glsl::Determinant => determinant(call),
        Glsl::MatrixInverse => inverse(call),
        _ => return None,
    })
}

fn determinant(call: &mut Call<'_>) -> ArithmeticResult {
    let [operand] = call.operands()?;
    let matrix = Square { truncates: operand.shape.element() == Scalar::F16, ..Square::new(operand)? };
    call.expect_result(ArithmeticType::Scalar(operand.shape.element()))?;
    let determinant = matrix.determinant(call);
    Ok(Nums::from_elem(matrix.rounded(call, determinant), 1))
}

/// The transposed cofactors, divided by the determinant.
fn inverse(call: &mut Call<'_>) -> ArithmeticResult {
    let [operand] = call.operands()?;
    let matrix = Square::new(operand)?;
    call.expect_result(operand.shape)?;
    let size = matrix.size;
    let determinant = matrix.determinant(call);
    let places = (0..size).flat_map(|column| (0..size).map(move |row| (column, row)));
    Ok(places
        .map(|(column, row)| {
            let cofactor = matrix.cofactor(call, row, column);
            let quotient = call.pure(Op::FDiv, [cofactor, determinant]);
            matrix.rounded(call, quotient)
        })
        .collect())
}

/// A square matrix of at most 4 columns, column by column.
struct Square {
    size: usize,
    values: SmallVec<[Num; 16]>,
    /// Declared type of the elements; values of half matrices are floats.
    element: Scalar,
    /// Whether each product and each sum is rounded to a half towards zero.
    truncates: bool,
}

impl Square {
    fn new(operand: Operand<'_>) -> Result<Self, String> {
        match operand.shape {
            ArithmeticType::Matrix { columns: size @ 2..=4, rows, .. } if rows == size => {
                let element = operand.shape.element();
                // A half is represented by the float of equal value.
                let values = operand.values.iter().map(|&value| match element {
                    Scalar::F16 => Num::new(Scalar::F32, value.low),
                    _ => value,
                });
                Ok(Self { size: size as usize, values: values.collect(), element, truncates: false })
            }
            shape => Err(format!("takes a square matrix, not {}", describe(shape))),
        }
    }

    /// Converts a result to the declared element type.
    fn rounded(&self, call: &mut Call<'_>, value: Num) -> Num {
        match self.element {
            Scalar::F16 => Num::new(Scalar::F16, call.pure(Op::RoundHalf, [value]).low),
            _ => value,
        }
    }

    /// Expands along the first column.
    fn determinant(&self, call: &mut Call<'_>) -> Num {
        if let [value] = self.values[..] {
            return value;
        }
        let cofactors: Nums = (0..self.size).map(|row| self.cofactor(call, 0, row)).collect();
        if !self.truncates {
            return call.dot(&self.values[..self.size], &cofactors);
        }
        let mut products = self.values.iter().zip(&cofactors).map(|(&value, &cofactor)| (value, cofactor));
        let product = |call: &mut Call<'_>, (value, cofactor)| truncated(call, Op::FMul, [value, cofactor]);
        let Some(first) = products.next() else { return self.values[0] };
        let first = product(call, first);
        products.fold(first, |sum, next| {
            let next = product(call, next);
            truncated(call, Op::FAdd, [sum, next])
        })
    }

    /// The minor without a column and a row, negated at odd positions.
    fn cofactor(&self, call: &mut Call<'_>, column: usize, row: usize) -> Num {
        let kept = self.values.iter().enumerate().filter(|(i, _)| i / self.size != column && i % self.size != row);
        let minor = Self { size: self.size - 1, values: kept.map(|(_, &value)| value).collect(), ..*self };
        let determinant = minor.determinant(call);
        if (column + row) % 2 == 1 { call.pure(Op::FNeg, [determinant]) } else { determinant }
    }
}

/// An operation on floats with half values; the result is rounded to a half towards zero.
fn truncated(call: &mut Call<'_>, op: Op, args: [Num; 2]) -> Num {
    let exact = call.pure(op, args);
    Num::new(Scalar::F32, half_towards_zero(call.builder, exact.low))
}

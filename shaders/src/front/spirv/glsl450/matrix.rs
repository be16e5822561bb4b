//! Determinant and inverse of square matrices of 2 to 4 columns, by minors. Those of halves are floats until the end: their
//! products soon have no bits left that mean anything.

use smallvec::SmallVec;
use spirv::GlslStd450Op as Glsl;

use super::super::arithmetic::{Call, Num, Nums, Operand, Outcome, Shape, describe};
use super::super::types::Scalar;
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, instruction: Glsl) -> Option<Outcome> {
    Some(match instruction {
        Glsl::Determinant => determinant(call),
        Glsl::MatrixInverse => inverse(call),
        _ => return None,
    })
}

fn determinant(call: &mut Call<'_>) -> Outcome {
    let [operand] = call.operands()?;
    let matrix = Square::new(operand)?;
    call.expect_result(Shape::Scalar(operand.shape.element()))?;
    let determinant = matrix.determinant(call);
    Ok(Nums::from_elem(matrix.rounded(call, determinant), 1))
}

/// The transposed cofactors, divided by the determinant.
fn inverse(call: &mut Call<'_>) -> Outcome {
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
    /// What its elements are declared as; its values are floats where that is half of one.
    element: Scalar,
}

impl Square {
    fn new(operand: Operand<'_>) -> Result<Self, String> {
        match operand.shape {
            Shape::Matrix { columns: size @ 2..=4, rows, .. } if rows == size => {
                let element = operand.shape.element();
                // A half is kept as the float that it is equal to.
                let values = operand.values.iter().map(|&value| match element {
                    Scalar::F16 => Num::new(Scalar::F32, value.low),
                    _ => value,
                });
                Ok(Self { size: size as usize, values: values.collect(), element })
            }
            shape => Err(format!("takes a square matrix, not {}", describe(shape))),
        }
    }

    /// A result as one of the declared elements.
    fn rounded(&self, call: &mut Call<'_>, value: Num) -> Num {
        match self.element {
            Scalar::F16 => Num::new(Scalar::F16, call.pure(Op::RoundHalf, [value]).low),
            _ => value,
        }
    }

    /// Along the first column.
    fn determinant(&self, call: &mut Call<'_>) -> Num {
        if let [value] = self.values[..] {
            return value;
        }
        let cofactors: Nums = (0..self.size).map(|row| self.cofactor(call, 0, row)).collect();
        call.dot(&self.values[..self.size], &cofactors)
    }

    /// The determinant without a column and a row, negated at odd places.
    fn cofactor(&self, call: &mut Call<'_>, column: usize, row: usize) -> Num {
        let kept = self.values.iter().enumerate().filter(|(i, _)| i / self.size != column && i % self.size != row);
        let minor =
            Self { size: self.size - 1, values: kept.map(|(_, &value)| value).collect(), element: self.element };
        let determinant = minor.determinant(call);
        if (column + row) % 2 == 1 { call.pure(Op::FNeg, [determinant]) } else { determinant }
    }
}

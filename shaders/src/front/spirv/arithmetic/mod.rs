//! Arithmetic, bit, conversion, comparison and logical instructions on exploded operands (lists of scalars).
//!
//! The translator handles ids and types; these chapters see only scalars and shapes. To be safe for invalid modules,
//! each chapter checks the given shapes against the instruction's rule independently. The chapters name the 32-bit
//! operations of the IR; `widths` implements them for other widths.

mod bitcast;
mod call;
mod convert;
mod dot;
mod float;
mod int;
mod logic;
mod matrix;
mod num;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod width_tests;
pub(super) mod widths;

use smallvec::SmallVec;

use super::scalar::Scalar;
use crate::ir::{Builder, Value};
pub(super) use call::{Call, describe, expect};
pub(super) use convert::half_towards_zero;
pub(super) use num::{Num, Nums, of_values};

/// One operand of an instruction as IR values.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperandValues<'a> {
    /// Its scalars: components in order, matrices column by column.
    pub values: &'a [Value],
    /// Number and type of the scalars.
    pub shape: ArithmeticType,
}

/// An operand with typed scalars, as chapters receive it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<'a> {
    /// Its scalars.
    pub values: &'a [Num],
    /// Number and type of the scalars.
    pub shape: ArithmeticType,
}

/// Type of an operand or result in arithmetic. Integer types have no signedness: instructions decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArithmeticType {
    /// One scalar.
    Scalar(Scalar),
    /// This number of components.
    Vector(Scalar, u32),
    /// Column vectors of floats.
    Matrix {
        /// Type of the components.
        element: Scalar,
        /// Number of column vectors.
        columns: u32,
        /// Components of each.
        rows: u32,
    },
}

impl ArithmeticType {
    /// Number of scalars.
    pub(super) fn scalars(self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Vector(_, count) => count as usize,
            Self::Matrix { columns, rows, .. } => columns as usize * rows as usize,
        }
    }

    /// Number of IR values.
    pub(super) fn len(self) -> usize {
        self.scalars() * self.element().words() as usize
    }

    /// Type of each scalar.
    pub(super) fn element(self) -> Scalar {
        match self {
            Self::Scalar(ty) | Self::Vector(ty, _) | Self::Matrix { element: ty, .. } => ty,
        }
    }
}

/// The scalars of a result in the order of [`Operand::values`], or an error text.
pub(super) type ArithmeticResult = Result<Nums, String>;

/// A chapter's translator: `None` for instructions of other chapters.
type Chapter = fn(&mut Call<'_>, spirv::Op) -> Option<ArithmeticResult>;

const CHAPTERS: &[Chapter] =
    &[int::translate, float::translate, logic::translate, convert::translate, matrix::translate, dot::translate];

/// The values of a result.
pub(super) type Values = SmallVec<[Value; 4]>;

/// Translates an instruction of these chapters; `None` for any other.
///
/// For instructions whose result is a structure of two members (such as `OpIAddCarry`), `result` is the shape of one
/// member. The result has the scalars of the first member (low word, sum or difference), then those of the second.
pub(super) fn translate(
    builder: &mut Builder,
    op: spirv::Op,
    result: &ArithmeticType,
    operands: &[OperandValues<'_>],
) -> Option<Result<Values, String>> {
    let run = |call: &mut Call<'_>| CHAPTERS.iter().find_map(|chapter| chapter(call, op));
    let outcome = run_chapters(builder, *result, operands, run)?;
    Some(outcome.map_err(|problem| format!("Op{op:?}: {problem}")))
}

/// `OpFConvert` to 16-bit floats, rounded towards zero.
pub(super) fn halves_towards_zero(
    builder: &mut Builder,
    result: &ArithmeticType,
    operands: &[OperandValues<'_>],
) -> Result<Values, String> {
    let run = |call: &mut Call<'_>| Some(convert::towards_zero(call));
    run_chapters(builder, *result, operands, run).unwrap_or_else(|| Err("there is no such conversion".into()))
}

/// Passes checked operands to the chapters; `None` if no chapter handles the instruction.
pub(super) fn run_chapters(
    builder: &mut Builder,
    result: ArithmeticType,
    operands: &[OperandValues<'_>],
    run: impl FnOnce(&mut Call<'_>) -> Option<ArithmeticResult>,
) -> Option<Result<Values, String>> {
    let mut lists: SmallVec<[Nums; 4]> = SmallVec::new();
    for (number, operand) in operands.iter().enumerate() {
        match call::checked(builder, number, operand) {
            Ok(list) => lists.push(list),
            Err(problem) => return Some(Err(problem)),
        }
    }
    let views: SmallVec<[Operand<'_>; 4]> =
        lists.iter().zip(operands).map(|(values, operand)| Operand { values, shape: operand.shape }).collect();
    let mut call = Call::new(builder, result, &views);
    let outcome = run(&mut call)?;
    Some(call.finish(outcome))
}

//! Arithmetic, bit, conversion, comparison and logical instructions, on exploded operands.
//!
//! The reader knows ids and types; these chapters know only scalars and shapes. So that a lying module cannot do harm,
//! every chapter checks the shapes that it was given against the instruction's rule, and no check relies on another's.
//! The chapters name operations of the IR, which are on 32 bits; `widths` says what becomes of them at others.

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

/// One operand of an instruction, exploded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exploded<'a> {
    /// The values of its scalars: components in order, matrices column by column.
    pub values: &'a [Value],
    /// How many scalars there are and of which type.
    pub shape: Shape,
}

/// As a chapter sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<'a> {
    /// Its scalars.
    pub values: &'a [Num],
    /// How many there are and of which type.
    pub shape: Shape,
}

/// The type of an operand or result, as far as arithmetic cares. Integers have no sign here: instructions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One scalar.
    Scalar(Scalar),
    /// So many components.
    Vector(Scalar, u32),
    /// Columns of vectors of floats.
    Matrix {
        /// Type of the components.
        element: Scalar,
        /// Number of column vectors.
        columns: u32,
        /// Components of each.
        rows: u32,
    },
}

impl Shape {
    /// How many scalars it has.
    pub(super) fn scalars(self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Vector(_, count) => count as usize,
            Self::Matrix { columns, rows, .. } => columns as usize * rows as usize,
        }
    }

    /// How many values it explodes into.
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

/// The scalars of a result, in the order of [`Operand::values`], or which rule the operands break.
pub(super) type Outcome = Result<Nums, String>;

/// A chapter's translator: `None` for instructions of other chapters.
type Chapter = fn(&mut Call<'_>, spirv::Op) -> Option<Outcome>;

const CHAPTERS: &[Chapter] =
    &[int::translate, float::translate, logic::translate, convert::translate, matrix::translate, dot::translate];

/// The values of a result.
pub(super) type Values = SmallVec<[Value; 4]>;

/// Translates an instruction of these chapters; `None` for any other.
///
/// Instructions whose result is a structure of two (`OpIAddCarry` and its kin) take the shape of one member as `result`
/// and give the scalars of the first member (low word, sum or difference), then those of the second.
pub(super) fn translate(
    builder: &mut Builder,
    op: spirv::Op,
    result: &Shape,
    operands: &[Exploded<'_>],
) -> Option<Result<Values, String>> {
    let run = |call: &mut Call<'_>| CHAPTERS.iter().find_map(|chapter| chapter(call, op));
    let outcome = run_chapters(builder, *result, operands, run)?;
    Some(outcome.map_err(|problem| format!("Op{op:?}: {problem}")))
}

/// `OpFConvert` to halves, towards zero.
pub(super) fn halves_towards_zero(
    builder: &mut Builder,
    result: &Shape,
    operands: &[Exploded<'_>],
) -> Result<Values, String> {
    let run = |call: &mut Call<'_>| Some(convert::towards_zero(call));
    run_chapters(builder, *result, operands, run).unwrap_or_else(|| Err("there is no such conversion".into()))
}

/// Hands checked operands to chapters; `None` if no chapter has the instruction.
pub(super) fn run_chapters(
    builder: &mut Builder,
    result: Shape,
    operands: &[Exploded<'_>],
    run: impl FnOnce(&mut Call<'_>) -> Option<Outcome>,
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

//! Arithmetic, bit, conversion, comparison and logical instructions, on exploded operands.
//!
//! The reader knows ids and types; these chapters know only scalars and shapes. So that a lying module cannot do harm,
//! every chapter checks the shapes that it was given against the instruction's rule, and no check relies on another's.

mod call;
mod convert;
mod float;
mod int;
mod logic;
mod matrix;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use crate::ir::{Builder, Type, Value};
pub(super) use call::{Call, describe, expect};

/// One operand of an instruction, exploded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<'a> {
    /// The scalars: components in order, matrices column by column.
    pub values: &'a [Value],
    /// How many there are and of which type.
    pub shape: Shape,
}

/// The type of an operand or result, as far as arithmetic cares. Integers have no sign here: instructions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One scalar.
    Scalar(Type),
    /// So many components.
    Vector(Type, u32),
    /// Columns of `f32` vectors.
    Matrix {
        /// Number of column vectors.
        columns: u32,
        /// Components of each.
        rows: u32,
    },
}

impl Shape {
    /// How many scalars it explodes into.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Vector(_, count) => count as usize,
            Self::Matrix { columns, rows } => columns as usize * rows as usize,
        }
    }

    /// Type of each scalar.
    pub(super) fn element(self) -> Type {
        match self {
            Self::Scalar(ty) | Self::Vector(ty, _) => ty,
            Self::Matrix { .. } => Type::F32,
        }
    }
}

/// The scalars of a result, in the order of [`Operand::values`].
pub(super) type Values = SmallVec<[Value; 4]>;

/// The scalars, or which rule the operands break.
pub(super) type Outcome = Result<Values, String>;

/// A chapter's translator: `None` for instructions of other chapters.
type Chapter = fn(&mut Call<'_>, spirv::Op) -> Option<Outcome>;

const CHAPTERS: &[Chapter] =
    &[int::translate, float::translate, logic::translate, convert::translate, matrix::translate];

/// Translates an instruction of these chapters; `None` for any other.
///
/// Instructions whose result is a structure of two (`OpIAddCarry` and its kin) take the shape of one member as `result`
/// and give the scalars of the first member (low word, sum or difference), then those of the second.
pub(super) fn translate(
    builder: &mut Builder,
    op: spirv::Op,
    result: &Shape,
    operands: &[Operand<'_>],
) -> Option<Outcome> {
    let outcome = match Call::new(builder, *result, operands) {
        Ok(mut call) => CHAPTERS.iter().find_map(|chapter| chapter(&mut call, op))?,
        Err(problem) => Err(problem),
    };
    Some(outcome.map_err(|problem| format!("Op{op:?}: {problem}")))
}

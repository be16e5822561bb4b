//! One scalar of any width, as the IR holds it.
//!
//! Integers of 8 and 16 bits are an `i32` with zeros above. Halves are an `f32` that a half can hold. Integers of 64 bits are
//! two `i32`, the low word first, and so are the bits of doubles.

use smallvec::SmallVec;

use super::super::scalar::Scalar;
use super::Shape;
use crate::ir::Value;

/// A scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Num {
    /// Its type.
    pub ty: Scalar,
    /// Its value, or the low word.
    pub low: Value,
    /// The high word; the value once more where there is only one.
    pub high: Value,
}

/// Some of them.
pub(in super::super) type Nums = SmallVec<[Num; 4]>;

impl Num {
    /// Of one value.
    pub(in super::super) fn new(ty: Scalar, value: Value) -> Self {
        Self { ty, low: value, high: value }
    }

    /// Of two words.
    pub(in super::super) fn wide(ty: Scalar, [low, high]: [Value; 2]) -> Self {
        Self { ty, low, high }
    }

    /// Its words.
    pub(in super::super) fn words(self) -> [Value; 2] {
        [self.low, self.high]
    }

    /// The values that it takes.
    pub(in super::super) fn values(self) -> impl Iterator<Item = Value> {
        self.words().into_iter().take(self.ty.words() as usize)
    }
}

/// The scalars of a shape from their values; `None` if there are not as many as the shape has.
pub(in super::super) fn of_values(shape: Shape, values: &[Value]) -> Option<Nums> {
    let ty = shape.element();
    let words = ty.words() as usize;
    let fits = values.len() == shape.len();
    fits.then(|| {
        values.chunks_exact(words).map(|words| Num { ty, low: words[0], high: words[words.len() - 1] }).collect()
    })
}

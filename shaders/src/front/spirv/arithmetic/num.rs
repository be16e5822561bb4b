//! A scalar of any width, as IR values.
//!
//! 8- and 16-bit integers are a zero-extended `i32`. Halves are an `f32` with the value of a half. 64-bit integers are
//! two `i32`, low word first, and so are the bits of doubles.

use smallvec::SmallVec;

use super::super::scalar::Scalar;
use super::ArithmeticType;
use crate::ir::Value;

/// A scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Num {
    /// Its type.
    pub ty: Scalar,
    /// Its value, or the low word.
    pub low: Value,
    /// The high word; equal to `low` for scalars of one value.
    pub high: Value,
}

/// A list of scalars.
pub(in super::super) type Nums = SmallVec<[Num; 4]>;

impl Num {
    /// A scalar of one value.
    pub(in super::super) fn new(ty: Scalar, value: Value) -> Self {
        Self { ty, low: value, high: value }
    }

    /// A scalar of two words.
    pub(in super::super) fn wide(ty: Scalar, [low, high]: [Value; 2]) -> Self {
        Self { ty, low, high }
    }

    /// Its words.
    pub(in super::super) fn words(self) -> [Value; 2] {
        [self.low, self.high]
    }

    /// The values of the scalar: one or two.
    pub(in super::super) fn values(self) -> impl Iterator<Item = Value> {
        self.words().into_iter().take(self.ty.words() as usize)
    }
}

/// The scalars of a shape from their values; `None` if the number of values does not match.
pub(in super::super) fn of_values(shape: ArithmeticType, values: &[Value]) -> Option<Nums> {
    let ty = shape.element();
    let words = ty.words() as usize;
    let fits = values.len() == shape.len();
    fits.then(|| {
        values.chunks_exact(words).map(|words| Num { ty, low: words[0], high: words[words.len() - 1] }).collect()
    })
}

//! Words of memory that accesses index.

use crate::simd::Value;

/// Words of memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectorize) struct WordArray {
    /// Host address of the first one, `s64`.
    pub(in crate::vectorize) base: Value,
    /// How many there are, `s32`.
    pub(in crate::vectorize) limit: Value,
}

//! Proofs that accesses are in bounds for all values of their terms, by the analysis of ranges.

use super::offset::{Offset, OffsetTerm};
use crate::analysis::{BlockShapes, Ranges};
use crate::ir::{Block, Value};

/// How far operations are followed to find how large an index is.
const RANGE_DEPTH: usize = 6;

/// What is known of the terms of offsets in one block.
#[derive(Clone, Copy)]
pub(super) struct TermRanges<'a> {
    pub(super) ranges: &'a Ranges,
    pub(super) block: Block,
}

impl TermRanges<'_> {
    /// Whether a word at the offset is inside of memory of `len` bytes, in all lanes.
    pub(super) fn is_inside(self, len: u64, offset: &Offset) -> bool {
        let terms = offset.terms().map(|term| self.max_bytes(term));
        terms.fold(offset.constant + 4, u64::saturating_add) <= len
    }

    /// The words that are inside of memory of `len` bytes after the constant and the uniform terms of an offset, if the
    /// contiguous index `lanes` is always below that.
    pub(super) fn words_after_uniform(self, len: u64, offset: &Offset, lanes: Value) -> Option<u64> {
        let uniform = offset.uniform.iter().map(|term| self.max_bytes(term));
        let words = len.checked_sub(uniform.fold(offset.constant, u64::saturating_add))? / 4;
        (u64::from(self.ranges.at(self.block, lanes).high) < words).then_some(words)
    }

    fn max_bytes(self, term: &OffsetTerm) -> u64 {
        u64::from(self.ranges.at(self.block, term.value).high) * u64::from(term.stride)
    }
}

/// The number of bytes before the contiguous index `lanes`, if the rest of the offset is one uniform multiple of 4
/// bytes and the sum of both, in words, does not wrap.
pub(super) fn bytes_before_row(shapes: BlockShapes, offset: &Offset, lanes: Value) -> Option<Value> {
    let [OffsetTerm { value, stride: 1 }] = offset.uniform[..] else { return None };
    let is_small = Ranges::local(shapes.kernel, lanes, RANGE_DEPTH).high < 1 << 31;
    (is_small && offset.constant == 0 && shapes.uniformity.zeros(value) >= 2).then_some(value)
}

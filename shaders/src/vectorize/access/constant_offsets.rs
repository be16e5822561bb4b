//! Words at constant offsets from a uniform base, and the rows that hold them.

use smallvec::SmallVec;

use super::offset::{Offset, OffsetTerm};
use crate::analysis::{BlockShapes, LaneConstants, LaneOffsetTable, Shape};
use crate::simd::LANES;

/// The farthest word of [`ConstantOffsets`].
const MAX_DISTANCE: u32 = 1 << 16;

/// Rows that hold some words, by their first.
pub(super) type CoveringRows = SmallVec<[u32; 8]>;

/// As few rows as possible for some words; none past the last word, if there are enough words.
pub(super) fn covering_rows(words: impl IntoIterator<Item = u32>) -> CoveringRows {
    let mut words: SmallVec<[u32; 64]> = words.into_iter().collect();
    words.sort_unstable();
    let last = words.last().map_or(0, |&last| last.saturating_sub(LANES - 1));
    let mut rows = CoveringRows::new();
    for word in words {
        if rows.last().is_none_or(|&row| word - row >= LANES) {
            rows.push(word.min(last));
        }
    }
    rows
}

/// Constant offsets in bytes from the base of the only term that lanes differ in. Their sum with the base cannot wrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::vectorize) struct ConstantOffsets {
    pub(super) term: OffsetTerm,
    pub(super) bytes: LaneConstants,
}

impl ConstantOffsets {
    pub(super) fn new(shapes: BlockShapes, offset: &Offset) -> Option<Self> {
        let [term @ OffsetTerm { value, stride }] = offset.lanes[..] else { return None };
        let Shape::Affine(offsets) = shapes.shape(value) else { return None };
        let zeros = shapes.uniformity.zeros(value);
        let lanes = *shapes.uniformity.lane_offsets.lanes(offsets);
        let fits = |&lane: &u32| (zeros >= 32 || lane >> zeros == 0) && lane < MAX_DISTANCE / stride.max(1);
        let row = offsets == LaneOffsetTable::CONTIGUOUS && stride == 4;
        let usable = !row && stride.is_multiple_of(4) && lanes.iter().all(fits);
        usable.then(|| Self { term, bytes: lanes.map(|lane| lane * stride) })
    }

    /// The words of the lanes, or those at a distance from them.
    pub(super) fn words(&self, distance: u32) -> LaneConstants {
        self.bytes.map(|bytes| bytes / 4 + distance)
    }
}

//! Operands of accesses in the SIMD form: uniform addresses, rows, interleave groups, and addresses per lane.

use smallvec::SmallVec;

use super::Value;
use crate::ir::Width;

/// A uniform address: `base + index * scale + disp`, in bounds if `index < limit`, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Host address, `s64`.
    pub base: Value,
    /// Without an index the address is `base + disp` and in bounds.
    pub index: Option<BoundedIndex>,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Bytes.
    pub disp: i32,
}

/// An index and its exclusive upper bound, both `s32` or both `s64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoundedIndex {
    /// In units of [`Address::scale`] bytes.
    pub index: Value,
    /// Indices from here on are out of bounds.
    pub limit: Value,
}

/// A row: contiguous (unit-stride) access. Lane `l` accesses `base + width * i`, `i = index + l` modulo 2³², in bounds
/// if `i < limit`, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Host address of word 0, `s64`.
    pub base: Value,
    /// Index of lane 0, `s32`.
    pub index: Value,
    /// Number of words in bounds, `s32`: at most 2³² bytes.
    pub limit: Value,
    /// 4 bytes, or less for sub-word access: loads zero-extend, stores truncate.
    pub width: Width,
}

/// Strided access: each lane has an element of one to four words, at a constant stride. `v0 + v1 if < [v2, v3]`,
/// `v0 + v1 * 16 if < [v2, v3]`, `v0 + v1 by 3 if < [v2, v3]`, `v0 + v1 segments 8 v4 * 16 if < [v2, v3]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Elements {
    /// Address of index 0, `s64`.
    pub base: Value,
    /// Index of lane 0, `s32`.
    pub index: Value,
    /// Segments of the lanes, if the stride is not the same for all 16.
    pub segments: Option<Segments>,
    /// The unit of indices and the stride of lanes.
    pub spacing: Spacing,
    /// By word of an element: exclusive upper bound of its index (`s32`, unsigned). Out-of-bounds words load 0 and are
    /// not stored.
    pub limits: SmallVec<[Value; 4]>,
    /// 4 bytes, or less for sub-word elements: loads zero-extend, stores truncate.
    pub width: Width,
}

/// Segmented (2-D blocked) access: segments of 4 or 8 lanes, whose first indices are a step apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segments {
    /// Lanes of a segment: 4 or 8.
    pub lanes: u8,
    /// Difference between the first indices of consecutive segments, modulo 2³², `s32`.
    pub step: Value,
}

/// Unit of indices and stride of lanes. All sums are modulo 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spacing {
    /// `* 16`: indices count elements with this stride in bytes, and lanes have consecutive elements. All words of an
    /// element have the same index, and no limit is above the one before it. Not printed if elements are dense.
    Bytes(u32),
    /// `by 3`: indices count words (or sub-words), and this is the stride of lanes. The words of an element have
    /// consecutive indices.
    Words(u32),
}

/// An address for each lane: `base + index * scale + disp`, the index unsigned. In active lanes `index * scale` is
/// below 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneAddress {
    /// Host address, `s64`.
    pub base: Value,
    /// `v32`.
    pub index: Value,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Bytes.
    pub disp: i32,
}

impl Elements {
    /// Stride in bytes of the elements of a segment.
    pub fn stride(&self) -> u32 {
        match self.spacing {
            Spacing::Bytes(bytes) => bytes,
            Spacing::Words(words) => words.saturating_mul(self.width.bytes()),
        }
    }

    /// Whether the elements of a segment are dense: no bytes between them.
    pub fn are_dense(&self) -> bool {
        self.stride() as usize == self.limits.len() * self.width.bytes() as usize
    }
}

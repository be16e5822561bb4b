//! Access patterns: which words the lanes of one access have, relative to each other.

use smallvec::SmallVec;

use super::constant_offsets::ConstantOffsets;
use super::elements::StridedElement;
use super::offset::{Offset, OffsetTerm};
use super::segments::SegmentedAccess;
use crate::analysis::BlockShapes;
use crate::ir::{self, Width};

/// Which words the lanes of an access have, relative to each other. Examples are bodies of
/// `for lane in 0..16 { .. }`, with a constant `K`, and values `u`, `v` that are uniform.
#[derive(Clone, Debug)]
pub(in crate::vectorize) enum AccessPattern {
    /// One word for all lanes: a scalar load and a broadcast.
    ///
    /// ```text
    /// for lane in 0..16 {
    ///     let index = u;
    ///     x[lane] = a[index];
    /// }
    /// // load a[u], splat
    /// ```
    Uniform,
    /// Words in lane order without gaps: one masked row.
    ///
    /// ```text
    /// for lane in 0..16 {
    ///     let index = u + lane;
    ///     x[lane] = a[index];
    /// }
    /// // load_row a[u..u + 16]
    /// ```
    Contiguous {
        /// The index, which counts elements of the access's width.
        index: ir::Value,
    },
    /// Elements at a constant stride: a candidate for an interleave group, whose members are accessed together as rows
    /// and transposed.
    ///
    /// ```text
    /// for lane in 0..16 {
    ///     let index = u + lane;
    ///     x[lane] = a[3 * index + 1];    // a[3 * index], a[3 * index + 2]: other members of the group
    /// }
    /// // load_elements a[3 * u..3 * u + 48]
    /// ```
    Strided(Box<StridedElement>),
    /// A few segments, each of which is contiguous, one word, or in two rows; the step between segments is a uniform
    /// value, as in tiles of an image.
    ///
    /// ```text
    /// for lane in 0..16 {
    ///     let (x, y) = (lane % 8, lane / 8);
    ///     x[lane] = a[u + y * v + x];
    /// }
    /// // load_row a[u..], load_row a[u + v - 8..], select
    /// ```
    Segments(Box<SegmentedAccess>),
    /// Constant offsets from a uniform base: a candidate for an interleave group, which needs the fewest rows that hold
    /// all words of its members, and shuffles.
    ///
    /// ```text
    /// for lane in 0..16 {
    ///     let index = u + [0, 2, 5, 7, ..][lane];
    ///     x[lane] = a[index];
    /// }
    /// // load_row a[u..u + 16], load_row a[u + 16..], pick
    /// ```
    Offsets(Box<ConstantOffsets>),
    /// Any word in each lane: a gather or scatter, or the interleave group of one that accesses neighbouring words
    /// together.
    ///
    /// ```text
    /// for lane in 0..16 {
    ///     let index = b[lane];
    ///     x[lane] = a[index];
    /// }
    /// // gather a[b]
    /// ```
    PerLane,
}

impl AccessPattern {
    /// The pattern that any access has: uniform, contiguous, or per lane.
    pub(super) fn basic(shapes: BlockShapes, offset: &Offset, width: Width) -> Self {
        match offset.lanes[..] {
            [] => Self::Uniform,
            [OffsetTerm { value, stride }] if stride == width.bytes() && shapes.is_contiguous(value) => {
                Self::Contiguous { index: value }
            }
            _ => Self::PerLane,
        }
    }

    /// The name of the pattern, for tools.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Contiguous { .. } => "contiguous",
            Self::Strided(element) => element.lanes.name(),
            Self::Segments(_) => "segments",
            Self::Offsets(_) => "constant offsets",
            Self::PerLane => "per lane",
        }
    }

    /// The values, beside the offset's terms, that the translation of an access reads.
    pub(super) fn operands(&self) -> SmallVec<[ir::Value; 4]> {
        match self {
            Self::Strided(element) => element.lanes.operands(),
            Self::Segments(segments) => segments.operands().collect(),
            Self::Uniform | Self::Contiguous { .. } | Self::Offsets(_) | Self::PerLane => SmallVec::new(),
        }
    }
}

//! Access patterns: decomposition of byte offsets, and which words the lanes of one access have.
//!
//! `element` saturates at `u32::MAX`, so the exact sum of an offset's terms decides whether an access is in bounds: a
//! sum that would saturate is out of bounds, since no buffer is that long.

use smallvec::SmallVec;

use super::interleave::{LaneElements, StridedElement};
use super::segments::SegmentedAccess;
use crate::analysis::{BlockShapes, LaneConstants, LaneOffsetTable, Shape};
use crate::ir::{self, InstData as Scalar, VariableSpace, Width};
use crate::simd::LANES;

/// The farthest word of [`ConstantOffsets`].
const MAX_DISTANCE: u32 = 1 << 16;

/// An offset past the end of any memory.
const BEYOND: u64 = 1 << 32;

/// `value * stride` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vectorize) struct OffsetTerm {
    pub(in crate::vectorize) value: ir::Value,
    pub(in crate::vectorize) stride: u32,
}

/// A byte offset: the exact sum of a constant and terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::vectorize) struct Offset {
    pub(in crate::vectorize) constant: u64,
    /// Terms that are the same in all lanes.
    pub(in crate::vectorize) uniform: SmallVec<[OffsetTerm; 2]>,
    /// Terms that differ between lanes.
    pub(in crate::vectorize) lanes: SmallVec<[OffsetTerm; 2]>,
}

impl Offset {
    /// Decomposes a byte offset: each `element` of a chain adds a term.
    pub(super) fn new(shapes: BlockShapes, mut value: ir::Value) -> Self {
        let mut offset = Self::default();
        loop {
            if let Some(bits) = shapes.kernel.constant(value) {
                // A saturated sum was folded to this constant: out of bounds, but a multiple of 4.
                offset.constant += if bits == u64::from(u32::MAX) { BEYOND } else { bits };
                return offset;
            }
            let Some(&Scalar::Element { base, index, stride }) = shapes.definition(value) else {
                offset.add_term(shapes, value, 1);
                return offset;
            };
            offset.add_term(shapes, index, stride);
            value = base;
        }
    }

    fn add_term(&mut self, shapes: BlockShapes, value: ir::Value, stride: u32) {
        if let Some(bits) = shapes.kernel.constant(value) {
            self.constant += bits * u64::from(stride);
        } else if stride > 0 {
            let list = if shapes.is_uniform(value) { &mut self.uniform } else { &mut self.lanes };
            list.push(OffsetTerm { value, stride });
        }
    }

    pub(in crate::vectorize) fn terms(&self) -> impl Iterator<Item = &OffsetTerm> {
        self.uniform.iter().chain(&self.lanes)
    }

    /// Whether the offset is a multiple of `bytes` in all lanes.
    pub(in crate::vectorize) fn is_multiple_of(&self, bytes: u32) -> bool {
        self.constant.is_multiple_of(bytes.into()) && self.terms().all(|term| term.stride.is_multiple_of(bytes))
    }

    /// Whether the offset is a multiple of 4 in all lanes.
    pub(in crate::vectorize) fn is_aligned(&self) -> bool {
        self.is_multiple_of(4)
    }
}

/// Whether each lane has its own memory for a variable.
pub(in crate::vectorize) fn is_private(kernel: &ir::Kernel, variable: ir::Variable) -> bool {
    kernel.variables[variable].space == VariableSpace::Private
}

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
        let Shape::Affine(pattern) = shapes.shape(value) else { return None };
        let zeros = shapes.uniformity.zeros(value);
        let lanes = *shapes.uniformity.patterns.lanes(pattern);
        let fits = |&lane: &u32| (zeros >= 32 || lane >> zeros == 0) && lane < MAX_DISTANCE / stride.max(1);
        let row = pattern == LaneOffsetTable::CONTIGUOUS && stride == 4;
        let usable = !row && stride.is_multiple_of(4) && lanes.iter().all(fits);
        usable.then(|| Self { term, bytes: lanes.map(|lane| lane * stride) })
    }

    /// The words of the lanes, or those at a distance from them.
    pub(super) fn words(&self, distance: u32) -> LaneConstants {
        self.bytes.map(|bytes| bytes / 4 + distance)
    }

    /// Rows that hold the first words of the lanes' elements.
    pub(super) fn rows(&self, words: u32) -> CoveringRows {
        covering_rows((0..words).flat_map(|word| self.words(word)))
    }
}

impl LaneElements {
    /// The name of the pattern, for tools.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Row { .. } | Self::Strided { .. } => "strided",
            Self::Coalesced { .. } => "constant offsets",
            Self::Gathered(_) => "adjacent words",
        }
    }

    /// The values that its translation reads, beside terms of the offset.
    pub(super) fn operands(&self) -> SmallVec<[ir::Value; 4]> {
        match self {
            Self::Row { index, segments: Some(segments), .. } => segments.operands().chain([index.value]).collect(),
            Self::Row { index, segments: None, .. } => SmallVec::from_slice(&[index.value]),
            Self::Strided { number, .. } => SmallVec::from_slice(&[*number]),
            Self::Coalesced { offsets, .. } => SmallVec::from_slice(&[offsets.term.value]),
            Self::Gathered(terms) => terms.iter().map(|term| term.value).collect(),
        }
    }
}

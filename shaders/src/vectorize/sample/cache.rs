//! Cache of the samples of a block: descriptors, coordinates and addresses that are computed once.

use foldhash::{HashMap, HashSet};

use crate::ir;
use crate::simd::Value;
use crate::vectorize::access::word_array::WordArray;

/// State that the samples of a block share.
#[derive(Debug, Default)]
pub(in crate::vectorize) struct SampleCache {
    /// Number of inlined samples.
    pub(super) emitted: usize,
    /// By image, and whether it is arrayed.
    pub(super) sources: HashMap<(Value, bool), WordImage>,
    pub(super) pairs: HashMap<DescriptorKey, SampledImage>,
    pub(super) spans: HashMap<(Value, usize, DescriptorKey), TexelSpan>,
    pub(super) heads: HashMap<InlineSample, SampleHead>,
    /// Values that were computed early.
    pub(in crate::vectorize) early: HashSet<ir::Value>,
}

/// The operands of a sample that can be inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct InlineSample {
    pub(super) key: DescriptorKey,
    pub(super) coordinates: [Value; 2],
    /// Whether y is the same in all lanes.
    pub(super) is_level: bool,
    pub(super) layer: Option<Layer>,
}

/// The coordinate of an arrayed image's layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Layer {
    pub(super) coordinate: Value,
    /// Whether it is the same in all lanes.
    pub(super) is_uniform: bool,
}

impl SampleCache {
    /// Drops all cached values: the following code is in another block.
    pub(in crate::vectorize) fn clear(&mut self) {
        self.sources.clear();
        self.pairs.clear();
        self.spans.clear();
        self.heads.clear();
        self.early.clear();
    }
}

/// An image and a sampler, and how a sample uses them: cache key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DescriptorKey {
    /// Index of the image's descriptor.
    pub(super) image: Value,
    /// Index of the sampler's.
    pub(super) sampler: Value,
    /// Whether the image is arrayed.
    pub(super) arrayed: bool,
    /// Whether the level of detail is the constant 0.
    pub(super) is_base_level: bool,
}

/// An image with texels of one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordImage {
    /// Whether level 0 can be read without a call, `s1`.
    pub(super) is_direct: Value,
    /// Whether texels are floats, `s1`.
    pub(super) is_float: Value,
    /// Whether level 0 is the only level, `s1`.
    pub(super) has_one_level: Value,
    /// Width, height and number of layers, and the indices of the last texels and of the last layer: `s32`.
    pub(super) sizes: [Value; 3],
    pub(super) lasts: [Value; 3],
    /// Row pitch and layer pitch in words: `s32`.
    pub(super) pitch: Value,
    pub(super) layer_pitch: Value,
    /// The image, and the image without its first row.
    pub(super) rows: [WordArray; 2],
}

/// An image with a sampler.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampledImage {
    pub(super) source: WordImage,
    /// Whether samples need no call, `s1`.
    pub(super) is_direct: Value,
    /// Whether out-of-range coordinates can be wrapped inline, `s1`.
    pub(super) wraps: Value,
    pub(super) axes: [Axis; 2],
    /// Added to fixed-point coordinates, in each lane.
    pub(super) middle: Value,
    /// Fraction bits of fixed-point coordinates, 0 for the nearest filter: as a shift amount in each lane, and as a
    /// mask, `s32`.
    pub(super) shift: Value,
    pub(super) fraction: Value,
    /// The fraction bits that give the weight between rows: encoded texels use fewer than floats. `s32`.
    pub(super) slope: Value,
}

/// Constants of one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Factor of coordinates, in each lane.
    pub(super) scale: Value,
    /// Factor from fraction bits to weights of [`bytes`](crate::image::bytes), in each lane: 0 for the nearest filter.
    pub(super) steps: Value,
    /// Number of texels, `s32`.
    pub(super) size: Value,
    /// Index of the last texel, `s32`.
    pub(super) last: Value,
    /// Exclusive upper bound of lane 0's texel for contiguous lanes along x to be in range. `s32`.
    pub(super) room: Value,
    /// Whether the address mode is repeat, `s1`.
    pub(super) repeats: Value,
}

/// The two texels around a coordinate.
#[derive(Clone, Copy, Debug)]
pub(super) struct TexelSpan {
    /// Index of the first texel; unspecified if it is far out of range.
    pub(super) first: Value,
    /// The coordinate in fixed point.
    pub(super) at: Value,
    /// Weights for [`bytes`](crate::image::bytes): of x four bytes, in each half-word those of the first and the second
    /// texel; of y the second's, in half-words.
    pub(super) weights: Value,
}

/// The part of a sample that is computed before its branches.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleHead {
    /// The weights of the spans along x and y.
    pub(super) weights: [Value; 2],
    /// Index of lane 0's first word, `s32`; if lane 0 is inactive, extrapolated from the active lanes.
    pub(super) first: Value,
    /// Whether texels of active lanes are out of range or not contiguous, `s1`.
    pub(super) is_odd: Value,
    /// Whether the second row has a weight in an active lane, `s1`.
    pub(super) is_sloped: Value,
}

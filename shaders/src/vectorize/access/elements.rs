//! Elements of several words, or of less than one, that lanes access: one for each lane.

use smallvec::SmallVec;

use super::constant_offsets::ConstantOffsets;
use super::offset::{Offset, OffsetTerm};
use super::segments::EqualSegments;
use crate::analysis::BlockShapes;
use crate::ir::{self, Width};
use crate::simd::LANES;

/// Words of a long element that are accessed together.
pub(super) const MAX_WORDS: u32 = 4;

/// Bytes between the elements of neighbouring lanes.
const MAX_STRIDE: u32 = 1 << 16;
const MAX_SUBWORD_STRIDE: u32 = 8;

/// Which element each lane has. `skip` is the constant part of the offset of element 0, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LaneElements {
    /// Contiguous elements, perhaps in segments; the stride of the index is the size of an element.
    Row { index: OffsetTerm, skip: u64, segments: Option<Box<EqualSegments>> },
    /// Words at a constant stride, as in `a[3 * i + 1]`: the index without the constant that is added to it.
    Strided { number: ir::Value, stride_words: u32, skip: u64 },
    /// Elements at constant offsets, as [`AccessPattern::Offsets`]; also single words.
    Coalesced { offsets: Box<ConstantOffsets>, skip: u64 },
    /// Any element.
    Gathered(SmallVec<[OffsetTerm; 2]>),
}

/// The word of an element that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElementWord {
    /// From the beginning of the element.
    pub(super) number: u64,
    /// What is added to the index of [`LaneElements::Strided`], or to the only index of [`LaneElements::Gathered`],
    /// modulo 2³²: it counts words, too.
    pub(super) step: u32,
}

/// A word of elements at a constant stride.
#[derive(Clone, Debug)]
pub(in crate::vectorize) struct StridedElement {
    pub(super) lanes: LaneElements,
    pub(super) word: ElementWord,
}

impl StridedElement {
    /// The element of an offset with one term that lanes differ in: all stores, and loads of elements that rows hold
    /// without much between them.
    pub(super) fn new(shapes: BlockShapes, offset: &Offset, width: Width, store: bool) -> Option<Self> {
        let [OffsetTerm { value, stride }] = offset.lanes[..] else { return None };
        let (bytes, constant) = (width.bytes(), offset.constant);
        let max_stride = if width == Width::Word { MAX_STRIDE } else { MAX_SUBWORD_STRIDE };
        let stride_of = |value| shapes.lane_affine(value).filter(|index| index.base() == Some(value))?.stride();
        if stride == bytes
            && let Some(stride_words) = stride_of(value)
        {
            let max_stride = if width == Width::Word && !store { MAX_WORDS * bytes } else { max_stride };
            let (number, step) = shapes.without_constant(value);
            let fits =
                stride_words > 1 && stride_words <= max_stride / bytes && stride_of(number) == Some(stride_words);
            let lanes = LaneElements::Strided { number, stride_words, skip: constant };
            return fits.then_some(Self { lanes, word: ElementWord { number: 0, step } });
        }
        let within = constant % u64::from(stride);
        let is_part = within.is_multiple_of(u64::from(bytes)) && stride.is_multiple_of(bytes);
        if stride < bytes || stride > max_stride || !is_part {
            return None;
        }
        let segments = match shapes.is_contiguous(value) {
            true => None,
            _ if width != Width::Word => return None,
            // Single words that are close to each other are rows.
            _ => {
                let segments = EqualSegments::new(shapes, value)?;
                (store || stride > bytes || segments.has_symbolic_step()).then_some(())?;
                Some(Box::new(segments))
            }
        };
        let (mut skip, mut number) = (constant - within, within / u64::from(bytes));
        if width == Width::Word && !store && stride > MAX_WORDS * bytes {
            // Of a long element, four words next to each other.
            let max_words = u64::from(MAX_WORDS);
            let first = (number / max_words * max_words).min(u64::from(stride / bytes) - max_words);
            (skip, number) = (skip + first * u64::from(bytes), number - first);
        }
        let lanes = LaneElements::Row { index: OffsetTerm { value, stride }, skip, segments };
        Some(Self { lanes, word: ElementWord { number, step: 0 } })
    }
}

impl ElementWord {
    /// The first of some words and the last: those of numbers and of steps.
    pub(super) fn span(words: impl Iterator<Item = Self> + Clone) -> (Self, Self) {
        let origin = words.clone().next().map_or(0, |word| word.step);
        // Steps close to each other, on both sides of 0 perhaps.
        let steps = words.clone().map(|word| word.step.wrapping_sub(origin).cast_signed());
        let (min, max) = (steps.clone().min().unwrap_or(0), steps.max().unwrap_or(0));
        let numbers = words.map(|word| word.number);
        let first = Self { number: numbers.clone().min().unwrap_or(0), step: origin.wrapping_add_signed(min) };
        let last = Self { number: numbers.max().unwrap_or(0), step: origin.wrapping_add_signed(max) };
        (first, last)
    }

    /// How many words it is from `first`, which is not after it.
    pub(super) fn distance(self, first: Self) -> usize {
        (self.number - first.number) as usize + self.step.wrapping_sub(first.step) as usize
    }
}

impl LaneElements {
    /// The words of an element that are accessed together at best.
    pub(super) fn words_of_element(&self, width: Width) -> SmallVec<[ElementWord; 4]> {
        let at_stride = |bytes: u32| (bytes / 4).clamp(1, MAX_WORDS);
        let (words, steps) = match self {
            Self::Row { index, .. } => (at_stride(index.stride), 1),
            Self::Coalesced { offsets, .. } => (at_stride(offsets.term.stride), 1),
            Self::Strided { stride_words, .. } if width == Width::Word => (1, (*stride_words).min(MAX_WORDS)),
            Self::Strided { .. } | Self::Gathered(_) => (1, 1),
        };
        let numbers = (0..words).flat_map(|number| (0..steps).map(move |step| (number, step)));
        numbers.map(|(number, step)| ElementWord { number: number.into(), step }).collect()
    }

    /// Rows that hold `words` words of each lane's element.
    pub(super) fn rows(&self, words: u32) -> u32 {
        match self {
            Self::Strided { stride_words, .. } => (*stride_words).min(MAX_WORDS),
            Self::Row { segments: Some(segments), .. } => {
                let lanes = u32::from(segments.lanes());
                LANES / lanes * (lanes * words).div_ceil(LANES)
            }
            _ => words,
        }
    }

    /// Whether elements have more words than are accessed together, so that each is a row of its own.
    pub(super) fn are_long(&self) -> bool {
        match self {
            Self::Row { index, .. } => index.stride > 4 * MAX_WORDS,
            Self::Strided { stride_words, .. } => *stride_words > MAX_WORDS,
            Self::Coalesced { .. } | Self::Gathered(_) => false,
        }
    }

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

//! Elements at equal distances: which accesses are words of such elements, and where those are.
//!
//! Lanes have neighbouring elements of an array, or words a constant number from each other as in `a[3 * i + 1]`. Stores go
//! there whatever is between the elements and whoever is off.

use smallvec::SmallVec;

use super::address::{MemoryRegion, Offset, Term};
use super::interleave::{ElementAccess, ElementWord, LaneElements, MAX_WORDS};
use super::segments::EqualSegments;
use crate::analysis::{LaneOffsetTable, Shape};
use crate::ir::{self, Inst, InstData as Scalar, Op, Width};
use crate::simd::{Elements, LANES, Spacing};
use crate::vectorize::{Value, Widen};

/// Bytes that lanes' elements are from each other, at most.
const MAX_STRIDE: u32 = 1 << 16;
const MAX_SUBWORD_STRIDE: u32 = 8;

impl Widen<'_> {
    /// Elements whose lanes are equal distances from each other: all stores, and loads of elements that rows hold without much
    /// between.
    pub(in crate::vectorize) fn strided_access(
        &self,
        Term { value, stride }: Term,
        constant: u64,
        width: Width,
        store: bool,
    ) -> Option<(LaneElements, ElementWord)> {
        let bytes = width.bytes();
        let most = if width == Width::Word { MAX_STRIDE } else { MAX_SUBWORD_STRIDE };
        if stride == bytes
            && let Some(stride_words) = self.distance(value)
        {
            let most = if width == Width::Word && !store { MAX_WORDS as u32 * bytes } else { most };
            let (number, step) = self.without_step(value);
            let fits = stride_words > 1 && stride_words <= most / bytes && self.distance(number) == Some(stride_words);
            let lanes = LaneElements::Strided { number, stride_words, skip: constant };
            return fits.then_some((lanes, ElementWord { number: 0, step }));
        }
        let within = constant % u64::from(stride);
        let is_part = within.is_multiple_of(u64::from(bytes)) && stride.is_multiple_of(bytes);
        if stride < bytes || stride > most || !is_part {
            return None;
        }
        let segments = match self.shape(value) {
            Shape::Affine(LaneOffsetTable::CONTIGUOUS) => None,
            _ if width != Width::Word => return None,
            // Single words that are close to each other are rows.
            _ => {
                let segments = EqualSegments::new(self.shapes(), value)?;
                (store || stride > bytes || segments.has_symbolic_step()).then_some(())?;
                Some(segments.lanes())
            }
        };
        let (mut skip, mut number) = (constant - within, within / u64::from(bytes));
        if width == Width::Word && !store && stride > MAX_WORDS as u32 * bytes {
            // Of a long element, four words next to each other.
            let first = (number / MAX_WORDS * MAX_WORDS).min(u64::from(stride / bytes) - MAX_WORDS);
            (skip, number) = (skip + first * u64::from(bytes), number - first);
        }
        let lanes = LaneElements::Row { index: Term { value, stride }, skip, segments };
        Some((lanes, ElementWord { number, step: 0 }))
    }

    /// What elements that an offset may be a word of are found with, beside its terms.
    pub(in crate::vectorize) fn uses_of_strides(&self, offset: &Offset) -> SmallVec<[ir::Value; 4]> {
        match offset.lanes[..] {
            [Term { value, stride: 1 | 2 | 4 }] => SmallVec::from_iter([self.without_step(value).0]),
            [Term { value, stride }]
                if stride.is_multiple_of(4)
                    && self.shape(value) != Shape::Affine(LaneOffsetTable::CONTIGUOUS)
                    && let Some(segments) = EqualSegments::new(self.shapes(), value) =>
            {
                segments.uses().collect()
            }
            _ => SmallVec::new(),
        }
    }

    /// An index without a constant that is added to it.
    pub(in crate::vectorize) fn without_step(&self, value: ir::Value) -> (ir::Value, u32) {
        if let ir::ValueDef::Result { inst, .. } = self.kernel.values[value]
            && let Scalar::Pure { op: Op::IAdd, args } = &self.kernel.insts[inst]
            && let Some(step) = self.kernel.constant(args[1])
            && !self.is_temporally_divergent(value)
        {
            return (args[0], step as u32);
        }
        (value, 0)
    }

    /// What is left of a region behind bytes that are known and those that all lanes share.
    pub(in crate::vectorize) fn skip_uniform(
        &mut self,
        region: MemoryRegion,
        constant: u64,
        uniform: &[Term],
    ) -> MemoryRegion {
        let before = Offset { constant, uniform: SmallVec::from_slice(uniform), lanes: SmallVec::new() };
        let skip = self.uniform_part(&before);
        self.skip(region, skip)
    }

    /// How much more each lane has than the one before, if that is the same for all.
    fn distance(&self, value: ir::Value) -> Option<u32> {
        let Shape::Affine(pattern) = self.shape(value) else { return None };
        let lanes = self.uniformity.patterns.lanes(pattern);
        let stride_words = lanes[1].wrapping_sub(lanes[0]);
        let even =
            (0..LANES).all(|lane| lanes[lane as usize] == lanes[0].wrapping_add(lane.wrapping_mul(stride_words)));
        even.then_some(stride_words)
    }

    /// Where so many words of an element are from one word on.
    pub(in crate::vectorize) fn strided_elements(
        &mut self,
        element: &ElementAccess,
        inst: Inst,
        first: ElementWord,
        count: usize,
    ) -> Elements {
        let region = self.region_of(inst);
        let width = element.width;
        match element.lanes {
            LaneElements::Strided { number, stride_words, skip } => {
                let MemoryRegion { base, len } = self.skip_uniform(region, skip, &element.uniform);
                let lane_0 = match self.shape(number) {
                    Shape::Affine(pattern) => self.uniformity.patterns.lanes(pattern)[0],
                    _ => 0,
                };
                let index = self.get(number);
                let index = self.plus_scalar(index, lane_0.wrapping_add(first.step));
                let limit = self.count_subwords(len, width.bytes(), width);
                let limits = (0..count).map(|_| limit).collect();
                Elements { base, index, segments: None, spacing: Spacing::Words(stride_words), limits, width }
            }
            LaneElements::Row { index: Term { value, stride }, skip, segments } => {
                let bytes = u64::from(width.bytes());
                let region = self.skip_uniform(region, skip + first.number * bytes, &element.uniform);
                let (index, segments) = match segments.and_then(|_| EqualSegments::new(self.shapes(), value)) {
                    Some(segments) => {
                        let (index, segments) = self.equal_segments_start(&segments);
                        (index, Some(segments))
                    }
                    None => (self.get(value), None),
                };
                let mut limits: SmallVec<[Value; 4]> = SmallVec::new();
                for word in 0..count as u64 {
                    let before = self.builder.s64(word * bytes);
                    let rest = self.skip(region, before);
                    limits.push(self.count_subwords(rest.len, stride, width));
                }
                Elements { base: region.base, index, segments, spacing: Spacing::Bytes(stride), limits, width }
            }
            LaneElements::Coalesced { .. } | LaneElements::Gathered(_) => {
                unreachable!("elements at distances that are not equal")
            }
        }
    }
}

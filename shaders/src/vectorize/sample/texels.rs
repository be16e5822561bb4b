//! Loads the four texels around a sample's coordinates.

use smallvec::{SmallVec, smallvec};

use super::cache::{Axis, DescriptorKey, InlineSample, Layer, SampleHead, SampledImage, TexelSpan, WordImage};
use crate::image::address::PLACES;
use crate::image::{bytes, direct};
use crate::ir::{Op, Width};
use crate::simd::{Block, InstData, LaneAddress, Row, Value};
use crate::vectorize::access::word_array::WordArray;
use crate::vectorize::image::Components;
use crate::vectorize::state::Widen;

/// The words of four texels, x varying fastest.
pub(super) type Corners = [Value; 4];

impl Widen<'_> {
    /// Computes texel addresses and weights of a sample.
    pub(super) fn head(&mut self, sample: &InlineSample) -> SampleHead {
        if let Some(&known) = self.cache.samples.heads.get(sample) {
            return known;
        }
        let pair = self.pair(sample.key);
        let [x, y] = [0, 1].map(|dim| self.span(sample.key, &pair, sample.coordinates[dim], dim));
        let lanes = self.builder.lane_ids();
        let starts = self.builder.pure(Op::ISub, &[x.first, lanes]);
        let (column, mut odd) = self.of_one_lane(starts, false);
        let (row, others) = self.of_one_lane(y.first, sample.is_level);
        odd = others.map_or(odd, |others| odd.map(|odd| self.builder.or(odd, others)));
        let start = self.builder.pure(Op::IMul, &[row, pair.source.pitch]);
        let mut first = self.builder.pure(Op::IAdd, &[start, column]);
        if let Some(Layer { coordinate: layer, is_uniform: is_one }) = sample.layer {
            let words = self.layer(&pair, layer);
            let (words, others) = self.of_one_lane(words, is_one);
            odd = others.map_or(odd, |others| odd.map(|odd| self.builder.or(odd, others)));
            first = self.builder.pure(Op::IAdd, &[first, words]);
        }
        let room = [(column, 0), (row, 1)].map(|(at, dim): (Value, usize)| {
            let inside = self.builder.pure(Op::ULt, &[at, pair.axes[dim].room]);
            self.builder.pure(Op::LNot, &[inside])
        });
        let mut is_odd = self.builder.pure(Op::LOr, &room);
        if let Some(odd) = odd {
            let odd = self.builder.any(odd);
            is_odd = self.builder.pure(Op::LOr, &[is_odd, odd]);
        }
        let is_sloped = if sample.is_level {
            let (at, none) = (self.of_one_lane(y.at, true).0, self.builder.s32(0));
            let weight = self.builder.pure(Op::And, &[at, pair.slope]);
            self.builder.pure(Op::INe, &[weight, none])
        } else {
            let (slope, none) = (self.kept_in_lanes(pair.slope), self.each(0));
            let weight = self.builder.pure(Op::And, &[y.at, slope]);
            let sloped = self.builder.pure(Op::INe, &[weight, none]);
            let sloped = self.builder.and(self.exec, sloped);
            self.builder.any(sloped)
        };
        let head = SampleHead { weights: [x.weights, y.weights], first, is_odd, is_sloped };
        self.cache.samples.heads.insert(*sample, head);
        head
    }

    /// The word of a vector in one active lane, and the active lanes with a different word, unless all are known to be
    /// equal.
    fn of_one_lane(&mut self, vector: Value, is_one: bool) -> (Value, Option<Value>) {
        if is_one {
            return (self.of_all_lanes(vector), None);
        }
        let first = self.of_active_lanes(vector);
        let all = self.builder.splat(first);
        let others = self.builder.pure(Op::INe, &[vector, all]);
        (first, Some(self.builder.and(self.exec, others)))
    }

    /// A coordinate in fixed point: the texel index is in the high bits for linear filters.
    fn fixed_point(&mut self, pair: &SampledImage, coordinate: Value, dim: usize) -> Value {
        let at = self.builder.pure(Op::Fma, &[coordinate, pair.axes[dim].scale, pair.middle]);
        self.builder.pure(Op::FloorToSInt, &[at])
    }

    /// The weight of a coordinate's second texel as a float.
    pub(super) fn weight(&mut self, pair: &SampledImage, coordinate: Value, dim: usize) -> Value {
        let at = self.fixed_point(pair, coordinate, dim);
        let fraction = self.builder.splat(pair.fraction);
        let part = self.builder.pure(Op::And, &[at, fraction]);
        let part = self.builder.pure(Op::SIntToFloat, &[part]);
        let one = self.float(1.0 / PLACES);
        self.builder.pure(Op::FMul, &[part, one])
    }

    /// The texels around a coordinate.
    fn span(&mut self, key: DescriptorKey, pair: &SampledImage, coordinate: Value, dim: usize) -> TexelSpan {
        if let Some(&known) = self.cache.samples.spans.get(&(coordinate, dim, key)) {
            return known;
        }
        let at = self.fixed_point(pair, coordinate, dim);
        let first = self.builder.pure(Op::AShr, &[at, pair.shift]);
        let step = self.builder.pure(Op::HalvesMulHigh, &[at, pair.axes[dim].steps]);
        let weights = if dim == 0 {
            // The two weights add up to a constant.
            let [more, all] = [0x00ff_00ff, 0x1_0001 * u32::from(bytes::STEPS)].map(|bits| self.each(bits));
            let moved = self.builder.pure(Op::IMul, &[step, more]);
            self.builder.pure(Op::IAdd, &[moved, all])
        } else {
            let both = self.each(0x80_0080);
            self.builder.pure(Op::IMul, &[step, both])
        };
        let span = TexelSpan { first, at, weights };
        self.cache.samples.spans.insert((coordinate, dim, key), span);
        span
    }

    /// Offset in words from the first layer to that of a coordinate.
    pub(super) fn layer(&mut self, pair: &SampledImage, coordinate: Value) -> Value {
        let zero = self.float(0.0);
        let last = self.builder.splat(pair.source.lasts[2]);
        let last = self.builder.pure(Op::SIntToFloat, &[last]);
        let clamped = self.builder.pure(Op::FMax, &[coordinate, zero]);
        let clamped = self.builder.pure(Op::FMin, &[clamped, last]);
        let number = self.builder.pure(Op::RoundToSInt, &[clamped]);
        let pitch = self.builder.splat(pair.source.layer_pitch);
        self.builder.pure(Op::IMul, &[number, pitch])
    }

    /// Index of a texel's word.
    pub(super) fn texel_index(&mut self, source: &WordImage, [x, y]: [Value; 2], layer: Option<Value>) -> Value {
        let pitch = self.kept_in_lanes(source.pitch);
        let row = self.builder.pure(Op::IMul, &[y, pitch]);
        let index = self.builder.pure(Op::IAdd, &[row, x]);
        layer.map_or(index, |layer| self.builder.pure(Op::IAdd, &[index, layer]))
    }

    /// Index of lane 0's word if the active lanes' words are contiguous, and the lanes for which they are not.
    pub(super) fn as_row(&mut self, index: Value) -> (Value, Value) {
        let lanes = self.builder.lane_ids();
        let starts = self.builder.pure(Op::ISub, &[index, lanes]);
        let first = self.of_active_lanes(starts);
        let all = self.builder.splat(first);
        (first, self.builder.pure(Op::INe, &[starts, all]))
    }

    /// Two adjacent texels of a row for each lane, contiguous across lanes.
    fn two_of_row(&mut self, WordArray { base, limit }: WordArray, first: Value) -> [Value; 2] {
        let one = self.builder.s32(1);
        let next = self.builder.pure(Op::IAdd, &[first, one]);
        [first, next].map(|index| {
            let row = Row { base, index, limit, width: Width::Word };
            self.builder.emit_value(InstData::LoadRow { row })
        })
    }

    /// Loads four texels that are in range and contiguous across lanes.
    pub(super) fn texels_in_row(&mut self, pair: &SampledImage, head: &SampleHead, texels: Block) {
        let [[c0, c1], [c2, c3]] = pair.source.rows.map(|row| self.two_of_row(row, head.first));
        self.jump_with(texels, smallvec![c0, c1, c2, c3]);
    }

    /// As before, if no lane's second row has a weight; branches to `texels` for floats.
    pub(super) fn line_of_texels(
        &mut self,
        pair: &SampledImage,
        head: &SampleHead,
        components: &Components,
        texels: Block,
        end: Block,
    ) {
        let [first, second] = self.two_of_row(pair.source.rows[0], head.first);
        let [unorm, float] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.branch(pair.source.is_float, float, unorm);
        self.begin(unorm);
        let mean = self.mean_of_codes([first, second], None, &head.weights, components);
        self.jump_with(end, mean);
        self.begin(float);
        self.jump_with(texels, smallvec![first, second, first, second]);
    }

    /// Loads texels at any coordinates, clamped or repeated if the sampler does that and they are not too far out;
    /// otherwise branches to the call.
    pub(super) fn texels_anywhere(&mut self, pair: &SampledImage, sample: &InlineSample, texels: Block, call: Block) {
        // Computed again, rather than kept live on all paths.
        let firsts = [0, 1].map(|dim| {
            let at = self.fixed_point(pair, sample.coordinates[dim], dim);
            self.builder.pure(Op::AShr, &[at, pair.shift])
        });
        let layer = sample.layer.map(|layer| self.layer(pair, layer.coordinate));
        let wrapped = self.builder.create_block();
        // Clamps to both sides; NaN becomes the most negative number.
        let [max, both] =
            [direct::MAX_DISTANCE, 2 * direct::MAX_DISTANCE + 1].map(|number| self.each(number.cast_unsigned()));
        let [mut inside, mut usable] = [self.exec, self.builder.splat(pair.wraps)];
        for (first, axis) in firsts.into_iter().zip(&pair.axes) {
            let last = self.builder.splat(axis.last);
            let fits = self.builder.pure(Op::ULt, &[first, last]);
            inside = self.builder.and(inside, fits);
            let moved = self.builder.pure(Op::IAdd, &[first, max]);
            let is_near = self.builder.pure(Op::ULt, &[moved, both]);
            usable = self.builder.and(usable, is_near);
        }
        let usable = self.builder.or(usable, inside);
        let unusable = self.builder.and_not(self.exec, usable);
        let unusable = self.builder.any(unusable);
        self.builder.branch(unusable, call, wrapped);
        self.begin(wrapped);
        let [x, y] = [0, 1].map(|dim| self.wrapped(&pair.axes[dim], firsts[dim]));
        let base = pair.source.rows[0].base;
        let mut corners = SmallVec::new();
        for y in y {
            for x in x {
                let index = self.texel_index(&pair.source, [x, y], layer);
                let lanes = LaneAddress { base, index, scale: 4, disp: 0 };
                corners.push(self.builder.emit_value(InstData::Gather { lanes, mask: self.exec }));
            }
        }
        self.jump_with(texels, corners);
    }

    /// The two texels of a span, wrapped into range.
    fn wrapped(&mut self, axis: &Axis, first: Value) -> [Value; 2] {
        let [zero, one] = [0, 1].map(|bits| self.each(bits));
        let (last, size) = (self.builder.splat(axis.last), self.builder.splat(axis.size));
        let second = self.builder.pure(Op::IAdd, &[first, one]);
        let clamped = [first, second].map(|texel| {
            let clamped = self.builder.pure(Op::SMin, &[texel, last]);
            self.builder.pure(Op::SMax, &[clamped, zero])
        });
        // Number of images between. The middle of a texel is at least half a texel from the next image, far more than
        // rounding errors: 2^15 texels by 2^-23.
        let float_size = self.builder.pure(Op::SIntToFloat, &[size]);
        let [float_one, half] = [1.0, 0.5].map(|number| self.float(number));
        let part = self.builder.pure(Op::FDiv, &[float_one, float_size]);
        let float_first = self.builder.pure(Op::SIntToFloat, &[first]);
        let middle = self.builder.pure(Op::FAdd, &[float_first, half]);
        let turns = self.builder.pure(Op::FMul, &[middle, part]);
        let turns = self.builder.pure(Op::FloorToSInt, &[turns]);
        let turns = self.builder.pure(Op::IMul, &[turns, size]);
        let first = self.builder.pure(Op::ISub, &[first, turns]);
        let second = self.builder.pure(Op::IAdd, &[first, one]);
        let is_inside = self.builder.pure(Op::SLe, &[second, last]);
        let second = self.builder.select(is_inside, second, zero);
        [self.builder.select(axis.repeats, first, clamped[0]), self.builder.select(axis.repeats, second, clamped[1])]
    }
}

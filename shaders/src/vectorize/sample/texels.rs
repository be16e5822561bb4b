//! The four texels around a sample's coordinates.

use smallvec::{SmallVec, smallvec};

use super::Place;
use super::descriptors::{Axis, Key, Pair, Source};
use crate::image::address::PLACES;
use crate::image::{bytes, direct};
use crate::ir::{Op, Width};
use crate::simd::{InstData, LaneAddress, Row};
use crate::vectorize::image::Components;
use crate::vectorize::{Block, Value, Widen};

/// Texels' words, along x first.
pub(super) type Corners = [Value; 4];

/// The texels around a coordinate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The first texel; nothing of use where it is far away.
    pub(super) first: Value,
    /// The coordinate in places.
    at: Value,
    /// What [`bytes`] mixes by: of x four bytes, of each half the first texel's and the second's; of y the second's in halves.
    pub(super) weights: Value,
}

/// What of a sample is found out before its branches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Those of the spans along x and y.
    pub(super) weights: [Value; 2],
    /// The number of lane 0's first word, `s32`: inactive, it would have one that leads to those of active lanes.
    pub(super) first: Value,
    /// Whether texels of active lanes are outside, or not next to each other, `s1`.
    pub(super) is_odd: Value,
    /// Whether an active lane's second row has a weight, `s1`.
    pub(super) is_sloped: Value,
}

impl Widen<'_> {
    /// Where a sample's texels are.
    pub(super) fn head(&mut self, place: &Place) -> Head {
        if let Some(&known) = self.cache.samples.heads.get(place) {
            return known;
        }
        let pair = self.pair(place.key);
        let [x, y] = [0, 1].map(|dim| self.span(place.key, &pair, place.coordinates[dim], dim));
        let lanes = self.lane_ids();
        let starts = self.builder.pure(Op::ISub, &[x.first, lanes]);
        let (column, mut odd) = self.of_one_lane(starts, false);
        let (row, others) = self.of_one_lane(y.first, place.is_level);
        odd = others.map_or(odd, |others| odd.map(|odd| self.builder.or(odd, others)));
        let start = self.builder.pure(Op::IMul, &[row, pair.source.pitch]);
        let mut first = self.builder.pure(Op::IAdd, &[start, column]);
        if let Some((layer, is_one)) = place.layer {
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
        let is_sloped = if place.is_level {
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
        let head = Head { weights: [x.weights, y.weights], first, is_odd, is_sloped };
        self.cache.samples.heads.insert(*place, head);
        head
    }

    /// A vector's word in an active lane, and the active lanes that have another, unless all are known to have the same.
    fn of_one_lane(&mut self, vector: Value, is_one: bool) -> (Value, Option<Value>) {
        if is_one {
            return (self.of_all_lanes(vector), None);
        }
        let first = self.of_active_lanes(vector);
        let all = self.builder.splat(first);
        let others = self.builder.pure(Op::INe, &[vector, all]);
        (first, Some(self.builder.and(self.exec, others)))
    }

    /// A coordinate in places: texels are above, of linear filters.
    fn places(&mut self, pair: &Pair, coordinate: Value, dim: usize) -> Value {
        let at = self.builder.pure(Op::Fma, &[coordinate, pair.axes[dim].scale, pair.middle]);
        self.builder.pure(Op::FloorToSInt, &[at])
    }

    /// The weight of a coordinate's second texel as a float.
    pub(super) fn weight(&mut self, pair: &Pair, coordinate: Value, dim: usize) -> Value {
        let at = self.places(pair, coordinate, dim);
        let fraction = self.builder.splat(pair.fraction);
        let part = self.builder.pure(Op::And, &[at, fraction]);
        let part = self.builder.pure(Op::SIntToFloat, &[part]);
        let one = self.float(1.0 / PLACES);
        self.builder.pure(Op::FMul, &[part, one])
    }

    /// The texels around a coordinate.
    fn span(&mut self, key: Key, pair: &Pair, coordinate: Value, dim: usize) -> Span {
        if let Some(&known) = self.cache.samples.spans.get(&(coordinate, dim, key)) {
            return known;
        }
        let at = self.places(pair, coordinate, dim);
        let first = self.builder.pure(Op::AShr, &[at, pair.shift]);
        let step = self.builder.pure(Op::HalvesMulHigh, &[at, pair.axes[dim].steps]);
        let weights = if dim == 0 {
            // What one byte has less, the other has more.
            let [more, all] = [0x00ff_00ff, 0x1_0001 * u32::from(bytes::STEPS)].map(|bits| self.each(bits));
            let moved = self.builder.pure(Op::IMul, &[step, more]);
            self.builder.pure(Op::IAdd, &[moved, all])
        } else {
            let both = self.each(0x80_0080);
            self.builder.pure(Op::IMul, &[step, both])
        };
        let span = Span { first, at, weights };
        self.cache.samples.spans.insert((coordinate, dim, key), span);
        span
    }

    /// Words from the first layer to that of a coordinate.
    pub(super) fn layer(&mut self, pair: &Pair, coordinate: Value) -> Value {
        let zero = self.float(0.0);
        let last = self.builder.splat(pair.source.lasts[2]);
        let last = self.builder.pure(Op::SIntToFloat, &[last]);
        let held = self.builder.pure(Op::FMax, &[coordinate, zero]);
        let held = self.builder.pure(Op::FMin, &[held, last]);
        let number = self.builder.pure(Op::RoundToSInt, &[held]);
        let pitch = self.builder.splat(pair.source.layer_pitch);
        self.builder.pure(Op::IMul, &[number, pitch])
    }

    /// The number of a texel's word.
    pub(super) fn texel_index(&mut self, source: &Source, [x, y]: [Value; 2], layer: Option<Value>) -> Value {
        let pitch = self.kept_in_lanes(source.pitch);
        let row = self.builder.pure(Op::IMul, &[y, pitch]);
        let index = self.builder.pure(Op::IAdd, &[row, x]);
        layer.map_or(index, |layer| self.builder.pure(Op::IAdd, &[index, layer]))
    }

    /// The number of lane 0's word, if active lanes have words next to each other, and the lanes that have others.
    pub(super) fn as_row(&mut self, index: Value) -> (Value, Value) {
        let lanes = self.lane_ids();
        let starts = self.builder.pure(Op::ISub, &[index, lanes]);
        let first = self.of_active_lanes(starts);
        let all = self.builder.splat(first);
        (first, self.builder.pure(Op::INe, &[starts, all]))
    }

    /// Two texels of a row for each lane, which has them next to each other.
    fn two_of_row(&mut self, (base, limit): (Value, Value), first: Value) -> [Value; 2] {
        let one = self.builder.s32(1);
        let next = self.builder.pure(Op::IAdd, &[first, one]);
        [first, next].map(|index| {
            let row = Row { base, index, limit, width: Width::Word };
            self.builder.emit_value(InstData::LoadRow { row })
        })
    }

    /// All four are in the image, and lanes have them next to each other.
    pub(super) fn texels_in_row(&mut self, pair: &Pair, head: &Head, texels: Block) {
        let [[c0, c1], [c2, c3]] = pair.source.rows.map(|row| self.two_of_row(row, head.first));
        self.jump_with(texels, smallvec![c0, c1, c2, c3]);
    }

    /// As before, where no lane's second row has a weight: leads floats to `texels`.
    pub(super) fn line_of_texels(
        &mut self,
        pair: &Pair,
        head: &Head,
        components: &Components,
        texels: Block,
        end: Block,
    ) {
        let [first, second] = self.two_of_row(pair.source.rows[0], head.first);
        let [whole, float] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.branch(pair.source.is_float, float, whole);
        self.begin(whole);
        let mean = self.mean_of_codes([first, second], None, &head.weights, components);
        self.jump_with(end, mean);
        self.begin(float);
        self.jump_with(texels, smallvec![first, second, first, second]);
    }

    /// Each lane has texels anywhere: held inside or repeated, if the sampler does that and they are not too far; else a call.
    pub(super) fn texels_anywhere(&mut self, pair: &Pair, place: &Place, texels: Block, call: Block) {
        // Here again, rather than kept all the way.
        let firsts = [0, 1].map(|dim| {
            let at = self.places(pair, place.coordinates[dim], dim);
            self.builder.pure(Op::AShr, &[at, pair.shift])
        });
        let layer = place.layer.map(|(layer, _)| self.layer(pair, layer));
        let wrapped = self.builder.create_block();
        // From one side to the other; what is no number is the most negative one.
        let [most, both] =
            [direct::MAX_DISTANCE, 2 * direct::MAX_DISTANCE + 1].map(|number| self.each(number.cast_unsigned()));
        let [mut inside, mut usable] = [self.exec, self.builder.splat(pair.wraps)];
        for (first, axis) in firsts.into_iter().zip(&pair.axes) {
            let last = self.builder.splat(axis.last);
            let fits = self.builder.pure(Op::ULt, &[first, last]);
            inside = self.builder.and(inside, fits);
            let moved = self.builder.pure(Op::IAdd, &[first, most]);
            let is_near = self.builder.pure(Op::ULt, &[moved, both]);
            usable = self.builder.and(usable, is_near);
        }
        let usable = self.builder.or(usable, inside);
        let unusable = self.builder.and_not(self.exec, usable);
        let unusable = self.builder.any(unusable);
        self.builder.branch(unusable, call, wrapped);
        self.begin(wrapped);
        let [x, y] = [0, 1].map(|dim| self.wrapped(&pair.axes[dim], firsts[dim]));
        let base = pair.source.rows[0].0;
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

    /// The two texels of a span, inside.
    fn wrapped(&mut self, axis: &Axis, first: Value) -> [Value; 2] {
        let [zero, one] = [0, 1].map(|bits| self.each(bits));
        let (last, size) = (self.builder.splat(axis.last), self.builder.splat(axis.size));
        let second = self.builder.pure(Op::IAdd, &[first, one]);
        let held = [first, second].map(|texel| {
            let held = self.builder.pure(Op::SMin, &[texel, last]);
            self.builder.pure(Op::SMax, &[held, zero])
        });
        // How often the image lies between. From the middle of a texel it is at least half a texel to the next image, which is far
        // more than what roundings move: 2^15 texels by 2^-23.
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
        [self.builder.select(axis.repeats, first, held[0]), self.builder.select(axis.repeats, second, held[1])]
    }
}

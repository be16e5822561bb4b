//! The four texels around a sample's coordinates.

use smallvec::SmallVec;

use super::super::{Block, Type, Value, Widen};
use super::Place;
use super::pair::{Axis, Key, Pair, Source};
use crate::image::direct;
use crate::ir::{Op, Width};
use crate::simd::{InstData, LaneAddress, Row};

/// Texels' words, along x first.
pub(super) type Corners = [Value; 4];

/// The texels around a coordinate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The first texel as a float and as a number, which is nothing of use where the float is far away.
    pub(super) floor: Value,
    pub(super) first: Value,
    /// Weight of the second.
    pub(super) weight: Value,
    /// Where both are inside.
    pub(super) inside: Value,
}

/// What of a sample is found out before its branches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Weights of the second texels, along x and y.
    pub(super) weights: [Value; 2],
    /// The number of lane 0's first word, `s32`.
    pub(super) first: Value,
    /// Whether texels are outside, or not next to each other, `s1`.
    pub(super) is_odd: Value,
    /// Words from the first layer to each lane's.
    pub(super) layer: Option<Value>,
}

impl Widen<'_> {
    /// Where a sample's texels are.
    pub(super) fn head(&mut self, place: &Place) -> Head {
        let known = (place.key, place.coordinates, place.layer);
        if let Some(&known) = self.samples.heads.get(&known) {
            return known;
        }
        let pair = self.pair(place.key);
        let [x, y] = [0, 1].map(|dim| self.span(place.key, &pair, place.coordinates[dim], dim));
        let layer = place.layer.map(|layer| self.layer(&pair, layer));
        let index = self.texel_index(&pair.source, [x.first, y.first], layer);
        let (first, scattered) = self.as_row(index);
        let inside = self.builder.and(x.inside, y.inside);
        let beyond = self.builder.and_not(self.exec, inside);
        let odd = self.builder.or(scattered, beyond);
        let is_odd = self.builder.any(odd);
        let head = Head { weights: [x.weight, y.weight], first, is_odd, layer };
        self.samples.heads.insert(known, head);
        head
    }

    /// The number that a whole float is, which is below [`direct::NEAR`].
    fn whole(&mut self, float: Value) -> Value {
        let magic = self.float(direct::MAGIC);
        let moved = self.builder.pure(Op::FAdd, &[float, magic]);
        self.builder.pure(Op::ISub, &[moved, magic])
    }

    /// The texels around a coordinate.
    pub(super) fn span(&mut self, key: Key, pair: &Pair, coordinate: Value, dim: usize) -> Span {
        if let Some(&known) = self.samples.spans.get(&(coordinate, dim, key)) {
            return known;
        }
        let span = self.new_span(pair, coordinate, dim);
        self.samples.spans.insert((coordinate, dim, key), span);
        span
    }

    /// As [`Widen::span`], whether it is known or not.
    pub(super) fn new_span(&mut self, pair: &Pair, coordinate: Value, dim: usize) -> Span {
        let axis = &pair.axes[dim];
        let at = self.builder.pure(Op::FMul, &[coordinate, axis.scale]);
        let at = self.builder.pure(Op::FSub, &[at, pair.half]);
        let floor = self.builder.pure(Op::Floor, &[at]);
        let weight = self.builder.pure(Op::FSub, &[at, floor]);
        let weight = self.builder.pure(Op::And, &[weight, pair.weights]);
        let first = self.whole(floor);
        let inside = self.builder.pure(Op::ULt, &[first, axis.last]);
        Span { floor, first, weight, inside }
    }

    /// Words from the first layer to that of a coordinate.
    pub(super) fn layer(&mut self, pair: &Pair, coordinate: Value) -> Value {
        let zero = self.float(0.0);
        let last = self.builder.splat(pair.source.lasts[2]);
        let last = self.builder.pure(Op::SIntToFloat, &[last]);
        let held = self.builder.pure(Op::FMax, &[coordinate, zero]);
        let held = self.builder.pure(Op::FMin, &[held, last]);
        let nearest = self.builder.pure(Op::RoundEven, &[held]);
        let number = self.whole(nearest);
        self.builder.pure(Op::IMul, &[number, pair.source.layer_pitch])
    }

    /// The number of a texel's word.
    pub(super) fn texel_index(&mut self, source: &Source, [x, y]: [Value; 2], layer: Option<Value>) -> Value {
        let row = self.builder.pure(Op::IMul, &[y, source.pitch]);
        let index = self.builder.pure(Op::IAdd, &[row, x]);
        layer.map_or(index, |layer| self.builder.pure(Op::IAdd, &[index, layer]))
    }

    /// The number of lane 0's word, and the lanes whose words are not those behind it.
    pub(super) fn as_row(&mut self, index: Value) -> (Value, Value) {
        let (lanes, zero) = (self.lane_ids(), self.builder.s32(0));
        let starts = self.builder.pure(Op::ISub, &[index, lanes]);
        let first = self.builder.emit_one(InstData::Extract { vector: starts, lane: zero });
        let all = self.builder.splat(first);
        (first, self.builder.pure(Op::INe, &[starts, all]))
    }

    /// All four are in the image, and lanes have them next to each other.
    pub(super) fn texels_in_row(&mut self, pair: &Pair, head: &Head, texels: Block) {
        let one = self.builder.s32(1);
        let next = self.builder.pure(Op::IAdd, &[head.first, one]);
        let mut corners = SmallVec::new();
        for (base, limit) in pair.source.rows {
            for index in [head.first, next] {
                let row = Row { base, index, limit, width: Width::Word };
                corners.push(self.builder.emit_value(InstData::LoadRow { row }));
            }
        }
        self.jump_with(texels, corners);
    }

    /// All four are in the image.
    pub(super) fn texels_inside(&mut self, pair: &Pair, spans: &[Span; 2], layer: Option<Value>, texels: Block) {
        let index = self.texel_index(&pair.source, spans.map(|span| span.first), layer);
        let mut corners = SmallVec::new();
        for (base, _) in pair.source.rows {
            for disp in [0, 4] {
                corners.push(self.gather_texel(base, index, disp));
            }
        }
        self.jump_with(texels, corners);
    }

    fn gather_texel(&mut self, base: Value, index: Value, disp: i32) -> Value {
        let lanes = LaneAddress { base, index, scale: 4, disp };
        self.builder.emit_value(InstData::Gather { lanes, mask: self.exec })
    }

    /// Lanes have texels outside of the image: held inside or repeated, if the sampler does that and they are not too far.
    pub(super) fn texels_outside(
        &mut self,
        pair: &Pair,
        spans: &[Span; 2],
        layer: Option<Value>,
        texels: Block,
        call: Block,
    ) {
        let near = self.float(direct::NEAR);
        let wrapped = self.builder.create_block();
        let is_near = spans.map(|span| {
            let distance = self.builder.pure(Op::FAbs, &[span.floor]);
            self.builder.pure(Op::FOrdLt, &[distance, near])
        });
        let wraps = self.builder.splat(pair.wraps);
        let usable = is_near.into_iter().fold(wraps, |all, one| self.builder.and(all, one));
        let unusable = self.builder.and_not(self.exec, usable);
        let unusable = self.builder.any(unusable);
        self.builder.branch(unusable, call, wrapped);
        self.begin(wrapped);
        let [x, y] = [0, 1].map(|dim| self.wrapped(&pair.axes[dim], &spans[dim]));
        let base = pair.source.rows[0].0;
        let mut corners = SmallVec::new();
        for y in y {
            for x in x {
                let index = self.texel_index(&pair.source, [x, y], layer);
                corners.push(self.gather_texel(base, index, 0));
            }
        }
        self.jump_with(texels, corners);
    }

    /// The two texels of a span, inside.
    fn wrapped(&mut self, axis: &Axis, span: &Span) -> [Value; 2] {
        let [zero, one] = [0, 1].map(|bits| self.builder.constant(Type::V32, bits));
        let (last, size) = (axis.last, self.builder.splat(axis.size));
        let second = self.builder.pure(Op::IAdd, &[span.first, one]);
        let held = [span.first, second].map(|texel| {
            let held = self.builder.pure(Op::SMin, &[texel, last]);
            self.builder.pure(Op::SMax, &[held, zero])
        });
        // How often the image lies between, one more or less by rounding.
        let float_size = self.builder.pure(Op::SIntToFloat, &[size]);
        let float_one = self.float(1.0);
        let part = self.builder.pure(Op::FDiv, &[float_one, float_size]);
        let turns = self.builder.pure(Op::FMul, &[span.floor, part]);
        let turns = self.builder.pure(Op::Floor, &[turns]);
        let turns = self.whole(turns);
        let turns = self.builder.pure(Op::IMul, &[turns, size]);
        let first = self.builder.pure(Op::ISub, &[span.first, turns]);
        let before = self.builder.pure(Op::SLt, &[first, zero]);
        let more = self.builder.pure(Op::IAdd, &[first, size]);
        let first = self.builder.select(before, more, first);
        let behind = self.builder.pure(Op::SLt, &[last, first]);
        let less = self.builder.pure(Op::ISub, &[first, size]);
        let first = self.builder.select(behind, less, first);
        let second = self.builder.pure(Op::IAdd, &[first, one]);
        let is_inside = self.builder.pure(Op::SLe, &[second, last]);
        let second = self.builder.select(is_inside, second, zero);
        [self.builder.select(axis.repeats, first, held[0]), self.builder.select(axis.repeats, second, held[1])]
    }
}

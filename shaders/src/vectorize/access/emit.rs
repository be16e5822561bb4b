//! Code of single loads and stores, a function for each access pattern.

use foldhash::HashMap;
use smallvec::SmallVec;

use super::bounds::MemoryRegion;
use super::pattern::{AccessPattern, ConstantOffsets, CoveringRows, Offset};
use super::plan::AccessPlan;
use super::segments::{SegmentForm, SegmentedAccess};
use crate::analysis::{LaneAffine, LaneConstants, UniformTerm};
use crate::ir::{self, Op, Width};
use crate::simd::builder::ALL;
use crate::simd::{Address, InstData, LANES, Row};
use crate::vectorize::{Type, Value, Widen};

/// The row of a word, and its lane there.
fn find(rows: &CoveringRows, word: u32) -> (usize, u8) {
    let row = rows.iter().position(|&row| word >= row && word - row < LANES).unwrap_or(0);
    (row, (word - rows[row]) as u8)
}

impl Widen<'_> {
    /// Loads words from one memory region, the same for all lanes.
    pub(super) fn load_from(&mut self, region: MemoryRegion, plan: &AccessPlan, ty: ir::Type) -> Value {
        match &plan.pattern {
            AccessPattern::Segments(segments) => self.load_segments(region, &plan.offset, segments),
            _ => {
                let target = self.target(region, plan);
                self.load_target(target, ty)
            }
        }
    }

    /// Stores words to one memory region, the same for all lanes.
    pub(super) fn store_to(&mut self, region: MemoryRegion, plan: &AccessPlan, value: ir::Value) {
        match &plan.pattern {
            AccessPattern::Segments(segments) => self.store_segments(region, &plan.offset, segments, value),
            _ => {
                let target = self.target(region, plan);
                self.store_value(target, value);
            }
        }
    }

    /// Loads words segment by segment.
    fn load_segments(&mut self, region: MemoryRegion, offset: &Offset, segments: &SegmentedAccess) -> Value {
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        let mut all = None;
        for segment in &segments.segments {
            let (region, index) = self.segment_start(segments, segment.first, region);
            let limit = self.count(region.len, 4);
            let words = match &segment.form {
                SegmentForm::Broadcast => {
                    let address = Address { base: region.base, index: Some((index, limit)), scale: 4, disp: 0 };
                    self.builder.emit_value(InstData::Load { ty: Type::V32, address })
                }
                SegmentForm::Row => self.load_row(region, index, (segment.first as u32).wrapping_neg(), limit),
                SegmentForm::Picked { least, rows, places } => {
                    let load = |&row: &u32| self.load_row(region, index, least.wrapping_add(row), limit);
                    let loaded: SmallVec<[Value; 4]> = rows.iter().map(load).collect();
                    self.pick_covered(&loaded, rows, places)
                }
            };
            all = Some(match all {
                None => words,
                Some(before) => {
                    let mask = self.builder.constant(Type::Mask, segment.mask);
                    self.builder.select(mask, words, before)
                }
            });
        }
        all.unwrap_or_else(|| unreachable!("an access has segments"))
    }

    /// The row of words from `index + more` on.
    fn load_row(&mut self, region: MemoryRegion, index: Value, more: u32, limit: Value) -> Value {
        let index = self.plus_scalar(index, more);
        self.builder.emit_value(InstData::LoadRow { row: Row { base: region.base, index, limit, width: Width::Word } })
    }

    /// Stores each run of lanes whose words are contiguous as one masked row.
    fn store_segments(&mut self, region: MemoryRegion, offset: &Offset, segments: &SegmentedAccess, value: ir::Value) {
        let value = self.vector(value);
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        for &(first, lanes) in &segments.runs {
            let (region, index) = self.segment_start(segments, first, region);
            let limit = self.count(region.len, 4);
            let index = self.plus_scalar(index, (first as u32).wrapping_neg());
            let lanes = self.builder.constant(Type::Mask, lanes);
            let mask = self.builder.and(self.exec, lanes);
            let row = Row { base: region.base, index, limit, width: Width::Word };
            self.builder.emit(InstData::StoreRow { row, value, mask });
        }
    }

    /// The region from which the words of a segment are counted, and the index of its first lane.
    fn segment_start(
        &mut self,
        segments: &SegmentedAccess,
        first: usize,
        region: MemoryRegion,
    ) -> (MemoryRegion, Value) {
        let mut region = region;
        let mut index = self.builder.s32(0);
        for (number, (sum, stride)) in segments.indices.iter().enumerate() {
            let value = self.lane_value(sum, first);
            if number == segments.row {
                index = value;
            } else {
                let skip = self.scaled_base(value, *stride);
                region = self.skip(region, skip);
            }
        }
        (region, index)
    }

    /// The index of one lane, `s32`.
    pub(super) fn lane_value(&mut self, of: &LaneAffine, lane: usize) -> Value {
        let mut sum = self.builder.s32(0);
        for &part in &of.uniform {
            let value = match part {
                UniformTerm::Base(value) => self.base_of(value),
                UniformTerm::Product(value, factor) => {
                    let (value, factor) = (self.base_of(value), self.scalar(factor));
                    self.builder.pure(Op::IMul, &[value, factor])
                }
            };
            sum = self.add(sum, value);
        }
        for &(factor, lanes) in of.symbolic.iter().filter(|(_, lanes)| lanes[lane] != 0) {
            let factor = self.scalar(factor);
            let step = match lanes[lane] {
                1 => factor,
                steps => {
                    let steps = self.builder.s32(steps);
                    self.builder.pure(Op::IMul, &[factor, steps])
                }
            };
            sum = self.add(sum, step);
        }
        self.plus_scalar(sum, of.lanes[lane])
    }

    /// A sum of two scalars.
    fn add(&mut self, a: Value, b: Value) -> Value {
        match (self.builder.kernel.constant(a), self.builder.kernel.constant(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.builder.pure(Op::IAdd, &[a, b]),
        }
    }

    fn base_of(&mut self, value: ir::Value) -> Value {
        if self.shapes().is_uniform(value) { self.scalar(value) } else { self.get(value) }
    }

    pub(in crate::vectorize) fn plus_scalar(&mut self, value: Value, more: u32) -> Value {
        let more = self.builder.s32(more);
        self.add(value, more)
    }

    /// The address of offset 0, and the number of words from there on.
    pub(in crate::vectorize) fn coalesced_start(
        &mut self,
        region: MemoryRegion,
        offset: &Offset,
        offsets: &ConstantOffsets,
    ) -> (Value, Value) {
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        let base = self.get(offsets.term.value);
        let skip = self.scaled_base(base, offsets.term.stride);
        let region = self.skip(region, skip);
        (region.base, self.count(region.len, 4))
    }

    /// Loads rows and picks one vector for each of `places`.
    pub(in crate::vectorize) fn load_coalesced(
        &mut self,
        (base, limit): (Value, Value),
        rows: &CoveringRows,
        places: &[LaneConstants],
    ) -> SmallVec<[Value; 4]> {
        let loaded: SmallVec<[Value; 8]> = rows
            .iter()
            .map(|&row| {
                let index = self.builder.s32(row);
                self.builder.emit_value(InstData::LoadRow { row: Row { base, index, limit, width: Width::Word } })
            })
            .collect();
        places.iter().map(|places| self.pick_covered(&loaded, rows, places)).collect()
    }

    /// In each lane the word at its place, picked from loaded rows.
    pub(in crate::vectorize) fn pick_covered(
        &mut self,
        loaded: &[Value],
        rows: &CoveringRows,
        places: &LaneConstants,
    ) -> Value {
        self.pick_from(loaded, &places.map(|word| find(rows, word)))
    }

    /// In each lane a word of one of the vectors.
    fn pick_from(&mut self, vectors: &[Value], places: &[(usize, u8); LANES as usize]) -> Value {
        let used = |number: usize| places.iter().any(|place| place.0 == number);
        let mut used = (0..vectors.len()).filter(|&number| used(number));
        let Some(first) = used.next() else { return vectors[0] };
        let second = used.next();
        let mut words: Box<[u8; LANES as usize]> = Box::new(places.map(|(number, lane)| match number {
            _ if number == first => lane,
            _ if Some(number) == second => lane + LANES as u8,
            _ => 0,
        }));
        let mut found =
            self.pick(vectors[first], second.map_or(vectors[first], |second| vectors[second]), words.clone());
        for number in used {
            for (lane, word) in words.iter_mut().enumerate() {
                *word = if places[lane].0 == number { places[lane].1 + LANES as u8 } else { lane as u8 };
            }
            found = self.pick(found, vectors[number], words.clone());
        }
        found
    }

    fn pick(&mut self, first: Value, second: Value, words: Box<[u8; LANES as usize]>) -> Value {
        if words.iter().enumerate().all(|(lane, &word)| lane == usize::from(word)) {
            return first;
        }
        self.builder.emit_value(InstData::Pick { first, second, words })
    }

    /// Stores one vector for each of `places`; all lanes are active.
    pub(in crate::vectorize) fn store_coalesced(
        &mut self,
        (base, limit): (Value, Value),
        rows: &CoveringRows,
        places: &[LaneConstants],
        values: &[Value],
    ) {
        debug_assert!(self.all_lanes_active(), "the plan of {} is for convergent blocks", self.block);
        // If several lanes store the same word, the highest lane wins, as in a scatter.
        let mut last: HashMap<u32, (usize, u8)> = HashMap::default();
        for lane in 0..LANES as usize {
            for (number, places) in places.iter().enumerate() {
                last.insert(places[lane], (number, lane as u8));
            }
        }
        for (number, &row) in rows.iter().enumerate() {
            let mut mask = 0;
            let from: [(usize, u8); LANES as usize] = std::array::from_fn(|lane| {
                let word = row + lane as u32;
                let source = last.get(&word).filter(|_| find(rows, word).0 == number);
                mask |= u64::from(source.is_some()) << lane;
                source.copied().unwrap_or((usize::MAX, 0))
            });
            let value = self.pick_from(values, &from);
            let index = self.builder.s32(row);
            let mask = self.builder.constant(Type::Mask, mask);
            self.builder.emit(InstData::StoreRow { row: Row { base, index, limit, width: Width::Word }, value, mask });
        }
    }

    /// Whether all lanes are known to be active.
    pub(in crate::vectorize) fn all_lanes_active(&self) -> bool {
        self.builder.kernel.constant(self.exec) == Some(ALL)
    }
}

//! Code of single loads and stores, a function for each access pattern.

use foldhash::HashMap;
use smallvec::SmallVec;

use super::bounds::{MemoryRegion, element_count, scaled_base, uniform_part};
use super::constant_offsets::{ConstantOffsets, CoveringRows};
use super::offset::Offset;
use super::pattern::AccessPattern;
use super::plan::AccessPlan;
use super::segments::{SegmentForm, SegmentedAccess};
use super::target::AccessTarget;
use super::word_array::WordArray;
use crate::analysis::{LaneAffine, LaneConstants, UniformTerm};
use crate::ir::{self, Op, Width};
use crate::simd::builder::Builder;
use crate::simd::{Address, BoundedIndex, InstData, LANES, Row, Type, Value};
use crate::vectorize::state::Widen;

/// The row of a word, and its lane there.
fn find(rows: &CoveringRows, word: u32) -> (usize, u8) {
    let row = rows.iter().position(|&row| word >= row && word - row < LANES).unwrap_or(0);
    (row, (word - rows[row]) as u8)
}

/// Loads words from one memory region, the same for all lanes.
pub(super) fn load_from(widen: &mut Widen<'_>, region: MemoryRegion, plan: &AccessPlan, ty: ir::Type) -> Value {
    match plan.pattern() {
        AccessPattern::Segments(segments) => load_segments(widen, region, &plan.offset, segments),
        _ => {
            let target = AccessTarget::new(widen, region, plan);
            target.load(&mut widen.builder, ty)
        }
    }
}

/// Stores words to one memory region, the same for all lanes.
pub(super) fn store_to(widen: &mut Widen<'_>, region: MemoryRegion, plan: &AccessPlan, value: ir::Value) {
    match plan.pattern() {
        AccessPattern::Segments(segments) => store_segments(widen, region, &plan.offset, segments, value),
        _ => {
            let target = AccessTarget::new(widen, region, plan);
            target.store_value(widen, value);
        }
    }
}

/// Loads words segment by segment.
fn load_segments(widen: &mut Widen<'_>, region: MemoryRegion, offset: &Offset, segments: &SegmentedAccess) -> Value {
    let skip = uniform_part(widen, offset);
    let region = region.skip(&mut widen.builder, skip);
    let mut all = None;
    for segment in &segments.segments {
        let (region, index) = segment_start(widen, segments, segment.first, region);
        let limit = element_count(&mut widen.builder, region.len, 4);
        let words = match &segment.form {
            SegmentForm::Broadcast => {
                let address =
                    Address { base: region.base, index: Some(BoundedIndex { index, limit }), scale: 4, disp: 0 };
                widen.builder.emit_value(InstData::Load { ty: Type::V32, address })
            }
            SegmentForm::Row => {
                load_row(&mut widen.builder, region, index, (segment.first as u32).wrapping_neg(), limit)
            }
            SegmentForm::Picked { min, rows, places } => {
                let load = |&row: &u32| load_row(&mut widen.builder, region, index, min.wrapping_add(row), limit);
                let loaded: SmallVec<[Value; 4]> = rows.iter().map(load).collect();
                pick_covered(&mut widen.builder, &loaded, rows, places)
            }
        };
        all = Some(match all {
            None => words,
            Some(before) => {
                let mask = widen.builder.constant(Type::Mask, segment.mask);
                widen.builder.select(mask, words, before)
            }
        });
    }
    all.unwrap_or_else(|| unreachable!("an access has segments"))
}

/// The row of words from `index + more` on.
fn load_row(builder: &mut Builder, region: MemoryRegion, index: Value, more: u32, limit: Value) -> Value {
    let index = builder.plus(index, more);
    builder.emit_value(InstData::LoadRow { row: Row { base: region.base, index, limit, width: Width::Word } })
}

/// Stores each run of lanes whose words are contiguous as one masked row.
fn store_segments(
    widen: &mut Widen<'_>,
    region: MemoryRegion,
    offset: &Offset,
    segments: &SegmentedAccess,
    value: ir::Value,
) {
    let value = widen.vector(value);
    let skip = uniform_part(widen, offset);
    let region = region.skip(&mut widen.builder, skip);
    for &(first, lanes) in &segments.runs {
        let (region, index) = segment_start(widen, segments, first, region);
        let limit = element_count(&mut widen.builder, region.len, 4);
        let index = widen.builder.plus(index, (first as u32).wrapping_neg());
        let lanes = widen.builder.constant(Type::Mask, lanes);
        let mask = widen.builder.and(widen.exec, lanes);
        let row = Row { base: region.base, index, limit, width: Width::Word };
        widen.builder.emit(InstData::StoreRow { row, value, mask });
    }
}

/// The region from which the words of a segment are counted, and the index of its first lane.
fn segment_start(
    widen: &mut Widen<'_>,
    segments: &SegmentedAccess,
    first: usize,
    region: MemoryRegion,
) -> (MemoryRegion, Value) {
    let mut region = region;
    let mut index = widen.builder.s32(0);
    for (number, (sum, stride)) in segments.indices.iter().enumerate() {
        let value = lane_value(widen, sum, first);
        if number == segments.row {
            index = value;
        } else {
            let skip = scaled_base(&mut widen.builder, value, *stride);
            region = region.skip(&mut widen.builder, skip);
        }
    }
    (region, index)
}

/// The index of one lane, `s32`.
pub(super) fn lane_value(widen: &mut Widen<'_>, of: &LaneAffine, lane: usize) -> Value {
    let mut sum = widen.builder.s32(0);
    for &part in &of.uniform {
        let value = match part {
            UniformTerm::Base(value) => base_of(widen, value),
            UniformTerm::Product(value, factor) => {
                let (value, factor) = (base_of(widen, value), widen.scalar(factor));
                widen.builder.pure(Op::IMul, &[value, factor])
            }
        };
        sum = widen.builder.pure(Op::IAdd, &[sum, value]);
    }
    for &(factor, lanes) in of.symbolic.iter().filter(|(_, lanes)| lanes[lane] != 0) {
        let factor = widen.scalar(factor);
        let step = match lanes[lane] {
            1 => factor,
            steps => {
                let steps = widen.builder.s32(steps);
                widen.builder.pure(Op::IMul, &[factor, steps])
            }
        };
        sum = widen.builder.pure(Op::IAdd, &[sum, step]);
    }
    widen.builder.plus(sum, of.lanes[lane])
}

fn base_of(widen: &mut Widen<'_>, value: ir::Value) -> Value {
    if widen.shapes().is_uniform(value) { widen.scalar(value) } else { widen.get(value) }
}

/// The words from offset 0 on.
pub(super) fn coalesced_start(
    widen: &mut Widen<'_>,
    region: MemoryRegion,
    offset: &Offset,
    offsets: &ConstantOffsets,
) -> WordArray {
    let skip = uniform_part(widen, offset);
    let region = region.skip(&mut widen.builder, skip);
    let base = widen.get(offsets.term.value);
    let skip = scaled_base(&mut widen.builder, base, offsets.term.stride);
    let region = region.skip(&mut widen.builder, skip);
    WordArray { base: region.base, limit: element_count(&mut widen.builder, region.len, 4) }
}

/// Loads rows and picks one vector for each of `places`.
pub(super) fn load_coalesced(
    builder: &mut Builder,
    WordArray { base, limit }: WordArray,
    rows: &CoveringRows,
    places: &[LaneConstants],
) -> SmallVec<[Value; 4]> {
    let loaded: SmallVec<[Value; 8]> = rows
        .iter()
        .map(|&row| {
            let index = builder.s32(row);
            builder.emit_value(InstData::LoadRow { row: Row { base, index, limit, width: Width::Word } })
        })
        .collect();
    places.iter().map(|places| pick_covered(builder, &loaded, rows, places)).collect()
}

/// In each lane the word at its place, picked from loaded rows.
pub(super) fn pick_covered(
    builder: &mut Builder,
    loaded: &[Value],
    rows: &CoveringRows,
    places: &LaneConstants,
) -> Value {
    pick_from(builder, loaded, &places.map(|word| find(rows, word)))
}

/// In each lane a word of one of the vectors.
fn pick_from(builder: &mut Builder, vectors: &[Value], places: &[(usize, u8); LANES as usize]) -> Value {
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
        pick(builder, vectors[first], second.map_or(vectors[first], |second| vectors[second]), words.clone());
    for number in used {
        for (lane, word) in words.iter_mut().enumerate() {
            *word = if places[lane].0 == number { places[lane].1 + LANES as u8 } else { lane as u8 };
        }
        found = pick(builder, found, vectors[number], words.clone());
    }
    found
}

fn pick(builder: &mut Builder, first: Value, second: Value, words: Box<[u8; LANES as usize]>) -> Value {
    if words.iter().enumerate().all(|(lane, &word)| lane == usize::from(word)) {
        return first;
    }
    builder.emit_value(InstData::Pick { first, second, words })
}

/// Stores one vector for each of `places`; all lanes are active.
pub(super) fn store_coalesced(
    widen: &mut Widen<'_>,
    WordArray { base, limit }: WordArray,
    rows: &CoveringRows,
    places: &[LaneConstants],
    values: &[Value],
) {
    debug_assert!(widen.all_lanes_active(), "the plan of {} is for convergent blocks", widen.block);
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
        let value = pick_from(&mut widen.builder, values, &from);
        let index = widen.builder.s32(row);
        let mask = widen.builder.constant(Type::Mask, mask);
        widen.builder.emit(InstData::StoreRow { row: Row { base, index, limit, width: Width::Word }, value, mask });
    }
}

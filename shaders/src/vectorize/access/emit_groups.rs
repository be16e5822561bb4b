//! Code of interleave groups: the words of all members are loaded or stored together.

use smallvec::SmallVec;

use super::bounds::{self, LaneIndex, MemoryRegion, lane_index};
use super::constant_offsets::{ConstantOffsets, covering_rows};
use super::elements::{ElementWord, LaneElements, MAX_WORDS};
use super::emit::{coalesced_start, lane_value, load_coalesced, store_coalesced};
use super::interleave::{GroupElements, InterleaveGroup};
use super::offset::{Offset, OffsetTerm};
use super::subword;
use super::word_array::WordArray;
use crate::analysis::{LaneConstants, Shape};
use crate::ir::{Inst, InstData as ScalarInst, Op, Width};
use crate::simd::builder::Builder;
use crate::simd::{Elements as SimdElements, InstData, Segments, Spacing, Value};
use crate::vectorize::state::Widen;

/// Loads or stores the words of all members of a group.
pub(in crate::vectorize) fn access_group(widen: &mut Widen<'_>, group: usize) {
    let group = widen.plans.accesses.group(group);
    if group.store { store_group(widen, group) } else { load_group(widen, group) }
}

fn load_group(widen: &mut Widen<'_>, group: &InterleaveGroup) {
    let InterleaveGroup { elements, members, .. } = group;
    let (load, first) = match &elements.lanes {
        LaneElements::Coalesced { offsets, skip } => {
            let places: SmallVec<[LaneConstants; 4]> =
                members.iter().map(|&(_, word)| offsets.words(word.number as u32)).collect();
            let at = group_start(widen, group, offsets, *skip);
            let rows = covering_rows(places.iter().flatten().copied());
            let words = load_coalesced(&mut widen.builder, at, &rows, &places);
            for (&(inst, _), word) in members.iter().zip(words) {
                define_result(widen, inst, word);
            }
            return;
        }
        LaneElements::Row { .. } | LaneElements::Strided { .. } => {
            let (first, last) = group.span();
            let (first, count) = match (elements.width, &elements.lanes) {
                (Width::Word, LaneElements::Row { index, .. }) => {
                    (ElementWord { number: 0, step: 0 }, (index.stride / 4).min(MAX_WORDS) as usize)
                }
                (Width::Word, &LaneElements::Strided { stride_words, .. }) => (first, stride_words as usize),
                _ => (first, last.distance(first) + 1),
            };
            let elements = Box::new(strided_elements(widen, elements, members[0].0, first, count));
            (InstData::LoadElements { elements }, first)
        }
        LaneElements::Gathered(lanes) => gathered_group(widen, group, lanes),
    };
    let load = widen.builder.emit(load);
    let words = widen.builder.kernel.results[load].clone();
    for &(inst, word) in members {
        define_result(widen, inst, words[word.distance(first)]);
    }
}

fn define_result(widen: &mut Widen<'_>, inst: Inst, value: Value) {
    if let Some(result) = widen.kernel.results[inst] {
        widen.define_as(result, value);
    }
}

fn store_group(widen: &mut Widen<'_>, group: &InterleaveGroup) {
    let InterleaveGroup { elements, members, .. } = group;
    let first = group.span().0;
    let mut stored: SmallVec<[(usize, ElementWord, Value); 4]> = SmallVec::new();
    for &(inst, word) in members {
        if let ScalarInst::Store { value, .. } = widen.kernel.insts[inst] {
            stored.push((word.distance(first), word, widen.vector(value)));
        }
    }
    stored.sort_by_key(|entry| entry.0);
    if let LaneElements::Coalesced { offsets, skip } = &elements.lanes {
        let at = group_start(widen, group, offsets, *skip);
        let values: SmallVec<[Value; 4]> = stored.into_iter().map(|entry| entry.2).collect();
        let places: SmallVec<[LaneConstants; 4]> = (0..values.len()).map(|word| offsets.words(word as u32)).collect();
        let rows = covering_rows(places.iter().flatten().copied());
        return store_coalesced(widen, at, &rows, &places, &values);
    }
    // Words next to each other, not too many.
    let mut rest = &stored[..];
    while let Some(&(at, first, _)) = rest.first() {
        let next = rest.iter().zip(at..).take_while(|(entry, at)| entry.0 == *at).count();
        let (run, others) = rest.split_at(next.min(MAX_WORDS as usize));
        let elements = Box::new(strided_elements(widen, elements, members[0].0, first, run.len()));
        let values = run.iter().map(|entry| entry.2).collect();
        let mask = widen.exec;
        widen.builder.emit(InstData::StoreElements { elements, values, mask });
        rest = others;
    }
}

/// The words from offset 0 of a group's elements on.
fn group_start(widen: &mut Widen<'_>, group: &InterleaveGroup, offsets: &ConstantOffsets, skip: u64) -> WordArray {
    let region = region_of(widen, group.members[0].0);
    let offset = Offset { constant: skip, uniform: group.elements.uniform.clone(), lanes: SmallVec::new() };
    coalesced_start(widen, region, &offset, offsets)
}

fn region_of(widen: &mut Widen<'_>, inst: Inst) -> MemoryRegion {
    match &widen.kernel.insts[inst] {
        ScalarInst::Load { place, .. } | ScalarInst::Store { place, .. } => MemoryRegion::of_place(widen, place),
        _ => unreachable!("a group has loads and stores only"),
    }
}

/// Elements at a constant stride: `count` words of each from `first` on.
fn strided_elements(
    widen: &mut Widen<'_>,
    elements: &GroupElements,
    inst: Inst,
    first: ElementWord,
    count: usize,
) -> SimdElements {
    let region = region_of(widen, inst);
    let width = elements.width;
    match &elements.lanes {
        &LaneElements::Strided { number, stride_words, skip } => {
            let MemoryRegion { base, len } = region.skip_uniform(widen, skip, &elements.uniform);
            let lane_0 = match widen.shape(number) {
                Shape::Affine(offsets) => widen.uniformity.lane_offsets.lanes(offsets)[0],
                _ => 0,
            };
            let index = widen.get(number);
            let index = widen.builder.plus(index, lane_0.wrapping_add(first.step));
            let limit = subword::element_count(&mut widen.builder, len, width.bytes(), width);
            let limits = (0..count).map(|_| limit).collect();
            SimdElements { base, index, segments: None, spacing: Spacing::Words(stride_words), limits, width }
        }
        LaneElements::Row { index: OffsetTerm { value, stride }, skip, segments } => {
            let bytes = u64::from(width.bytes());
            let region = region.skip_uniform(widen, skip + first.number * bytes, &elements.uniform);
            let (index, segments) = match segments {
                Some(segments) => {
                    let index = lane_value(widen, &segments.index, 0);
                    let step = lane_value(widen, &segments.step(), 0);
                    (index, Some(Segments { lanes: segments.lanes(), step }))
                }
                None => (widen.get(*value), None),
            };
            let mut limits: SmallVec<[Value; 4]> = SmallVec::new();
            for word in 0..count as u64 {
                let before = widen.builder.s64(word * bytes);
                let rest = region.skip(&mut widen.builder, before);
                limits.push(subword::element_count(&mut widen.builder, rest.len, *stride, width));
            }
            SimdElements { base: region.base, index, segments, spacing: Spacing::Bytes(*stride), limits, width }
        }
        LaneElements::Coalesced { .. } | LaneElements::Gathered(_) => {
            unreachable!("elements without a constant stride")
        }
    }
}

/// The load of all words of a group with any element in each lane, and the first of those words.
fn gathered_group(widen: &mut Widen<'_>, group: &InterleaveGroup, lanes: &[OffsetTerm]) -> (InstData, ElementWord) {
    let (first, last) = group.span();
    let region = region_of(widen, group.members[0].0);
    let start = region.skip_uniform(widen, first.number * 4, &group.elements.uniform);
    let words = if last.distance(first) < 2 { 2 } else { 4 };
    let mut masks: SmallVec<[Value; 4]> = SmallVec::new();
    if let &[OffsetTerm { value, stride: 4 }] = lanes {
        let value = widen.vector(value);
        let after = |builder: &mut Builder, step| if step == 0 { value } else { builder.plus(value, step) };
        let index = after(&mut widen.builder, first.step);
        for word in 0..words {
            // Either the place where counting begins moves on, or the number does.
            let moves = first.number != last.number;
            let (skip, step) = if moves { (u64::from(word), 0) } else { (0, word) };
            let rest = region.skip_uniform(widen, (first.number + skip) * 4, &group.elements.uniform);
            let limit = bounds::element_count(&mut widen.builder, rest.len, 4);
            let limit = widen.builder.splat(limit);
            let number = after(&mut widen.builder, first.step.wrapping_add(step));
            let inside = widen.builder.pure(Op::ULt, &[number, limit]);
            masks.push(widen.builder.and(widen.exec, inside));
        }
        return (InstData::GatherElements { base: start.base, index, masks }, first);
    }
    let mut index = None;
    for word in 0..words {
        let bytes = (first.number + u64::from(word)) * 4;
        let rest = region.skip_uniform(widen, bytes, &group.elements.uniform);
        let LaneIndex { index: own, scale, inside } = lane_index(widen, lanes, rest.len);
        masks.push(widen.builder.and(widen.exec, inside));
        index = index.or(Some(widen.builder.times(own, u32::from(scale) / 4)));
    }
    let index = index.unwrap_or_else(|| unreachable!("elements of no words"));
    (InstData::GatherElements { base: start.base, index, masks }, first)
}

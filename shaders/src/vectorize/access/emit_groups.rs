//! Code of interleave groups: the words of all members are loaded or stored together.

use smallvec::SmallVec;

use super::bounds::MemoryRegion;
use super::interleave::{ElementWord, GroupElements, InterleaveGroup, LaneElements, MAX_WORDS};
use super::pattern::{ConstantOffsets, Offset, OffsetTerm, covering_rows};
use crate::analysis::{LaneConstants, Shape};
use crate::ir::{Inst, InstData as Scalar, Op, Width};
use crate::simd::{Elements as SimdElements, InstData, Segments, Spacing};
use crate::vectorize::{Type, Value, Widen};

impl Widen<'_> {
    /// Loads or stores the words of all members of a group.
    pub(in crate::vectorize) fn access_group(&mut self, group: usize) {
        let group = self.plans.accesses.group(group);
        if group.store { self.store_group(group) } else { self.load_group(group) }
    }

    fn load_group(&mut self, group: &InterleaveGroup) {
        let InterleaveGroup { elements, members, .. } = group;
        let (load, first) = match &elements.lanes {
            LaneElements::Coalesced { offsets, skip } => {
                let places: SmallVec<[LaneConstants; 4]> =
                    members.iter().map(|&(_, word)| offsets.words(word.number as u32)).collect();
                let at = self.group_start(group, offsets, *skip);
                let rows = covering_rows(places.iter().flatten().copied());
                let words = self.load_coalesced(at, &rows, &places);
                for (&(inst, _), word) in members.iter().zip(words) {
                    self.define_result(inst, word);
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
                let elements = Box::new(self.strided_elements(elements, members[0].0, first, count));
                (InstData::LoadElements { elements }, first)
            }
            LaneElements::Gathered(lanes) => self.gathered_group(group, lanes),
        };
        let load = self.builder.emit(load);
        let words = self.builder.kernel.results[load].clone();
        for &(inst, word) in members {
            self.define_result(inst, words[word.distance(first)]);
        }
    }

    fn define_result(&mut self, inst: Inst, value: Value) {
        if let Some(result) = self.kernel.results[inst] {
            self.define_as(result, value);
        }
    }

    fn store_group(&mut self, group: &InterleaveGroup) {
        let InterleaveGroup { elements, members, .. } = group;
        let first = group.span().0;
        let mut stored: SmallVec<[(usize, ElementWord, Value); 4]> = SmallVec::new();
        for &(inst, word) in members {
            if let Scalar::Store { value, .. } = self.kernel.insts[inst] {
                stored.push((word.distance(first), word, self.vector(value)));
            }
        }
        stored.sort_by_key(|entry| entry.0);
        if let LaneElements::Coalesced { offsets, skip } = &elements.lanes {
            let at = self.group_start(group, offsets, *skip);
            let values: SmallVec<[Value; 4]> = stored.into_iter().map(|entry| entry.2).collect();
            let places: SmallVec<[LaneConstants; 4]> =
                (0..values.len()).map(|word| offsets.words(word as u32)).collect();
            let rows = covering_rows(places.iter().flatten().copied());
            return self.store_coalesced(at, &rows, &places, &values);
        }
        // Words next to each other, not too many.
        let mut rest = &stored[..];
        while let Some(&(at, first, _)) = rest.first() {
            let next = rest.iter().zip(at..).take_while(|(entry, at)| entry.0 == *at).count();
            let (run, others) = rest.split_at(next.min(MAX_WORDS as usize));
            let elements = Box::new(self.strided_elements(elements, members[0].0, first, run.len()));
            let values = run.iter().map(|entry| entry.2).collect();
            let mask = self.exec;
            self.builder.emit(InstData::StoreElements { elements, values, mask });
            rest = others;
        }
    }

    /// The address of offset 0 of a group's elements, and the number of words from there on.
    fn group_start(&mut self, group: &InterleaveGroup, offsets: &ConstantOffsets, skip: u64) -> (Value, Value) {
        let region = self.region_of(group.members[0].0);
        let offset = Offset { constant: skip, uniform: group.elements.uniform.clone(), lanes: SmallVec::new() };
        self.coalesced_start(region, &offset, offsets)
    }

    fn region_of(&mut self, inst: Inst) -> MemoryRegion {
        match &self.kernel.insts[inst] {
            Scalar::Load { place, .. } | Scalar::Store { place, .. } => self.region_of_place(place),
            _ => unreachable!("a group has loads and stores only"),
        }
    }

    /// Elements at a constant stride: `count` words of each from `first` on.
    fn strided_elements(
        &mut self,
        elements: &GroupElements,
        inst: Inst,
        first: ElementWord,
        count: usize,
    ) -> SimdElements {
        let region = self.region_of(inst);
        let width = elements.width;
        match &elements.lanes {
            &LaneElements::Strided { number, stride_words, skip } => {
                let MemoryRegion { base, len } = self.skip_uniform(region, skip, &elements.uniform);
                let lane_0 = match self.shape(number) {
                    Shape::Affine(pattern) => self.uniformity.patterns.lanes(pattern)[0],
                    _ => 0,
                };
                let index = self.get(number);
                let index = self.plus_scalar(index, lane_0.wrapping_add(first.step));
                let limit = self.count_subwords(len, width.bytes(), width);
                let limits = (0..count).map(|_| limit).collect();
                SimdElements { base, index, segments: None, spacing: Spacing::Words(stride_words), limits, width }
            }
            LaneElements::Row { index: OffsetTerm { value, stride }, skip, segments } => {
                let bytes = u64::from(width.bytes());
                let region = self.skip_uniform(region, skip + first.number * bytes, &elements.uniform);
                let (index, segments) = match segments {
                    Some(segments) => {
                        let index = self.lane_value(&segments.index, 0);
                        let step = self.lane_value(&segments.step(), 0);
                        (index, Some(Segments { lanes: segments.lanes(), step }))
                    }
                    None => (self.get(*value), None),
                };
                let mut limits: SmallVec<[Value; 4]> = SmallVec::new();
                for word in 0..count as u64 {
                    let before = self.builder.s64(word * bytes);
                    let rest = self.skip(region, before);
                    limits.push(self.count_subwords(rest.len, *stride, width));
                }
                SimdElements { base: region.base, index, segments, spacing: Spacing::Bytes(*stride), limits, width }
            }
            LaneElements::Coalesced { .. } | LaneElements::Gathered(_) => {
                unreachable!("elements without a constant stride")
            }
        }
    }

    /// The load of all words of a group with any element in each lane, and the first of those words.
    fn gathered_group(&mut self, group: &InterleaveGroup, lanes: &[OffsetTerm]) -> (InstData, ElementWord) {
        let (first, last) = group.span();
        let region = self.region_of(group.members[0].0);
        let start = self.skip_uniform(region, first.number * 4, &group.elements.uniform);
        let words = if last.distance(first) < 2 { 2 } else { 4 };
        let mut masks: SmallVec<[Value; 4]> = SmallVec::new();
        if let &[OffsetTerm { value, stride: 4 }] = lanes {
            let value = self.vector(value);
            let index = self.plus(value, first.step);
            for word in 0..words {
                // Either the place where counting begins moves on, or the number does.
                let moves = first.number != last.number;
                let (skip, step) = if moves { (u64::from(word), 0) } else { (0, word) };
                let rest = self.skip_uniform(region, (first.number + skip) * 4, &group.elements.uniform);
                let limit = self.count(rest.len, 4);
                let limit = self.builder.splat(limit);
                let number = self.plus(value, first.step.wrapping_add(step));
                let inside = self.builder.pure(Op::ULt, &[number, limit]);
                masks.push(self.builder.and(self.exec, inside));
            }
            return (InstData::GatherElements { base: start.base, index, masks }, first);
        }
        let mut index = None;
        for word in 0..words {
            let bytes = (first.number + u64::from(word)) * 4;
            let rest = self.skip_uniform(region, bytes, &group.elements.uniform);
            let (place, scale, inside) = self.lane_index(lanes, rest.len);
            masks.push(self.builder.and(self.exec, inside));
            index = index.or(Some(self.times(place, u32::from(scale) / 4)));
        }
        let index = index.unwrap_or_else(|| unreachable!("elements of no words"));
        (InstData::GatherElements { base: start.base, index, masks }, first)
    }

    fn plus(&mut self, vector: Value, constant: u32) -> Value {
        if constant == 0 {
            return vector;
        }
        let constant = self.builder.constant(Type::V32, u64::from(constant));
        self.builder.pure(Op::IAdd, &[vector, constant])
    }
}

//! Elements of two, three or four words that lanes access next to each other: the words of all lanes are loaded or
//! stored together, as rows, and brought to their lanes by shuffles.
//!
//! The same goes for elements at constant distances, as long as few rows hold them. A word of an element at a time would be
//! a gather. Loads of one element are done with the first of them, stores with
//! the last, as long as nothing between may touch the memory.
//!
//! Words next to each other that lanes load elsewhere, each at a place of its own, are gathered together, too.

use foldhash::HashMap;
use smallvec::SmallVec;

use super::address::{MemoryRegion, Offset, Term};
use super::coalescing::{LaneConstants, LaneWords, covering_rows};
use super::segments::SegmentedAccess;
use crate::analysis::{LaneOffsetTable, Shape};
use crate::ir::{self, BufferSpace, Inst, InstData as Scalar, Op, Place, Width};
use crate::simd::InstData;
use crate::vectorize::{Type, Value, Widen};

/// Groups that are looked at for one more member.
const MAX_OPEN: usize = 16;

/// Accesses that are done together.
const MAX_MEMBERS: usize = 32;

/// Words of a long element that are accessed together.
pub(in crate::vectorize) const MAX_WORDS: u64 = 4;

/// What memory an element is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vectorize) enum Root {
    Buffer(ir::Value),
    Variable(ir::Variable),
}

/// The element that a word belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::vectorize) struct ElementAccess {
    root: Root,
    /// Bytes before element 0 that all lanes share.
    pub(in crate::vectorize) uniform: SmallVec<[Term; 2]>,
    /// Of its words, or parts of words.
    pub(in crate::vectorize) width: Width,
    pub(in crate::vectorize) lanes: LaneElements,
}

/// Which element each lane has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::vectorize) enum LaneElements {
    /// Neighbours, perhaps in strips of so many lanes: the index and the bytes of an element, and bytes before element 0 that are
    /// known now.
    Row { index: Term, skip: u64, segments: Option<u8> },
    /// Words that are a constant number from each other in neighbouring lanes: the number without a constant, that constant, and
    /// bytes as above.
    Strided { number: ir::Value, stride_words: u32, skip: u64 },
    /// Elements of a window: as [`LaneElements::Row`].
    Coalesced { index: Term, skip: u64 },
    /// Any.
    Gathered(SmallVec<[Term; 2]>),
}

/// The word of an element that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vectorize) struct ElementWord {
    /// From the element's beginning.
    pub(in crate::vectorize) number: u64,
    /// What is added to the number of [`LaneElements::Strided`], or to the only index of [`LaneElements::Gathered`], modulo 2³²: it counts words,
    /// too.
    pub(in crate::vectorize) step: u32,
}

/// A part of an element, in the scalar IR.
#[derive(Clone, Debug)]
struct InterleaveGroup {
    element: ElementAccess,
    store: bool,
    /// Instructions in order.
    members: SmallVec<[(Inst, ElementWord); 4]>,
}

/// What to do at an instruction instead of an access of its own.
#[derive(Clone, Debug)]
pub(in crate::vectorize) enum GroupPlan {
    /// Load all words of the group.
    Load(usize),
    /// It is done elsewhere.
    NonLeader,
    /// Store all words of the group.
    Store(usize),
}

/// The groups of a block.
#[derive(Debug, Default)]
pub(in crate::vectorize) struct GroupPlans {
    groups: Vec<InterleaveGroup>,
    plans: HashMap<Inst, GroupPlan>,
}

impl GroupPlans {
    /// What to do at an instruction; `None`: what it says.
    pub(in crate::vectorize) fn at(&self, inst: Inst) -> Option<GroupPlan> {
        self.plans.get(&inst).cloned()
    }
}

impl Widen<'_> {
    /// Finds the groups of a block.
    pub(in crate::vectorize) fn plan_groups(&self, block: ir::Block) -> GroupPlans {
        let mut plans = GroupPlans::default();
        let mut open: Vec<usize> = Vec::new();
        for &inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[inst];
            let (place, store, steady) = match data {
                Scalar::Load { width, place, access, .. } => {
                    let steady =
                        matches!(place, Place::Push { .. } | Place::Buffer { space: BufferSpace::Uniform, .. });
                    (Some((place, *width)).filter(|_| !access.volatile), false, steady || self.is_own(place))
                }
                Scalar::Store { width, place, access, .. } => {
                    (Some((place, *width)).filter(|_| !access.volatile), true, self.is_own(place))
                }
                Scalar::Atomic { .. } | Scalar::Barrier { .. } | Scalar::Fence { .. } => (None, true, false),
                _ => continue,
            };
            let found = place.and_then(|(place, width)| self.element_of(place, width, store));
            let found = found.filter(|(element, _)| !store || !matches!(element.lanes, LaneElements::Gathered(_)));
            let joined = found.clone().and_then(|(element, word)| {
                let fits = |&&group: &&usize| {
                    let group = &plans.groups[group];
                    group.store == store && group.takes(&element, word)
                };
                open.iter().find(fits).copied().map(|group| (group, word))
            });
            if let Some((group, word)) = joined {
                // Other groups must not be open over a store; over a load, no group of stores may be.
                open.retain(|&other| other == group || !store && !plans.groups[other].store);
                plans.groups[group].members.push((inst, word));
                continue;
            }
            if !steady {
                open.retain(|&group| !store && !plans.groups[group].store);
            }
            if let Some((element, word)) = found {
                if open.len() == MAX_OPEN {
                    open.remove(0);
                }
                open.push(plans.groups.len());
                plans.groups.push(InterleaveGroup { element, store, members: SmallVec::from_slice(&[(inst, word)]) });
            }
        }
        plans.assign();
        plans
    }

    /// Whether only the invocation itself sees the memory.
    fn is_own(&self, place: &Place) -> bool {
        matches!(place, Place::Variable { variable, .. } if self.is_private(*variable))
    }

    /// Whether elements at a pattern of indices are close enough to each other to be accessed by rows.
    fn is_coalescible(&self, index: Term, store: bool) -> bool {
        if store && (!matches!(index.stride, 8 | 12 | 16) || !self.all_lanes_active()) {
            return false;
        }
        let offset = Offset { lanes: SmallVec::from_slice(&[index]), ..Offset::default() };
        let words = u64::from(index.stride / 4).min(MAX_WORDS) as u32;
        self.lane_constants(&offset).is_some_and(|constants| {
            Self::rows_are_profitable(&covering_rows((0..words).flat_map(|word| constants.words(word))), words as usize)
        })
    }

    /// The element that a place is a word of, and which word.
    fn element_of(&self, place: &Place, width: Width, store: bool) -> Option<(ElementAccess, ElementWord)> {
        let root = match *place {
            Place::Buffer { buffer, .. } if self.shape(buffer) == Shape::Uniform => Root::Buffer(buffer),
            Place::Variable { variable, .. } if !self.is_private(variable) => Root::Variable(variable),
            _ => return None,
        };
        let offset = self.offset(place.offset());
        if width == Width::Word && !offset.is_aligned() {
            return None;
        }
        if let &[term] = &offset.lanes[..]
            && let Some((lanes, word)) = self.strided_access(term, offset.constant, width, store)
        {
            return Some((ElementAccess { root, uniform: offset.uniform, width, lanes }, word));
        }
        if width != Width::Word || SegmentedAccess::new(self.shapes(), &offset).is_some() {
            return None;
        }
        let Offset { constant, uniform, mut lanes } = offset;
        let mut step = 0;
        if let [Term { value, stride }] = &mut lanes[..] {
            match (self.shape(*value) == Shape::Affine(LaneOffsetTable::CONTIGUOUS), *stride) {
                (true, 4) => return None,
                (_, stride) if self.is_coalescible(Term { value: *value, stride }, store) => {
                    if stride == 4 {
                        return None;
                    }
                    // Of a long element, the nearest words are looked at together.
                    let word = constant % u64::from(stride) / 4 % MAX_WORDS;
                    let lanes =
                        LaneElements::Coalesced { index: Term { value: *value, stride }, skip: constant - word * 4 };
                    return Some((ElementAccess { root, uniform, width, lanes }, ElementWord { number: word, step }));
                }
                (false, 4) => (*value, step) = self.without_step(*value),
                _ => {}
            }
        }
        let word = ElementWord { number: constant / 4, step };
        (!lanes.is_empty())
            .then_some((ElementAccess { root, uniform, width, lanes: LaneElements::Gathered(lanes) }, word))
    }

    /// Loads all words of a group; what its instructions yield.
    pub(in crate::vectorize) fn load_group(&mut self, plans: &GroupPlans, group: usize) {
        let InterleaveGroup { element, members, .. } = &plans.groups[group];
        if let Some((constants, at)) = self.group_lane_constants(element, members[0].0) {
            let places: SmallVec<[LaneWords; 4]> =
                members.iter().map(|&(_, word)| constants.words(word.number as u32)).collect();
            let rows = covering_rows(places.iter().flatten().copied());
            let words = self.load_coalesced(at, &rows, &places);
            for (&(inst, _), word) in members.iter().zip(words) {
                if let Some(result) = self.kernel.results[inst] {
                    self.define_as(result, word);
                }
            }
            return;
        }
        let (load, first) = match &element.lanes {
            LaneElements::Row { .. } | LaneElements::Strided { .. } => {
                let (first, last) = plans.groups[group].span();
                let (first, count) = match (element.width, &element.lanes) {
                    (Width::Word, LaneElements::Row { index, .. }) => {
                        (ElementWord { number: 0, step: 0 }, (index.stride / 4).min(MAX_WORDS as u32) as usize)
                    }
                    (Width::Word, &LaneElements::Strided { stride_words, .. }) => (first, stride_words as usize),
                    _ => (first, last.distance(first) + 1),
                };
                let elements = Box::new(self.strided_elements(element, members[0].0, first, count));
                (InstData::LoadElements { elements }, first)
            }
            LaneElements::Coalesced { .. } => unreachable!("coalesced elements are at constant offsets"),
            LaneElements::Gathered(lanes) => self.gathered_group(&plans.groups[group], lanes),
        };
        let load = self.builder.emit(load);
        let words = self.builder.kernel.results[load].clone();
        for &(inst, word) in members {
            if let Some(result) = self.kernel.results[inst] {
                self.define_as(result, words[word.distance(first)]);
            }
        }
    }

    /// Stores all words of a group.
    pub(in crate::vectorize) fn store_group(&mut self, plans: &GroupPlans, group: usize) {
        let InterleaveGroup { element, members, .. } = &plans.groups[group];
        let first = plans.groups[group].span().0;
        let mut stored: SmallVec<[(usize, ElementWord, Value); 4]> = SmallVec::new();
        for &(inst, word) in members {
            if let Scalar::Store { value, .. } = self.kernel.insts[inst] {
                stored.push((word.distance(first), word, self.vector(value)));
            }
        }
        stored.sort_by_key(|entry| entry.0);
        if let Some((constants, at)) = self.group_lane_constants(element, members[0].0) {
            let values: SmallVec<[Value; 4]> = stored.into_iter().map(|entry| entry.2).collect();
            let places: SmallVec<[LaneWords; 4]> = (0..values.len()).map(|word| constants.words(word as u32)).collect();
            let rows = covering_rows(places.iter().flatten().copied());
            return self.store_coalesced(at, &rows, &places, &values);
        }
        // Words next to each other, not too many.
        let mut rest = &stored[..];
        while let Some(&(at, first, _)) = rest.first() {
            let next = rest.iter().zip(at..).take_while(|(entry, at)| entry.0 == *at).count();
            let (run, others) = rest.split_at(next.min(MAX_WORDS as usize));
            let elements = Box::new(self.strided_elements(element, members[0].0, first, run.len()));
            let values = run.iter().map(|entry| entry.2).collect();
            let mask = self.exec;
            self.builder.emit(InstData::StoreElements { elements, values, mask });
            rest = others;
        }
    }

    /// The window of a group that has one, and where it begins.
    fn group_lane_constants(
        &mut self,
        element: &ElementAccess,
        first: Inst,
    ) -> Option<(LaneConstants, (Value, Value))> {
        let LaneElements::Coalesced { index, skip } = element.lanes else { return None };
        let lanes = SmallVec::from_slice(&[index]);
        let offset = Offset { constant: skip, uniform: element.uniform.clone(), lanes };
        let constants = self.lane_constants(&offset)?;
        let region = self.region_of(first);
        let at = self.coalesced_start(region, &offset, &constants);
        Some((constants, at))
    }

    pub(in crate::vectorize) fn region_of(&mut self, inst: Inst) -> MemoryRegion {
        match &self.kernel.insts[inst] {
            Scalar::Load { place, .. } | Scalar::Store { place, .. } => self.place_of(place).0,
            _ => unreachable!("a group has loads and stores only"),
        }
    }

    /// The load of all words of a group, each lane's at a place of its own, and the first word of them.
    fn gathered_group(&mut self, group: &InterleaveGroup, lanes: &[Term]) -> (InstData, ElementWord) {
        let (first, last) = group.span();
        let region = self.region_of(group.members[0].0);
        let start = self.skip_uniform(region, first.number * 4, &group.element.uniform);
        let words = if last.distance(first) < 2 { 2 } else { 4 };
        let mut masks: SmallVec<[Value; 4]> = SmallVec::new();
        if let &[Term { value, stride: 4 }] = lanes {
            let value = self.vector(value);
            let index = self.plus(value, first.step);
            for word in 0..words {
                // Either the place where counting begins moves on, or the number does.
                let moves = first.number != last.number;
                let (skip, step) = if moves { (u64::from(word), 0) } else { (0, word) };
                let rest = self.skip_uniform(region, (first.number + skip) * 4, &group.element.uniform);
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
            let rest = self.skip_uniform(region, bytes, &group.element.uniform);
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

impl ElementWord {
    /// How many words it is from `first`, which is not behind it.
    fn distance(self, first: Self) -> usize {
        (self.number - first.number) as usize + self.step.wrapping_sub(first.step) as usize
    }
}

impl InterleaveGroup {
    /// Whether an access to this word can be done together with those of the group.
    fn takes(&self, element: &ElementAccess, word: ElementWord) -> bool {
        if self.element != *element || self.members.len() == MAX_MEMBERS {
            return false;
        }
        match element.lanes {
            LaneElements::Row { .. } | LaneElements::Coalesced { .. } => self.may_have(word) && self.is_short(word),
            LaneElements::Strided { stride_words, .. } => {
                let (first, last) = self.span_with(word);
                self.may_have(word) && self.is_short(word) && last.step.wrapping_sub(first.step) < stride_words
            }
            LaneElements::Gathered(_) => {
                let (first, last) = self.span_with(word);
                let number =
                    first.number == last.number || self.members.iter().all(|member| member.1.step == word.step);
                number && last.number - first.number < 4 && last.step.wrapping_sub(first.step) < 4
            }
        }
    }

    /// No word is stored twice.
    fn may_have(&self, word: ElementWord) -> bool {
        !self.store || self.members.iter().all(|member| member.1 != word)
    }

    /// Parts of words are not loaded without those between them.
    fn is_short(&self, word: ElementWord) -> bool {
        let (first, last) = self.span_with(word);
        self.store || self.element.width == Width::Word || last.distance(first) < MAX_WORDS as usize
    }

    /// The first word and the last: those of numbers and of steps.
    fn span(&self) -> (ElementWord, ElementWord) {
        span(self.members.iter().map(|member| member.1))
    }

    fn span_with(&self, word: ElementWord) -> (ElementWord, ElementWord) {
        span(self.members.iter().map(|member| member.1).chain([word]))
    }
}

/// The first of some words and the last: those of numbers and of steps.
fn span(words: impl Iterator<Item = ElementWord> + Clone) -> (ElementWord, ElementWord) {
    let origin = words.clone().next().map_or(0, |word| word.step);
    // Steps close to each other, on both sides of 0 perhaps.
    let steps = words.clone().map(|word| word.step.wrapping_sub(origin).cast_signed());
    let (least, most) = (steps.clone().min().unwrap_or(0), steps.max().unwrap_or(0));
    let numbers = words.map(|word| word.number);
    let first = ElementWord { number: numbers.clone().min().unwrap_or(0), step: origin.wrapping_add_signed(least) };
    let last = ElementWord { number: numbers.max().unwrap_or(0), step: origin.wrapping_add_signed(most) };
    (first, last)
}

impl GroupPlans {
    fn assign(&mut self) {
        for (number, group) in self.groups.iter().enumerate() {
            let first = group.members[0].0;
            let complete = match group.element.lanes {
                // A single word of a long element is loaded better otherwise.
                LaneElements::Row { index, .. } => {
                    let long = group.element.width == Width::Word && u64::from(index.stride) > 4 * MAX_WORDS;
                    group.store || !long || group.span().0 != group.span().1
                }
                LaneElements::Coalesced { index, .. } => {
                    !group.store || group.members.len() == index.stride as usize / 4
                }
                LaneElements::Strided { .. } => {
                    group.store || group.element.width != Width::Word || group.span().0 != group.span().1
                }
                LaneElements::Gathered(_) => !group.store && group.span().0 != group.span().1,
            };
            if !complete {
                continue;
            }
            group.members.iter().for_each(|&(inst, _)| _ = self.plans.insert(inst, GroupPlan::NonLeader));
            if !group.store {
                self.plans.insert(first, GroupPlan::Load(number));
            } else if let Some(&(last, _)) = group.members.last() {
                self.plans.insert(last, GroupPlan::Store(number));
            }
        }
    }
}

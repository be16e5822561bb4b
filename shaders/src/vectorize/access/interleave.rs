//! Interleave groups: loads or stores of one block that access words of the same elements, and are done together.
//!
//! Loads are done where the first of them is, stores where the last is, as long as nothing between may access the
//! memory. A word of an element at a time would be a gather. Words next to each other that lanes load at an address of
//! their own are gathered together, too.

use smallvec::SmallVec;

use super::constant_offsets::ConstantOffsets;
use super::cost::{AccessKind, choose};
use super::elements::{ElementWord, LaneElements, MAX_WORDS, StridedElement};
use super::offset::{Offset, OffsetTerm, is_private};
use super::pattern::AccessPattern;
use super::segments::SegmentedAccess;
use crate::analysis::BlockShapes;
use crate::ir::{self, BufferSpace, Inst, InstData as Scalar, Place, Width};

/// Groups that may get one more member.
const MAX_OPEN: usize = 16;

/// Members of a group.
const MAX_MEMBERS: usize = 32;

/// What memory an element is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryRoot {
    Buffer(ir::Value),
    Variable(ir::Variable),
}

/// The elements, one per lane, that the members of a group have words of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupElements {
    root: MemoryRoot,
    /// Uniform terms of the offset of element 0.
    pub(super) uniform: SmallVec<[OffsetTerm; 2]>,
    /// Bytes of an element: 4, or less for sub-word elements.
    pub(super) width: Width,
    pub(super) lanes: LaneElements,
}

/// Accesses of one block to words of the same elements.
#[derive(Clone, Debug)]
pub(super) struct InterleaveGroup {
    pub(super) elements: GroupElements,
    pub(super) store: bool,
    /// Instructions in order.
    pub(super) members: SmallVec<[(Inst, ElementWord); 4]>,
}

/// The groups of a block, complete or not.
pub(super) fn groups(
    shapes: BlockShapes,
    all_active: bool,
    mut offset_of: impl FnMut(Inst) -> Offset,
) -> Vec<InterleaveGroup> {
    let kernel = shapes.kernel;
    let mut groups: Vec<InterleaveGroup> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let is_own = |place: &Place| matches!(place, Place::Variable { variable, .. } if is_private(kernel, *variable));
    for &inst in &kernel.blocks[shapes.block].insts {
        let (place, store, steady) = match &kernel.insts[inst] {
            Scalar::Load { width, place, access, .. } => {
                let steady = matches!(place, Place::Push { .. } | Place::Buffer { space: BufferSpace::Uniform, .. });
                (Some((place, *width)).filter(|_| !access.volatile), false, steady || is_own(place))
            }
            Scalar::Store { width, place, access, .. } => {
                (Some((place, *width)).filter(|_| !access.volatile), true, is_own(place))
            }
            Scalar::Atomic { .. } | Scalar::Barrier { .. } | Scalar::Fence { .. } => (None, true, false),
            _ => continue,
        };
        let found = place.and_then(|(place, width)| {
            let root = match *place {
                Place::Buffer { buffer, .. } if shapes.is_uniform(buffer) => MemoryRoot::Buffer(buffer),
                Place::Variable { variable, .. } if !is_private(kernel, variable) => MemoryRoot::Variable(variable),
                _ => return None,
            };
            let (lanes, word) = elements_of(shapes, &offset_of(inst), width, store, all_active)?;
            Some((GroupElements { root, uniform: offset_of(inst).uniform, width, lanes }, word))
        });
        let joined = found.as_ref().and_then(|(elements, word)| {
            let fits = |&&group: &&usize| groups[group].store == store && groups[group].takes(elements, *word);
            open.iter().find(fits).copied().map(|group| (group, *word))
        });
        if let Some((group, word)) = joined {
            // Other groups must not be open over a store; over a load, no group of stores may be.
            open.retain(|&other| other == group || !store && !groups[other].store);
            groups[group].members.push((inst, word));
            continue;
        }
        if !steady {
            open.retain(|&group| !store && !groups[group].store);
        }
        if let Some((elements, word)) = found {
            if open.len() == MAX_OPEN {
                open.remove(0);
            }
            open.push(groups.len());
            groups.push(InterleaveGroup { elements, store, members: SmallVec::from_slice(&[(inst, word)]) });
        }
    }
    groups
}

/// The elements that an offset may be a word of, and which word; `None` if it is accessed better on its own.
fn elements_of(
    shapes: BlockShapes,
    offset: &Offset,
    width: Width,
    store: bool,
    all_active: bool,
) -> Option<(LaneElements, ElementWord)> {
    if width == Width::Word && !offset.is_aligned() {
        return None;
    }
    let words = match offset.lanes[..] {
        [OffsetTerm { stride, .. }] => (stride / 4).clamp(1, MAX_WORDS),
        _ => 1,
    };
    let kind = AccessKind { store, words };
    let strided = StridedElement::new(shapes, offset, width, store);
    let is_word = width == Width::Word;
    let segments = is_word.then(|| SegmentedAccess::new(shapes, offset)).flatten();
    // A group of stores writes whole elements.
    let may_cover =
        is_word && (!store || all_active && matches!(offset.lanes[..], [OffsetTerm { stride: 4 | 8 | 12 | 16, .. }]));
    let offsets = may_cover.then(|| ConstantOffsets::new(shapes, offset)).flatten();
    let candidates = [
        Some(AccessPattern::basic(shapes, offset, width)),
        strided.map(|element| AccessPattern::Strided(Box::new(element))),
        segments.map(|segments| AccessPattern::Segments(Box::new(segments))),
        offsets.map(|offsets| AccessPattern::Offsets(Box::new(offsets))),
    ];
    match choose(candidates.into_iter().flatten(), kind) {
        AccessPattern::Strided(element) => Some((element.lanes, element.word)),
        AccessPattern::Offsets(offsets) => {
            // Of a long element, the nearest words are looked at together.
            let number = offset.constant % u64::from(offsets.term.stride) / 4 % u64::from(MAX_WORDS);
            let lanes = LaneElements::Coalesced { offsets, skip: offset.constant - number * 4 };
            Some((lanes, ElementWord { number, step: 0 }))
        }
        AccessPattern::PerLane if is_word && !store => {
            let mut lanes = offset.lanes.clone();
            let mut step = 0;
            if let [OffsetTerm { value, stride: 4 }] = &mut lanes[..] {
                (*value, step) = shapes.without_constant(*value);
            }
            Some((LaneElements::Gathered(lanes), ElementWord { number: offset.constant / 4, step }))
        }
        _ => None,
    }
}

impl InterleaveGroup {
    /// Whether an access to this word can be done together with those of the group.
    fn takes(&self, elements: &GroupElements, word: ElementWord) -> bool {
        if self.elements != *elements || self.members.len() == MAX_MEMBERS {
            return false;
        }
        match elements.lanes {
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

    /// Sub-word elements are loaded only together with those between them.
    fn is_short(&self, word: ElementWord) -> bool {
        let (first, last) = self.span_with(word);
        self.store || self.elements.width == Width::Word || last.distance(first) < MAX_WORDS as usize
    }

    /// The first word and the last: those of numbers and of steps.
    pub(super) fn span(&self) -> (ElementWord, ElementWord) {
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

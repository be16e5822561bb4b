//! Candidates: all patterns that one load or store may be done with, found once. A single access and an interleave
//! group choose among the same ones.

use smallvec::SmallVec;

use super::constant_offsets::ConstantOffsets;
use super::cost::AccessCosts;
use super::elements::{ElementWord, LaneElements, MAX_WORDS, StridedElement};
use super::offset::{Offset, OffsetTerm, is_private};
use super::pattern::AccessPattern;
use super::segments::SegmentedAccess;
use crate::analysis::BlockShapes;
use crate::ir::{self, InstData as ScalarInst, Place, Width};

/// Of the numbers of words of an element, 1 to [`MAX_WORDS`]: costs for each word have this denominator.
const COMMON_MULTIPLE: u32 = 12;

/// What memory an element is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryRoot {
    Buffer(ir::Value),
    Variable(ir::Variable),
}

/// An access, before it is decided how it is done.
#[derive(Clone, Debug)]
pub(super) struct AccessCandidates {
    pub(super) offset: Offset,
    pub(super) width: Width,
    pub(super) store: bool,
    /// The memory, if the access may be done together with others.
    pub(super) root: Option<MemoryRoot>,
    /// The first is the basic one, which is always possible. Of two that cost the same, the first is chosen.
    pub(super) candidates: SmallVec<[AccessPattern; 4]>,
}

impl AccessCandidates {
    /// An access with the basic pattern only.
    pub(super) fn basic(shapes: BlockShapes, offset: ir::Value, width: Width) -> Self {
        let offset = Offset::new(shapes, offset);
        let candidates = [AccessPattern::basic(shapes, &offset, width)].into_iter().collect();
        Self { offset, width, store: false, root: None, candidates }
    }

    /// The access of a load, a store, an atomic, a `reaches`, or a check that machine code settles. `all_active`: the
    /// block runs with all 16 lanes only.
    pub(super) fn new(shapes: BlockShapes, data: &ScalarInst, all_active: bool) -> Option<Self> {
        let (place, width, store, volatile) = match data {
            ScalarInst::Load { place, width, access, .. } => (place, *width, false, access.volatile),
            ScalarInst::Store { place, width, access, .. } => (place, *width, true, access.volatile),
            ScalarInst::Atomic { place, .. } => return Some(Self::basic(shapes, place.offset(), Width::Word)),
            ScalarInst::Reaches { offset, .. } => return Some(Self::basic(shapes, *offset, Width::Word)),
            ScalarInst::Check { place, width, .. } if shapes.kernel.inline_checks => {
                return Some(Self::basic(shapes, place.offset(), *width));
            }
            ScalarInst::Sync { place: Some(place), bytes: 4, .. } if shapes.kernel.inline_checks => {
                return Some(Self::basic(shapes, place.offset(), Width::Word));
            }
            _ => return None,
        };
        let mut access = Self { store, ..Self::basic(shapes, place.offset(), width) };
        // Private memory is interleaved by lane; a waterfall loop accesses one buffer at a time, with some of the
        // lanes.
        let (is_own, one_buffer, root) = match *place {
            Place::Variable { variable, .. } => {
                let is_own = is_private(shapes.kernel, variable);
                (is_own, true, (!is_own).then_some(MemoryRoot::Variable(variable)))
            }
            Place::Buffer { buffer, .. } => {
                let one_buffer = shapes.is_uniform(buffer);
                (false, one_buffer, one_buffer.then_some(MemoryRoot::Buffer(buffer)))
            }
            Place::Push { .. } => (false, true, None),
        };
        let is_word = width == Width::Word;
        access.root = root.filter(|_| !volatile && (!is_word || access.offset.is_aligned()));
        if access.root.is_some() {
            let strided = StridedElement::new(shapes, &access.offset, width, store);
            access.candidates.extend(strided.map(|element| AccessPattern::Strided(Box::new(element))));
        }
        if is_word && one_buffer && !is_own {
            let segments = SegmentedAccess::new(shapes, &access.offset);
            let segments = segments.filter(|segments| !store || !segments.runs.is_empty());
            access.candidates.extend(segments.map(|segments| AccessPattern::Segments(Box::new(segments))));
        }
        if access.root.is_some() && is_word && access.may_cover(all_active) {
            let offsets = ConstantOffsets::new(shapes, &access.offset);
            access.candidates.extend(offsets.map(|offsets| AccessPattern::Offsets(Box::new(offsets))));
        }
        Some(access)
    }

    /// Whether rows may cover its words: a group of stores writes whole elements.
    fn may_cover(&self, all_active: bool) -> bool {
        !self.store || all_active && matches!(self.offset.lanes[..], [OffsetTerm { stride: 4 | 8 | 12 | 16, .. }])
    }

    /// The cheapest pattern of the instruction on its own, and its cost; of several, the first. A pattern with elements
    /// is an interleave group of one member.
    pub(super) fn choose(&self, costs: &AccessCosts) -> (&AccessPattern, u32) {
        // A store of one word writes whole elements of one word only.
        let is_possible = |pattern: &&AccessPattern| match pattern {
            AccessPattern::Offsets(offsets) => !self.store || offsets.term.stride == 4,
            _ => true,
        };
        let of_one_word = |pattern: &AccessPattern| match self.elements(pattern) {
            Some((lanes, word)) => costs.of_elements(&lanes, self.width, self.store, &[word]),
            None => costs.of_access(pattern, self.store),
        };
        let candidates = self.candidates.iter().filter(is_possible).map(|pattern| (pattern, of_one_word(pattern)));
        candidates.min_by_key(|&(_, cost)| cost).unwrap_or_else(|| unreachable!("the basic pattern is always possible"))
    }

    /// The elements that it may be a word of, and which word: those of the pattern that costs least for each word, if
    /// all words of an element are accessed. `None`: it is accessed on its own.
    pub(super) fn elements_to_share(
        &self,
        shapes: BlockShapes,
        costs: &AccessCosts,
    ) -> Option<(LaneElements, ElementWord)> {
        self.root?;
        let per_word = |pattern: &&AccessPattern| match self.elements(pattern) {
            Some((lanes, _)) => {
                let words = lanes.words_of_element(self.width);
                costs.of_elements(&lanes, self.width, self.store, &words) * (COMMON_MULTIPLE / words.len() as u32)
            }
            None => costs.of_access(pattern, self.store) * COMMON_MULTIPLE,
        };
        match self.candidates.iter().min_by_key(per_word)? {
            AccessPattern::PerLane if self.width == Width::Word && !self.store => {
                let mut lanes = self.offset.lanes.clone();
                let mut step = 0;
                if let [OffsetTerm { value, stride: 4 }] = &mut lanes[..] {
                    (*value, step) = shapes.without_constant(*value);
                }
                Some((LaneElements::Gathered(lanes), ElementWord { number: self.offset.constant / 4, step }))
            }
            pattern => self.elements(pattern),
        }
    }

    /// The elements of a pattern that interleave groups have, and the word of the access.
    pub(super) fn elements(&self, pattern: &AccessPattern) -> Option<(LaneElements, ElementWord)> {
        match pattern {
            AccessPattern::Strided(element) => Some((element.lanes.clone(), element.word)),
            AccessPattern::Offsets(offsets) => {
                let constant = self.offset.constant;
                // Of a long element, the nearest words are looked at together.
                let number = constant % u64::from(offsets.term.stride) / 4 % u64::from(MAX_WORDS);
                let lanes = LaneElements::Coalesced { offsets: offsets.clone(), skip: constant - number * 4 };
                Some((lanes, ElementWord { number, step: 0 }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::analysis::LaneConstants;

    /// An access at any address, or at constant offsets that are in as many rows.
    fn in_rows(rows: u32, store: bool) -> AccessCandidates {
        let bytes: LaneConstants = std::array::from_fn(|lane| lane as u32 % rows * 16 * 4);
        let offsets = ConstantOffsets { term: OffsetTerm { value: ir::Value::from_u32(0), stride: 4 }, bytes };
        let candidates = smallvec![AccessPattern::PerLane, AccessPattern::Offsets(Box::new(offsets))];
        AccessCandidates { offset: Offset::default(), width: Width::Word, store, root: None, candidates }
    }

    /// A gather costs as much as nine rows and the shuffles that put their words together, or more than six with AVX2.
    /// Rows that cost no less need more instructions, registers and code, so that it is gathered then.
    #[test]
    fn rows_are_chosen_where_they_cost_less_than_a_gather() {
        for (costs, store, max_rows, gather) in
            [(AccessCosts::AVX512, false, 8, 17), (AccessCosts::AVX2, false, 6, 12), (AccessCosts::AVX2, true, 6, 12)]
        {
            for rows in 1..=10 {
                let access = in_rows(rows, store);
                let (chosen, cost) = access.choose(&costs);
                assert_eq!(matches!(chosen, AccessPattern::Offsets(_)), rows <= max_rows, "{rows} rows");
                assert_eq!(cost, (2 * rows - 1).min(gather), "{rows} rows");
            }
        }
    }
}

//! Interleave groups: loads or stores of one block that access words of the same elements, and are done together.
//!
//! Loads are done where the first of them is, stores where the last is, as long as nothing between may access the
//! memory. A word of an element at a time would be a gather. Words next to each other that lanes load at an address of
//! their own are gathered together, too.

use smallvec::SmallVec;

use super::candidates::{AccessCandidates, MemoryRoot};
use super::cost::AccessCosts;
use super::elements::{ElementWord, LaneElements, MAX_WORDS};
use super::offset::{OffsetTerm, is_private};
use crate::analysis::BlockShapes;
use crate::ir::{BufferSpace, Inst, InstData as ScalarInst, Place, Width};

/// Groups that may get one more member.
const MAX_OPEN: usize = 16;

/// Members of a group.
const MAX_MEMBERS: usize = 32;

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

/// The groups of a block that may be formed, worth it or not.
pub(super) fn groups<'a>(
    shapes: BlockShapes,
    costs: &AccessCosts,
    access_of: impl Fn(Inst) -> &'a AccessCandidates,
) -> Vec<InterleaveGroup> {
    let kernel = shapes.kernel;
    let mut groups: Vec<InterleaveGroup> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let is_own = |place: &Place| matches!(place, Place::Variable { variable, .. } if is_private(kernel, *variable));
    for &inst in &kernel.blocks[shapes.block].insts {
        let (is_access, store, steady) = match &kernel.insts[inst] {
            ScalarInst::Load { place, .. } => {
                let steady = matches!(place, Place::Push { .. } | Place::Buffer { space: BufferSpace::Uniform, .. });
                (true, false, steady || is_own(place))
            }
            ScalarInst::Store { place, .. } => (true, true, is_own(place)),
            ScalarInst::Atomic { .. } | ScalarInst::Barrier { .. } | ScalarInst::Fence { .. } => (false, true, false),
            _ => continue,
        };
        let access = is_access.then(|| access_of(inst));
        let found = access.and_then(|access| access.elements_to_share(shapes, costs).map(|found| (access, found)));
        let found = found.and_then(|(access, found)| InterleaveGroup::of_one(inst, access, found));
        let joined = found.as_ref().and_then(|found| {
            let word = found.members[0].1;
            let fits = |&&group: &&usize| groups[group].store == store && groups[group].takes(&found.elements, word);
            open.iter().find(fits).copied().map(|group| (group, word))
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
        if let Some(found) = found {
            if open.len() == MAX_OPEN {
                open.remove(0);
            }
            open.push(groups.len());
            groups.push(found);
        }
    }
    groups
}

impl InterleaveGroup {
    /// The group of a single access that may be done together with others.
    pub(super) fn of_one(
        inst: Inst,
        access: &AccessCandidates,
        (lanes, word): (LaneElements, ElementWord),
    ) -> Option<Self> {
        let AccessCandidates { width, store, .. } = *access;
        let elements = GroupElements { root: access.root?, uniform: access.offset.uniform.clone(), width, lanes };
        Some(Self { elements, store, members: SmallVec::from_slice(&[(inst, word)]) })
    }

    /// Whether its members can be accessed together: stores at constant offsets write whole elements.
    pub(super) fn is_possible(&self) -> bool {
        match &self.elements.lanes {
            LaneElements::Coalesced { offsets, .. } => {
                !self.store || self.members.len() == offsets.term.stride as usize / 4
            }
            _ => true,
        }
    }

    /// What it costs to access all members together.
    pub(super) fn cost(&self, costs: &AccessCosts) -> u32 {
        let words: SmallVec<[ElementWord; 4]> = self.members.iter().map(|member| member.1).collect();
        costs.of_elements(&self.elements.lanes, self.elements.width, self.store, &words)
    }

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
        ElementWord::span(self.members.iter().map(|member| member.1))
    }

    fn span_with(&self, word: ElementWord) -> (ElementWord, ElementWord) {
        ElementWord::span(self.members.iter().map(|member| member.1).chain([word]))
    }
}

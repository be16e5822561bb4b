//! Access plans: how each load, store and atomic of a kernel is done, decided once, before any code is emitted.
//!
//! A plan names all values that the translation of its instruction reads, so that those that other blocks define have
//! variables by then.

use std::collections::BTreeMap;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::cost::{AccessKind, choose};
use super::elements::{LaneElements, MAX_WORDS};
use super::interleave::{InterleaveGroup, groups};
use super::offset::{Offset, is_private};
use super::pattern::AccessPattern;
use super::segments::SegmentedAccess;
use crate::analysis::{BlockShapes, Uniformity};
use crate::ir::{self, Block, Inst, InstData as Scalar, Kernel, Place, Width};

/// What an instruction does for the interleave group that it is a member of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vectorize) enum GroupRole {
    /// Loads or stores the words of all members of the group with that index.
    Leader(usize),
    /// Nothing: the leader does it.
    Member,
}

/// How one access is done.
#[derive(Clone, Debug)]
pub(in crate::vectorize) struct AccessPlan {
    pub(in crate::vectorize) offset: Offset,
    /// How the instruction on its own is done.
    pub(in crate::vectorize) pattern: AccessPattern,
    pub(in crate::vectorize) group: Option<GroupRole>,
}

/// The plans of a kernel.
#[derive(Debug)]
pub(in crate::vectorize) struct AccessPlans {
    plans: SecondaryMap<Inst, Option<Box<AccessPlan>>>,
    groups: Vec<InterleaveGroup>,
}

impl AccessPlans {
    /// Plans the accesses of a kernel. `all_active` has the blocks that run with all 16 lanes only.
    pub(in crate::vectorize) fn new(kernel: &Kernel, uniformity: &Uniformity, all_active: &EntitySet<Block>) -> Self {
        let mut plans = Self { plans: SecondaryMap::new(), groups: Vec::new() };
        for &block in &kernel.layout {
            let shapes = BlockShapes { kernel, uniformity, block };
            let all_active = all_active.contains(block);
            for &inst in &kernel.blocks[block].insts {
                if let Some(plan) = AccessPlan::new(shapes, &kernel.insts[inst]) {
                    plans.plans[inst] = Some(Box::new(plan));
                }
            }
            let found = groups(shapes, all_active, |inst| plans.at(inst).offset.clone());
            found.into_iter().filter(InterleaveGroup::is_complete).for_each(|group| plans.add_group(group));
        }
        plans
    }

    fn add_group(&mut self, group: InterleaveGroup) {
        let leader = if group.store { group.members.last() } else { group.members.first() };
        let leader = leader.map(|&(inst, _)| inst);
        for &(inst, _) in &group.members {
            let is_leader = leader == Some(inst);
            if let Some(plan) = &mut self.plans[inst] {
                plan.group = Some(if is_leader { GroupRole::Leader(self.groups.len()) } else { GroupRole::Member });
            }
        }
        self.groups.push(group);
    }

    /// The plan of an access, or of the check of one where machine code settles checks.
    pub(in crate::vectorize) fn find(&self, inst: Inst) -> Option<&AccessPlan> {
        self.plans[inst].as_deref()
    }

    /// The plan of a load, a store, an atomic or a `reaches`.
    pub(in crate::vectorize) fn at(&self, inst: Inst) -> &AccessPlan {
        self.plans[inst].as_ref().unwrap_or_else(|| unreachable!("{inst} accesses no memory"))
    }

    pub(super) fn group(&self, index: usize) -> &InterleaveGroup {
        &self.groups[index]
    }

    /// How many accesses have each pattern. Those of an interleave group count as one, with the pattern of its
    /// elements.
    pub(in crate::vectorize) fn statistics(&self) -> Vec<(&'static str, u64)> {
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        for plan in self.plans.values().flatten() {
            let name = match plan.group {
                Some(GroupRole::Member) => continue,
                Some(GroupRole::Leader(group)) => self.groups[group].elements.lanes.name(),
                None => plan.pattern.name(),
            };
            *counts.entry(name).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    /// What an instruction does for its group; `None`: it has none.
    pub(in crate::vectorize) fn role(&self, inst: Inst) -> Option<GroupRole> {
        self.plans[inst].as_ref()?.group
    }

    /// The values that the translation of an instruction's access reads; none if it is no access.
    pub(in crate::vectorize) fn operands(&self, inst: Inst) -> Vec<ir::Value> {
        let Some(plan) = &self.plans[inst] else { return Vec::new() };
        let terms = plan.offset.terms().map(|term| term.value);
        let pattern = match plan.group {
            Some(GroupRole::Leader(group)) => self.groups[group].elements.lanes.operands(),
            Some(GroupRole::Member) => Default::default(),
            None => plan.pattern.operands(),
        };
        terms.chain(pattern).collect()
    }
}

impl AccessPlan {
    fn new(shapes: BlockShapes, data: &Scalar) -> Option<Self> {
        let (offset, width, store) = match data {
            Scalar::Load { place, width, .. } => (place.offset(), *width, Some(false)),
            Scalar::Store { place, width, .. } => (place.offset(), *width, Some(true)),
            Scalar::Atomic { place, .. } => (place.offset(), Width::Word, None),
            Scalar::Reaches { offset, .. } => (*offset, Width::Word, None),
            Scalar::Check { place, width, .. } if shapes.kernel.inline_checks => (place.offset(), *width, None),
            _ => return None,
        };
        let offset = Offset::new(shapes, offset);
        let basic = AccessPattern::basic(shapes, &offset, width);
        let pattern = match (data, store) {
            (Scalar::Load { place, .. } | Scalar::Store { place, .. }, Some(store)) if width == Width::Word => {
                word_pattern(shapes, place, &offset, basic, store)
            }
            _ => basic,
        };
        Some(Self { offset, pattern, group: None })
    }
}

/// The pattern of a load or store of words on its own.
fn word_pattern(
    shapes: BlockShapes,
    place: &Place,
    offset: &Offset,
    basic: AccessPattern,
    store: bool,
) -> AccessPattern {
    // Private memory is interleaved by lane; a waterfall loop accesses one buffer at a time, with some of the lanes.
    let (is_own, one_buffer) = match *place {
        Place::Variable { variable, .. } => (is_private(shapes.kernel, variable), true),
        Place::Buffer { buffer, .. } => (false, shapes.is_uniform(buffer)),
        Place::Push { .. } => (false, true),
    };
    if is_own || store && !one_buffer {
        return basic;
    }
    let segments = one_buffer.then(|| SegmentedAccess::new(shapes, offset)).flatten();
    let segments = segments.filter(|segments| !store || !segments.runs.is_empty());
    let candidates = [segments.map(|segments| AccessPattern::Segments(Box::new(segments))), Some(basic)];
    choose(candidates.into_iter().flatten(), AccessKind { store, words: 1 })
}

impl InterleaveGroup {
    /// Whether its members are better accessed together than each on its own.
    fn is_complete(&self) -> bool {
        let (first, last) = self.span();
        let several = first != last;
        match &self.elements.lanes {
            // A single word of a long element is loaded better otherwise.
            LaneElements::Row { index, .. } => {
                let long = self.elements.width == Width::Word && index.stride > 4 * MAX_WORDS;
                self.store || !long || several
            }
            LaneElements::Coalesced { offsets, .. } => {
                !self.store || self.members.len() == offsets.term.stride as usize / 4
            }
            LaneElements::Strided { .. } => self.store || self.elements.width != Width::Word || several,
            LaneElements::Gathered(_) => !self.store && several,
        }
    }
}

//! Access plans: how each load, store and atomic of a kernel is done, decided once, before any code is emitted.
//!
//! A plan names all values that the translation of its instruction reads, so that those that other blocks define have
//! variables by then.

use std::collections::BTreeMap;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;

use super::candidates::AccessCandidates;
use super::cost::AccessCosts;
use super::elements::ElementWord;
use super::interleave::{InterleaveGroup, groups};
use super::offset::Offset;
use super::pattern::AccessPattern;
use crate::analysis::{BlockShapes, Uniformity};
use crate::ir::{self, Block, Inst, Kernel};

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
    form: AccessForm,
}

/// Whether an instruction is done on its own.
#[derive(Clone, Debug)]
enum AccessForm {
    Single(AccessPattern),
    Grouped(GroupRole),
}

impl AccessPlan {
    /// The pattern of an access that is in no group; those of a group are done by the group's elements.
    pub(in crate::vectorize) fn pattern(&self) -> &AccessPattern {
        match &self.form {
            AccessForm::Single(pattern) => pattern,
            AccessForm::Grouped(_) => unreachable!("an access of a group is not done on its own"),
        }
    }
}

/// The plans of a kernel.
#[derive(Debug)]
pub(in crate::vectorize) struct AccessPlans {
    plans: SecondaryMap<Inst, Option<Box<AccessPlan>>>,
    groups: Vec<InterleaveGroup>,
}

impl AccessPlans {
    /// Plans the accesses of a kernel. `all_active` has the blocks that run with all 16 lanes only.
    pub(in crate::vectorize) fn new(
        kernel: &Kernel,
        uniformity: &Uniformity,
        all_active: &EntitySet<Block>,
        costs: &AccessCosts,
    ) -> Self {
        let mut plans = Self { plans: SecondaryMap::new(), groups: Vec::new() };
        for &block in &kernel.layout {
            let shapes = BlockShapes { kernel, uniformity, block };
            let all_active = all_active.contains(block);
            let mut accesses: HashMap<Inst, AccessCandidates> = HashMap::default();
            for &inst in &kernel.blocks[block].insts {
                if let Some(access) = AccessCandidates::new(shapes, &kernel.insts[inst], all_active) {
                    accesses.insert(inst, access);
                }
            }
            for group in groups(shapes, costs, |inst| &accesses[&inst]) {
                let alone = |&(inst, _): &(Inst, ElementWord)| accesses[&inst].choose(costs).1;
                let is_cheaper = || group.cost(costs) <= group.members.iter().map(alone).sum();
                if group.members.len() > 1 && group.is_possible() && is_cheaper() {
                    plans.add_group(group, &accesses);
                }
            }
            for &inst in &kernel.blocks[block].insts {
                if plans.plans[inst].is_none()
                    && let Some(access) = accesses.get(&inst)
                {
                    plans.add_single(inst, access, &accesses, costs);
                }
            }
        }
        plans
    }

    /// Plans an access that is done on its own.
    fn add_single(
        &mut self,
        inst: Inst,
        access: &AccessCandidates,
        accesses: &HashMap<Inst, AccessCandidates>,
        costs: &AccessCosts,
    ) {
        let (pattern, _) = access.choose(costs);
        match access.elements(pattern).and_then(|found| InterleaveGroup::of_one(inst, access, found)) {
            Some(group) => self.add_group(group, accesses),
            None => {
                let plan = AccessPlan { offset: access.offset.clone(), form: AccessForm::Single(pattern.clone()) };
                self.plans[inst] = Some(Box::new(plan));
            }
        }
    }

    fn add_group(&mut self, group: InterleaveGroup, accesses: &HashMap<Inst, AccessCandidates>) {
        let leader = if group.store { group.members.last() } else { group.members.first() };
        let leader = leader.map(|&(inst, _)| inst);
        for &(inst, _) in &group.members {
            let role = if leader == Some(inst) { GroupRole::Leader(self.groups.len()) } else { GroupRole::Member };
            let plan = AccessPlan { offset: accesses[&inst].offset.clone(), form: AccessForm::Grouped(role) };
            self.plans[inst] = Some(Box::new(plan));
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
            let name = match &plan.form {
                AccessForm::Grouped(GroupRole::Member) => continue,
                AccessForm::Grouped(GroupRole::Leader(group)) => self.groups[*group].elements.lanes.name(),
                AccessForm::Single(pattern) => pattern.name(),
            };
            *counts.entry(name).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    /// What an instruction does for its group; `None`: it has none.
    pub(in crate::vectorize) fn role(&self, inst: Inst) -> Option<GroupRole> {
        match self.plans[inst].as_ref()?.form {
            AccessForm::Grouped(role) => Some(role),
            AccessForm::Single(_) => None,
        }
    }

    /// The values that the translation of an instruction's access reads; none if it is no access.
    pub(in crate::vectorize) fn operands(&self, inst: Inst) -> Vec<ir::Value> {
        let Some(plan) = &self.plans[inst] else { return Vec::new() };
        let terms = plan.offset.terms().map(|term| term.value);
        let pattern = match &plan.form {
            AccessForm::Grouped(GroupRole::Leader(group)) => self.groups[*group].elements.lanes.operands(),
            AccessForm::Grouped(GroupRole::Member) => Default::default(),
            AccessForm::Single(pattern) => pattern.operands(),
        };
        terms.chain(pattern).collect()
    }
}

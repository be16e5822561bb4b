//! The sets that groups take their descriptors from: those of a context, and those of one dispatch.

use smallvec::SmallVec;

use super::DescriptorSet;
use crate::program::Program;

/// Sets by group. A list: it rarely has more than four.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupSets(SmallVec<[(u32, DescriptorSet); 1]>);

/// For each group of a program, the set that it takes its descriptors from, if any.
pub(crate) type OfProgram<'a> = SmallVec<[Option<&'a DescriptorSet>; 4]>;

impl GroupSets {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, group: u32) -> Option<&DescriptorSet> {
        self.0.iter().find(|(at, _)| *at == group).map(|(_, set)| set)
    }

    /// All of them, with their groups.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(u32, DescriptorSet)> {
        self.0.iter()
    }

    /// Sets or clears the set of a group. Returns the old one.
    #[must_use = "dropped when no lock is held"]
    pub(crate) fn put(&mut self, group: u32, set: Option<DescriptorSet>) -> Option<DescriptorSet> {
        let at = self.0.iter().position(|(at, _)| *at == group);
        match (at, set) {
            (Some(at), Some(set)) => Some(std::mem::replace(&mut self.0[at].1, set)),
            (Some(at), None) => Some(self.0.swap_remove(at).1),
            (None, Some(set)) => {
                self.0.push((group, set));
                None
            }
            (None, None) => None,
        }
    }

    /// For each group of a program that it uses, the set here, else that of `others`.
    pub(crate) fn of_program<'a>(&'a self, others: &'a Self, program: &Program) -> OfProgram<'a> {
        let groups = (0u32..).zip(program.sets());
        groups
            .map(|(group, layout)| match layout.bindings.as_slice() {
                [] => None,
                _ => self.get(group).or_else(|| others.get(group)),
            })
            .collect()
    }
}

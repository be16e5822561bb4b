//! What a change does, apart from the kernel: the changes of several repairs are made in one kernel.

use std::collections::BTreeSet;

use spelter_shaders::ir::{Block, Inst, InstData, Kernel};

use super::change::Changed;
use super::place::At;

/// What a change does to the kernel as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    insts: Vec<(Inst, InstData)>,
    inserted: Vec<(At, InstData)>,
    on_edges: Vec<((Block, Block), usize)>,
    removed: Vec<Inst>,
}

impl Change {
    /// Where instructions are inserted, in the order of the text.
    pub(super) fn places(&self) -> BTreeSet<At> {
        self.inserted.iter().map(|(at, _)| *at).collect()
    }

    /// Whether it only inserts instructions.
    pub(super) fn only_inserts(&self) -> bool {
        self.insts.is_empty() && self.removed.is_empty()
    }
}

impl Changed {
    /// What was changed.
    pub(super) fn change(&self, unchanged: &Kernel) -> Change {
        let insts = self.kernel.insts.iter().filter(|&(inst, data)| unchanged.insts[inst] != *data);
        Change {
            insts: insts.map(|(inst, data)| (inst, data.clone())).collect(),
            inserted: self.inserted.clone(),
            on_edges: self.on_edges.clone(),
            removed: self.removed.clone(),
        }
    }

    /// Makes another change of the kernel as it was read, too; what both have is made once. `None` if they change an
    /// instruction in different ways.
    pub(super) fn also(&mut self, other: &Change, unchanged: &Kernel) -> Option<()> {
        for (inst, data) in &other.insts {
            let own = &mut self.kernel.insts[*inst];
            if *own != unchanged.insts[*inst] && own != data {
                return None;
            }
            own.clone_from(data);
        }
        // The number that an inserted instruction of the other one has here.
        let mut numbers = vec![0; other.inserted.len()];
        for at in other.places() {
            let of = |list: &[(At, InstData)]| -> Vec<usize> { (0..list.len()).filter(|&n| list[n].0 == at).collect() };
            let (mine, theirs) = (of(&self.inserted), of(&other.inserted));
            let are_same = |mine: &&[usize]| {
                mine.iter().zip(&theirs).all(|(&mine, &their)| self.inserted[mine].1 == other.inserted[their].1)
            };
            match mine.windows(theirs.len()).find(are_same) {
                Some(mine) => theirs.iter().zip(mine).for_each(|(&their, &mine)| numbers[their] = mine),
                None => theirs.iter().for_each(|&their| {
                    numbers[their] = self.inserted.len();
                    self.inserted.push(other.inserted[their].clone());
                }),
            }
        }
        for &(edge, number) in &other.on_edges {
            let twin = (edge, numbers[number]);
            if !self.on_edges.contains(&twin) {
                self.on_edges.push(twin);
            }
        }
        self.removed.extend(&other.removed);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use spelter_memory_model::event::Class;
    use spelter_shaders::front::Language;
    use spelter_shaders::ir::{BlockData, Scope, Semantics};

    use super::super::change::{barrier, fence};
    use super::*;

    /// A kernel of one block with a barrier.
    fn kernel() -> Kernel {
        let mut kernel = Kernel::new("k", [64, 1, 1]);
        let inst = kernel.insts.push(barrier(&kernel, Class::Workgroup));
        let block = kernel.blocks.push(BlockData::default());
        kernel.blocks[block].insts.push(inst);
        kernel.layout.push(block);
        kernel
    }

    fn count(kernel: &Kernel) -> usize {
        kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum()
    }

    #[test]
    fn what_two_changes_insert_at_one_place_is_inserted_once() {
        let kernel = kernel();
        let at = At { block: 0, index: 0 };
        let [workgroup, uniform] = [Class::Workgroup, Class::Uniform].map(|class| barrier(&kernel, class));
        let change = |insts: &[InstData]| {
            let mut changed = Changed::new(&kernel, Language::Glsl);
            changed.insert_around(at, &[], insts.iter().cloned());
            changed.change(&kernel)
        };
        let made = |changes: &[Change]| {
            let mut changed = Changed::new(&kernel, Language::Glsl);
            changes.iter().for_each(|change| changed.also(change, &kernel).unwrap());
            count(&changed.finish()) - count(&kernel)
        };
        let one = change(std::slice::from_ref(&workgroup));
        let both = change(&[fence(&kernel, Class::Uniform), workgroup]);
        assert_eq!(made(&[one.clone(), one.clone()]), 1);
        assert_eq!(made(&[both.clone(), one.clone()]), 2, "it has the barrier");
        assert_eq!(made(&[one, change(&[uniform])]), 2);
        assert!(both.only_inserts() && both.places() == [at].into());
    }

    #[test]
    fn two_different_changes_of_an_instruction_contradict_each_other() {
        let kernel = kernel();
        let inst = kernel.blocks[kernel.layout[0]].insts[0];
        let with = |semantics: u32| {
            let mut changed = Changed::new(&kernel, Language::Glsl);
            let scope = Scope::Workgroup;
            changed.kernel.insts[inst] =
                InstData::Barrier { execution: scope, memory: scope, semantics: Semantics(semantics) };
            changed.change(&kernel)
        };
        let mut changed = Changed::new(&kernel, Language::Glsl);
        assert_eq!(changed.also(&with(0x148), &kernel), Some(()));
        assert_eq!(changed.also(&with(0x148), &kernel), Some(()));
        assert_eq!(changed.also(&with(0x948), &kernel), None);
        assert!(!changed.change(&kernel).only_inserts());
    }
}

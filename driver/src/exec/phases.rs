//! The commands of a recording in one list, divided into phases: a barrier between two commands costs one index.

use std::ops::Index;

use super::work::Work;
use crate::host_memory::{self, OutOfHostMemory};

/// Phases in execution order. Commands of one phase may overlap; no phase is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    commands: Vec<Work>,
    /// One past the last command of each phase; commands after the last end belong to the open phase.
    ends: Vec<usize>,
    /// Commands that belong to the same call as the one before them, in ascending order: further regions of a copy.
    further: Vec<usize>,
}

impl Phases {
    /// Reserves memory for this many commands, each in its own phase.
    pub(crate) fn make_room(&mut self, commands: usize) -> Result<(), OutOfHostMemory> {
        host_memory::reserve(&mut self.commands, commands)?;
        if commands > 1 {
            host_memory::reserve(&mut self.further, commands)?;
        }
        host_memory::reserve(&mut self.ends, commands + 1)
    }

    /// Adds a command to the open phase.
    pub(crate) fn push(&mut self, work: Work) {
        self.commands.push(work);
    }

    /// Adds the commands of one call to the open phase: the regions of a copy.
    pub(crate) fn push_call(&mut self, regions: impl Iterator<Item = Work>) {
        let first = self.commands.len();
        self.commands.extend(regions);
        self.further.extend(first + 1..self.commands.len());
    }

    /// Ends the open phase, if it has commands.
    pub(crate) fn end(&mut self) {
        if self.open() > 0 {
            self.ends.push(self.commands.len());
        }
    }

    /// Number of phases that have ended.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of commands in the open phase.
    pub(crate) fn open(&self) -> usize {
        self.commands.len() - self.start(self.ends.len())
    }

    /// All commands.
    pub(crate) fn commands(&self) -> &[Work] {
        &self.commands
    }

    /// The same phases with each command replaced by `renew`.
    pub(crate) fn map(&self, renew: impl FnMut(&Work) -> Work) -> Result<Self, OutOfHostMemory> {
        let commands = host_memory::collect(self.commands.iter().map(renew))?;
        Ok(Self { commands, ends: host_memory::copied(&self.ends)?, further: host_memory::copied(&self.further)? })
    }

    /// Appends phases. All phases of `self` have ended.
    pub(crate) fn append(&mut self, others: &Self) {
        let before = self.commands.len();
        self.commands.extend_from_slice(&others.commands);
        self.ends.extend(others.ends.iter().map(|end| before + end));
        self.further.extend(others.further.iter().map(|further| before + further));
    }

    /// The commands of a phase, if there is one.
    pub(crate) fn get(&self, phase: usize) -> Option<&[Work]> {
        (phase < self.len()).then(|| &self[phase])
    }

    /// The number of the call that a command belongs to, by its place in a phase: of all calls that have commands.
    pub(crate) fn number(&self, phase: usize, command: usize) -> usize {
        let place = self.start(phase.min(self.len())) + command;
        place - self.further.partition_point(|&further| further <= place)
    }

    fn start(&self, phase: usize) -> usize {
        phase.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl Index<usize> for Phases {
    type Output = [Work];

    fn index(&self, phase: usize) -> &[Work] {
        &self.commands[self.start(phase)..self.ends[phase]]
    }
}

#[cfg(test)]
impl<P: IntoIterator<Item = Work>> FromIterator<P> for Phases {
    fn from_iter<I: IntoIterator<Item = P>>(phases: I) -> Self {
        let mut all = Self::default();
        for phase in phases {
            phase.into_iter().for_each(|work| all.push(work));
            all.end();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use spelter_shaders::guest::GuestSlice;

    use super::*;

    fn fill(word: u32) -> Work {
        Work::Fill { to: GuestSlice::EMPTY, word }
    }

    fn words(phases: &Phases) -> Vec<Vec<u32>> {
        let word = |work: &Work| if let Work::Fill { word, .. } = work { *word } else { u32::MAX };
        (0..phases.len()).map(|phase| phases[phase].iter().map(word).collect()).collect()
    }

    #[test]
    fn phases_are_separate_and_none_is_empty() {
        let mut phases: Phases = [vec![fill(1), fill(2)], vec![], vec![fill(3)]].into_iter().collect();
        assert_eq!(words(&phases), [vec![1, 2], vec![3]]);
        phases.push(fill(4));
        assert_eq!((phases.len(), phases.open()), (2, 1));
        phases.end();
        phases.end();
        phases.append(&phases.clone());
        assert_eq!(words(&phases), [vec![1, 2], vec![3], vec![4], vec![1, 2], vec![3], vec![4]]);
        assert_eq!((phases.commands().len(), phases.open()), (8, 0));
    }

    #[test]
    fn the_regions_of_a_call_have_one_number() {
        let mut phases = Phases::default();
        phases.push(fill(1));
        phases.push_call([2, 3, 4].map(fill).into_iter());
        phases.push(fill(5));
        phases.end();
        phases.append(&phases.clone());
        let numbers = |phase| (0..5).map(|command| phases.number(phase, command)).collect::<Vec<_>>();
        assert_eq!((numbers(0), numbers(1)), (vec![0, 1, 1, 1, 2], vec![3, 4, 4, 4, 5]));
        assert_eq!(phases.number(2, 0), 6, "the end");
        let again = phases.map(Work::clone).unwrap();
        assert_eq!(again.number(1, 4), 5);
    }
}

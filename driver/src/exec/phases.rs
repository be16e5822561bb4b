//! The commands of a recording in one list, divided into phases: a barrier between two commands costs one index.

use std::ops::Index;

use super::work::Work;
use crate::host_memory::{self, OutOfHostMemory};

/// The commands of a call after its first one: further regions of a copy.
#[derive(Clone, Copy, Debug)]
struct FurtherRegions {
    first: usize,
    /// One past the last one.
    end: usize,
    /// How many earlier calls have.
    before: usize,
}

impl FurtherRegions {
    /// How many this call and earlier ones have, up to a command.
    fn up_to(&self, command: usize) -> usize {
        self.before + self.end.min(command + 1) - self.first
    }
}

/// Phases in execution order. Commands of one phase may overlap; no phase is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    commands: Vec<Work>,
    /// One past the last command of each phase; commands after the last end belong to the open phase.
    ends: Vec<usize>,
    /// Of each call with several regions, in ascending order.
    further: Vec<FurtherRegions>,
}

impl Phases {
    /// Reserves memory for one call of this many commands, before and after which a phase may end.
    pub(crate) fn make_room(&mut self, commands: usize) -> Result<(), OutOfHostMemory> {
        host_memory::reserve(&mut self.commands, commands)?;
        if commands > 1 {
            host_memory::reserve(&mut self.further, 1)?;
        }
        host_memory::reserve(&mut self.ends, 2)
    }

    /// Reserves memory to append phases.
    pub(crate) fn make_room_for(&mut self, others: &Self) -> Result<(), OutOfHostMemory> {
        host_memory::reserve(&mut self.commands, others.commands.len())?;
        host_memory::reserve(&mut self.further, others.further.len())?;
        host_memory::reserve(&mut self.ends, others.ends.len() + 1)
    }

    /// Adds a command to the open phase.
    pub(crate) fn push(&mut self, work: Work) {
        self.commands.push(work);
    }

    /// Adds the commands of one call to the open phase: the regions of a copy.
    pub(crate) fn push_call(&mut self, regions: impl Iterator<Item = Work>) {
        let first = self.commands.len();
        self.commands.extend(regions);
        if self.commands.len() > first + 1 {
            let (end, before) = (self.commands.len(), self.further_up_to(first));
            self.further.push(FurtherRegions { first: first + 1, end, before });
        }
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
        let (before, known) = (self.commands.len(), self.further_up_to(self.commands.len()));
        self.commands.extend_from_slice(&others.commands);
        self.ends.extend(others.ends.iter().map(|end| before + end));
        self.further.extend(others.further.iter().map(|further| FurtherRegions {
            first: before + further.first,
            end: before + further.end,
            before: known + further.before,
        }));
    }

    /// The commands of a phase, if there is one.
    pub(crate) fn get(&self, phase: usize) -> Option<&[Work]> {
        (phase < self.len()).then(|| &self[phase])
    }

    /// The number of the call that a command belongs to, by its place in a phase: of all calls that have commands.
    pub(crate) fn number(&self, phase: usize, command: usize) -> usize {
        let place = self.start(phase.min(self.len())) + command;
        place - self.further_up_to(place)
    }

    /// The number of further regions of calls up to a command.
    fn further_up_to(&self, command: usize) -> usize {
        let calls = self.further.partition_point(|further| further.first <= command);
        calls.checked_sub(1).map_or(0, |last| self.further[last].up_to(command))
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

    #[test]
    fn a_call_needs_the_same_memory_beside_its_regions_whatever_their_number() {
        let mut phases = Phases::default();
        phases.make_room(1000).unwrap();
        phases.push_call((0..1000).map(fill));
        phases.end();
        let mut others = Phases::default();
        others.make_room_for(&phases).unwrap();
        others.append(&phases);
        for phases in [phases, others] {
            assert_eq!((phases.number(0, 999), phases.number(1, 0)), (0, 1));
            assert!(phases.further.capacity() < 10 && phases.ends.capacity() < 10, "{phases:?}");
        }
    }
}

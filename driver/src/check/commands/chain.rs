//! How far dependencies have carried an access: which stages come after it, and of a write, for which memory it is
//! available and visible.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::scope::{Accesses, Stage, Stages};

/// How far a write has come towards a queue's later commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reach {
    /// Stages whose accesses are ordered after an availability operation for the write.
    pub(super) available: Stages,
    /// The accesses of each stage to which it is visible.
    pub(super) visible: [Accesses; Stage::ALL.len()],
    /// The barrier that made it visible to reads of the host, by its event (`host.rs`).
    pub(super) to_host: Option<u64>,
}

/// By queue.
pub(super) type Reaches = SmallVec<[(u32, Reach); 1]>;

/// Stages by queue.
pub(super) type QueueStages = SmallVec<[(u32, Stages); 1]>;

/// The stages of a queue.
pub(super) fn stages(of: &QueueStages, queue: u32) -> Stages {
    of.iter().find(|(number, _)| *number == queue).map(|(_, stages)| *stages).unwrap_or_default()
}

/// Adds stages of a queue.
pub(super) fn add_stages(of: &mut QueueStages, queue: u32, more: Stages) {
    match of.iter_mut().find(|(number, _)| *number == queue) {
        Some((_, known)) => *known = known.or(more),
        None => of.push((queue, more)),
    }
}

/// A range of memory, from the address that it has as a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) end: u64,
    pub(super) reaches: Reaches,
}

/// How far an access has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ChainState {
    /// Stages of queues that an execution dependency chain leads to.
    pub(super) after: QueueStages,
    /// Those of them to all of whose accesses it is visible, since a semaphore was waited for.
    pub(super) seen: QueueStages,
    /// Of a write, how far it has come, for memory that is not in `ranged`.
    pub(super) memory: Reaches,
    /// The same for memory that barriers with ranges name: disjoint ranges, by their first addresses.
    pub(super) ranged: BTreeMap<u64, Part>,
}

/// How far it has come towards a queue.
pub(super) fn reach(of: &Reaches, queue: u32) -> Reach {
    of.iter().find(|(number, _)| *number == queue).map(|(_, reach)| *reach).unwrap_or_default()
}

/// The same, to be changed.
pub(super) fn reach_mut(of: &mut Reaches, queue: u32) -> &mut Reach {
    let place = of.iter().position(|(number, _)| *number == queue).unwrap_or_else(|| {
        of.push((queue, Reach::default()));
        of.len() - 1
    });
    &mut of[place].1
}

impl ChainState {
    /// What comes before the signal of an event by the host, for a wait of a queue: it comes before the stage `HOST`,
    /// and what the host waited for is available there.
    pub(super) fn known_to_host(queue: u32, is_available: bool) -> Self {
        let host = Stages::of(Stage::Host);
        let available = if is_available { host } else { Stages::NONE };
        let reach = Reach { available, ..Reach::default() };
        Self { after: smallvec![(queue, host)], memory: smallvec![(queue, reach)], ..Self::default() }
    }

    /// How far it has come at an address.
    pub(super) fn at(&self, address: u64) -> &Reaches {
        let part = self.ranged.range(..=address).next_back().filter(|(_, part)| address < part.end);
        part.map_or(&self.memory, |(_, part)| &part.reaches)
    }

    /// How far it has come, for each part that is distinguished.
    pub(super) fn all(&self) -> impl Iterator<Item = &Reaches> {
        std::iter::once(&self.memory).chain(self.ranged.values().map(|part| &part.reaches))
    }

    /// The same, to be changed.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Reaches> {
        std::iter::once(&mut self.memory).chain(self.ranged.values_mut().map(|part| &mut part.reaches))
    }

    /// Makes `range` a union of parts of `ranged`, unless it is empty.
    pub(super) fn split(&mut self, range: &Range<u64>) {
        if range.start >= range.end {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        let (mut at, mut gaps) = (range.start, SmallVec::<[Range<u64>; 4]>::new());
        for (&start, part) in self.ranged.range(range.clone()) {
            if at < start {
                gaps.push(at..start);
            }
            at = part.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        for gap in gaps {
            self.ranged.insert(gap.start, Part { end: gap.end, reaches: self.memory.clone() });
        }
    }

    /// Divides the part that has this address within.
    pub(super) fn cut(&mut self, address: u64) {
        let Some((_, part)) = self.ranged.range_mut(..address).next_back() else { return };
        if address < part.end {
            let rest = Part { end: part.end, reaches: part.reaches.clone() };
            part.end = address;
            self.ranged.insert(address, rest);
        }
    }

    /// Joins parts that are alike, of those that meet a range or touch it.
    pub(super) fn join(&mut self, range: &Range<u64>) {
        let first = self.ranged.range(..range.start).next_back().filter(|(_, part)| part.end >= range.start);
        let mut next = Some(first.map_or(range.start, |(&start, _)| start));
        let from = |next: Option<u64>| next.filter(|&next| next <= range.end);
        while let Some((&start, part)) = from(next).and_then(|from| self.ranged.range(from..=range.end).next()) {
            let end = part.end;
            if part.reaches == self.memory {
                self.ranged.remove(&start);
                next = Some(end);
                continue;
            }
            let after = self.ranged.get(&end).filter(|_| end <= range.end);
            match after.filter(|after| after.reaches == part.reaches).map(|after| after.end) {
                Some(longer) => {
                    self.ranged.remove(&end);
                    self.ranged.entry(start).and_modify(|part| part.end = longer);
                    next = Some(start);
                }
                None => next = Some(end),
            }
        }
    }

    /// Asks for each part of a range with its own reach. Returns the first error, and the part.
    pub(super) fn for_parts<E>(
        &self,
        range: &Range<u64>,
        ask: impl Fn(&Reaches) -> Result<(), E>,
    ) -> Result<(), (E, Range<u64>)> {
        let first = self.ranged.range(..=range.start).next_back().map_or(range.start, |(&start, _)| start);
        let mut at = range.start;
        for (&start, Part { end, reaches }) in self.ranged.range(first..range.end.max(first)) {
            if *end <= at {
                continue;
            }
            if at < start {
                ask(&self.memory).map_err(|error| (error, at..start))?;
            }
            let end = (*end).min(range.end);
            ask(reaches).map_err(|error| (error, at.max(start)..end))?;
            at = end;
        }
        if at < range.end { ask(&self.memory).map_err(|error| (error, at..range.end)) } else { Ok(()) }
    }
}

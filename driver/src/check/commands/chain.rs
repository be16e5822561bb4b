//! How far dependencies have carried an access: which stages come after it, and of a write, for which memory it is
//! available and visible.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::scope::{Accesses, Stage, Stages};

/// How far a write has come towards a queue's later commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// How far an access has come.
#[derive(Clone, Debug, Default)]
pub(super) struct ChainState {
    /// Stages of queues that an execution dependency chain leads to.
    pub(super) after: QueueStages,
    /// Those of them to all of whose accesses it is visible, since a semaphore was waited for.
    pub(super) seen: QueueStages,
    /// Of a write, how far it has come, for memory that is not in `ranged`.
    pub(super) memory: Reaches,
    /// The same for memory that barriers with ranges name: disjoint ranges, ascending.
    pub(super) ranged: Vec<(Range<u64>, Reaches)>,
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

    /// Makes `range` a union of parts of `ranged`, unless it is empty.
    pub(super) fn split(&mut self, range: &Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let Self { memory, ranged, .. } = self;
        let mut parts = Vec::with_capacity(ranged.len() + 2);
        let mut at = range.start;
        for (part, reaches) in ranged.drain(..) {
            if part.end <= range.start || range.end <= part.start {
                parts.push((part, reaches));
                continue;
            }
            if at < part.start {
                parts.push((at..part.start, memory.clone()));
            }
            let cuts = [part.start, part.start.max(range.start), part.end.min(range.end), part.end];
            for cut in cuts.windows(2).filter(|cut| cut[0] < cut[1]) {
                parts.push((cut[0]..cut[1], reaches.clone()));
            }
            at = part.end.max(at);
        }
        if at < range.end {
            parts.push((at..range.end, memory.clone()));
        }
        parts.sort_by_key(|(part, _)| part.start);
        *ranged = parts;
    }

    /// Asks for each part of a range with its own reach. Returns the first error, and the part.
    pub(super) fn for_parts<E>(
        &self,
        range: &Range<u64>,
        ask: impl Fn(&Reaches) -> Result<(), E>,
    ) -> Result<(), (E, Range<u64>)> {
        let mut at = range.start;
        for (part, reaches) in &self.ranged {
            if part.end <= at || range.end <= part.start {
                continue;
            }
            if at < part.start {
                ask(&self.memory).map_err(|error| (error, at..part.start))?;
            }
            let end = part.end.min(range.end);
            ask(reaches).map_err(|error| (error, at.max(part.start)..end))?;
            at = end;
        }
        if at < range.end { ask(&self.memory).map_err(|error| (error, at..range.end)) } else { Ok(()) }
    }
}

//! The races that one command shows: those of two commands are reported together, since one dependency mends all.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::FixedState;

use super::memory::AccessId;
use super::order::{Lack, Order};
use super::report::{CommandRace, Missing, Needs};
use super::{Access, AccessInfo, Checker, Hazard, LogState};
use crate::check::finding::Severity;
use crate::check::found_memory::FoundPlace;
use crate::check::identity::FindingIdentity;
use crate::exec::CommandId;

/// A race of an earlier access with one that happens now.
#[derive(Clone, Debug)]
pub(super) struct SeenRace {
    pub(super) earlier: AccessId,
    pub(super) now: Access,
    /// The bytes for which a dependency is missing.
    pub(super) bytes: Range<u64>,
    pub(super) hazard: Hazard,
    pub(super) lack: Lack,
}

/// The races that the accesses of a command show. Instructions that access words by turns make one for each word: of
/// those that a report does not tell apart, the first one is kept.
#[derive(Debug, Default)]
pub(super) struct SeenRaces {
    list: Vec<SeenRace>,
    /// What tells them apart: the accesses, what is missing, and the part of memory, by its first address.
    kept: HashSet<(AccessId, AccessId, Hazard, Lack, u64), FixedState>,
    /// The accesses of these races.
    accesses: HashSet<AccessId, FixedState>,
    /// The addresses where a buffer, an image or a descriptor of these accesses begins or ends. Reports name the same
    /// memory for all addresses between two of them.
    bounds: BTreeSet<u64>,
}

impl SeenRaces {
    pub(super) fn add(&mut self, race: SeenRace, log: &LogState, checker: &Checker) {
        if self.accesses.is_empty() {
            self.bounds = checker.resources().bounds();
        }
        for id in [race.earlier, race.now.id] {
            if self.accesses.insert(id) {
                self.bounds.extend(log.info(id).command.bounds_of_descriptors());
            }
        }
        self.keep(race);
    }

    fn keep(&mut self, race: SeenRace) {
        let SeenRace { earlier, now, hazard, lack, .. } = race;
        let part = self.bounds.range(..=race.bytes.start).next_back().copied().unwrap_or_default();
        if self.kept.insert((earlier, now.id, hazard, lack, part)) {
            self.list.push(race);
        }
    }
}

/// What two accesses are of: their commands and whether each is the layout transition of a barrier; of the host, the
/// accesses.
type CommandPair = [Result<(CommandId, bool), AccessId>; 2];

impl LogState {
    /// Reports the races of the accesses that happen now: of each two commands each finding once, wherever in memory it
    /// is true.
    pub(super) fn report_races(&mut self, checker: &Checker, seen: &SeenRaces) {
        let mut places: HashMap<CommandPair, usize, FixedState> = HashMap::default();
        let mut pairs: Vec<Vec<&SeenRace>> = Vec::new();
        for race in &seen.list {
            let pair = [race.earlier, race.now.id].map(|id| {
                let command = &self.info(id).command;
                command.id().map(|of| (of, command.is_transition())).ok_or(id)
            });
            let place = *places.entry(pair).or_insert(pairs.len());
            match pairs.get_mut(place) {
                Some(races) => races.push(race),
                None => pairs.push(vec![race]),
            }
        }
        pairs.iter().for_each(|races| self.report_pair(checker, races));
    }

    fn info(&self, id: AccessId) -> &AccessInfo {
        &self.accesses[id as usize - 1]
    }

    /// Reports the races of two commands, or of a command and the host.
    fn report_pair(&mut self, checker: &Checker, races: &[&SeenRace]) {
        let mut missing: Vec<Missing> = Vec::new();
        let needs = races.iter().map(|race| self.with_race(race, None, |race| race.needs())).reduce(Needs::or);
        let mut known: HashSet<(AccessId, AccessId, Hazard, Lack, FoundPlace), FixedState> = HashSet::default();
        let mut found: HashSet<FindingIdentity, FixedState> = HashSet::default();
        for seen in races {
            let (finding, rule) = self.with_race(seen, needs, |race| {
                let memory = race.memory(checker);
                // A part of a buffer or image may have another one, too.
                let is_news = known.insert((seen.earlier, seen.now.id, seen.hazard, seen.lack, memory.place.clone()));
                (is_news.then(|| race.finding(checker, memory, Severity::Error)), race.rule())
            });
            if let Some(finding) = finding.filter(|finding| found.insert(finding.identity())) {
                checker.report(finding);
            }
            // In the order in which they ran.
            let commands = [seen.earlier, seen.now.id].map(|id| self.info(id).command.id());
            if let [Some(earlier), Some(later)] = commands {
                let new = Missing { earlier, later, rule };
                if !missing.contains(&new) {
                    missing.push(new);
                }
            }
        }
        self.missing.extend(missing);
    }

    /// The race with the two accesses in the order in which reports have them.
    fn with_race<T>(&self, seen: &SeenRace, needs: Option<Needs>, then: impl FnOnce(&CommandRace<'_>) -> T) -> T {
        let SeenRace { earlier, now, bytes, hazard, lack } = seen.clone();
        let (first, second) = (self.info(earlier), self.info(now.id));
        let (order, events) = (&self.orders[first.order as usize].order, &self.events);
        // Nothing is ordered after the present access yet.
        let of_now = Order::new(now.point, events.next());
        let race = if lack == Lack::Order && order.overtook(&now.point, events) {
            let (pair, points) = ((second, first), (now.point, order.at));
            let between = now.point.submitted..order.born();
            let (hazard, order, is_reversed) = (hazard.reversed(), &of_now, true);
            CommandRace { hazard, lack, bytes, pair, points, order, between, is_reversed, events, needs }
        } else {
            let (pair, points) = ((first, second), (order.at, now.point));
            let (between, is_reversed) = (order.born()..events.next(), false);
            CommandRace { hazard, lack, bytes, pair, points, order, between, is_reversed, events, needs }
        };
        then(&race)
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Point;
    use super::super::scope::{Accesses, Stage};
    use super::*;

    #[test]
    fn many_races_of_two_accesses_are_one_in_each_resource() {
        let point = Point { queue: Some(0), submitted: 0, stage: Stage::Copy, access: Accesses::TRANSFER_WRITE };
        let (now, hazard, lack) = (Access { point, id: 2 }, Hazard::WriteAfterWrite, Lack::Order);
        // Two buffers of 32 KiB and of 64 bytes, without memory between them.
        let bounds = BTreeSet::from([0x1_0000, 0x1_8000, 0x1_8040]);
        let mut seen = SeenRaces { bounds, ..SeenRaces::default() };
        for at in (0x1_0000..0x1_8040).step_by(8) {
            seen.keep(SeenRace { earlier: 1, now, bytes: at..at + 4, hazard, lack });
            seen.keep(SeenRace { earlier: 3, now, bytes: at..at + 4, hazard, lack });
        }
        let kept: Vec<_> = seen.list.iter().map(|race| (race.earlier, race.bytes.clone())).collect();
        let [first, second] = [0x1_0000, 0x1_8000].map(|at| at..at + 4);
        assert_eq!(kept, [(1, first.clone()), (3, first), (1, second.clone()), (3, second)]);
    }
}

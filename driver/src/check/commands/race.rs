//! Compares an access with the last ones to the same bytes, and takes its place among them.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;

use foldhash::fast::FixedState;
use smallvec::{SmallVec, smallvec};

use super::dispatch_runs::{DispatchRuns, NumberedRange};
use super::memory::{AccessId, Cell, PAGE};
use super::order::Lack;
use super::pairs::{SeenRace, SeenRaces};
use super::record::extent;
use super::scope::{Accesses, Stage};
use super::{Access, Checker, Hazard, LogState};

/// What decides whether one access stands for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AccessKind {
    queue: Option<u32>,
    stage: Stage,
    access: Accesses,
    /// The bytes of an atomic.
    atomic: Option<u32>,
}

/// What a command accesses: ranges, each with the accesses to all of its bytes.
#[derive(Debug, Default)]
pub(super) struct CommandAccesses<'a> {
    /// The different lists of accesses, reads before writes.
    lists: Vec<SmallVec<[Access; 2]>>,
    /// Ranges, each with the number of its list.
    ranges: Vec<NumberedRange>,
    /// Those of a dispatch.
    runs: Option<&'a DispatchRuns<'a>>,
}

impl<'a> CommandAccesses<'a> {
    /// Of a dispatch: the accesses for each of its touches.
    pub(super) fn of_dispatch(lists: Vec<SmallVec<[Access; 2]>>, runs: &'a DispatchRuns<'a>) -> Self {
        Self { lists, ranges: Vec::new(), runs: Some(runs) }
    }

    /// One access to one range.
    pub(super) fn one(access: Access, range: Range<u64>) -> Self {
        let mut one = Self::default();
        one.add(access, [range]);
        one
    }

    /// Adds an access to some ranges.
    pub(super) fn add(&mut self, access: Access, ranges: impl IntoIterator<Item = Range<u64>>) {
        let list = self.lists.len() as u32;
        self.lists.push(smallvec![access]);
        self.ranges.extend(ranges.into_iter().map(|range| (range, list)));
    }

    /// Passes all ranges, some at a time.
    fn each_ranges(&self, mut each: impl FnMut(&[NumberedRange])) {
        let mut some = |ranges: &[NumberedRange]| ranges.chunks(MAX_PASSED).for_each(&mut each);
        match self.runs {
            Some(runs) => runs.each(some),
            None => some(&self.ranges),
        }
    }

    /// Passes each access, with each of its ranges.
    pub(super) fn each(&self, mut each: impl FnMut(&Access, &Range<u64>)) {
        self.each_ranges(|ranges| {
            for (range, list) in ranges {
                self.lists[*list as usize].iter().for_each(|access| each(access, range));
            }
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.runs.is_none()
    }

    /// A range that contains all of it.
    fn extent(&self) -> Range<u64> {
        self.runs.map_or_else(|| extent(self.ranges.iter().map(|(range, _)| range)), DispatchRuns::extent)
    }
}

/// Bytes of the cells of a page that has one for each word.
const PAGE_OF_WORDS: u64 = PAGE / 4 * size_of::<Cell>() as u64;

/// Ranges that are passed at once.
const MAX_PASSED: usize = 1024;

/// Bytes of the cells that some ranges may need, at most: of the pages where they begin and end.
fn max_bytes_of_cells(ranges: &[NumberedRange]) -> u64 {
    let [Some((first, _)), Some((last, _))] = [ranges.first(), ranges.last()] else { return 0 };
    // Those of several kinds of accesses do not ascend.
    let spanned = last.end.checked_sub(first.start).map_or(u64::MAX, |bytes| bytes / PAGE + 2);
    spanned.min(2 * ranges.len() as u64) * PAGE * size_of::<Cell>() as u64
}

/// What was found for some keys, of which the last one is asked most often.
pub(super) struct AnswerCache<K, T> {
    last: Option<(K, T)>,
    all: HashMap<K, T, FixedState>,
}

impl<K, T> Default for AnswerCache<K, T> {
    fn default() -> Self {
        Self { last: None, all: HashMap::default() }
    }
}

impl<K: Copy + Eq + Hash, T: Copy> AnswerCache<K, T> {
    #[inline]
    pub(super) fn of(&mut self, key: K, find: impl FnOnce() -> T) -> T {
        if let Some((last, found)) = self.last
            && last == key
        {
            return found;
        }
        let found = *self.all.entry(key).or_insert_with(find);
        self.last = Some((key, found));
        found
    }
}

impl LogState {
    /// The accesses of a command. All are compared before any takes its place: a read of this command must not stand
    /// for earlier ones when its own write comes.
    ///
    /// Instructions that access words by turns make many runs, which have few different cells: what was found of a cell
    /// and an access for all memory of the command is found once.
    pub(super) fn accesses(&mut self, checker: &Checker, of: &CommandAccesses<'_>) {
        self.compare_all(checker, of);
        self.place(checker, of);
        self.close(checker, of);
    }

    /// Compares accesses with the earlier ones.
    pub(super) fn compare_all(&mut self, checker: &Checker, of: &CommandAccesses<'_>) {
        let whole = of.extent();
        let with_answers = |list: &SmallVec<[Access; 2]>| -> SmallVec<[(Access, AnswerCache<Cell, bool>); 2]> {
            list.iter().map(|access| (*access, AnswerCache::default())).collect()
        };
        let mut ordered: Vec<_> = of.lists.iter().map(with_answers).collect();
        let mut seen = SeenRaces::default();
        // No comparison changes the cells.
        let cells = std::mem::take(&mut self.cells);
        let mut compare = |&list: &u32, run: Range<u64>, cell| {
            for (access, ordered) in &mut ordered[list as usize] {
                if !ordered.of(cell, || self.are_ordered(cell, access, &whole)) {
                    for (earlier, hazard) in self.hazards(cell, access) {
                        if let Some(race) = self.compare(earlier, access, &run, hazard) {
                            seen.add(race, self, checker);
                        }
                    }
                }
            }
        };
        of.each_ranges(|ranges| cells.runs(ranges.iter().cloned(), &mut compare));
        self.cells = cells;
        self.report_races(checker, &seen);
    }

    /// Accesses take their places. If that takes more memory than the log may have, others do not, and what is known of
    /// their memory is forgotten: what an access that is not known comes after must not be compared with later ones.
    pub(super) fn place(&mut self, checker: &Checker, of: &CommandAccesses<'_>) {
        let kept = |list: &SmallVec<[Access; 2]>| {
            let kinds = list.iter().map(|access| self.kind(access.id));
            // Of an atomic write it depends on the bytes what it stands for.
            let is_alike = kinds.into_iter().all(|kind| kind.atomic.is_none() || !kind.access.writes());
            is_alike.then(AnswerCache::default)
        };
        let mut after: Vec<Option<AnswerCache<Cell, Cell>>> = of.lists.iter().map(kept).collect();
        let mut cells = std::mem::take(&mut self.cells);
        let mut update = |&list: &u32, run: Range<u64>, cell| {
            let accesses = &of.lists[list as usize];
            let mut after_all = || accesses.iter().fold(cell, |cell, access| self.after(cell, access, &run));
            match &mut after[list as usize] {
                Some(known) => known.of(cell, after_all),
                None => after_all(),
            }
        };
        // The log is cleaned when it has so many pages: no later than then.
        let max = (checker.options.memory / 4).max(checker.options.log_accesses as u64 * PAGE_OF_WORDS);
        let (mut growth, mut is_full) = (0, false);
        of.each_ranges(|ranges| {
            if is_full {
                return ranges.iter().for_each(|(range, _)| cells.forget(range.clone()));
            }
            cells.update(ranges.iter().cloned(), &mut update);
            growth += max_bytes_of_cells(ranges);
            if growth > max / 4 {
                (growth, is_full) = (0, cells.bytes() > max);
            }
        });
        self.cells = cells;
        if is_full {
            let lost: HashSet<AccessId, FixedState> = of.lists.iter().flatten().map(|access| access.id).collect();
            checker.count(|counts| counts.commands_forgotten += lost.len() as u64);
        }
    }

    /// The cell of some bytes after an access. While no batch is submitted, nothing can race with what the host does:
    /// it takes no place, and what it stands for goes.
    fn after(&mut self, cell: Cell, access: &Access, run: &Range<u64>) -> Cell {
        let writes = access.point.access.writes();
        match access.point.queue {
            None if self.submitted.is_empty() => {
                if writes {
                    Cell::default()
                } else {
                    cell
                }
            }
            _ => {
                let write = if writes { access.id } else { cell.write };
                Cell { write, others: self.others(cell, access, run) }
            }
        }
    }

    /// The last accesses of a cell that are in conflict with one that happens now.
    fn hazards(&self, cell: Cell, now: &Access) -> SmallVec<[(AccessId, Hazard); 4]> {
        let hazard = |earlier| match (self.writes(earlier), now.point.access.writes()) {
            (true, true) => Some((earlier, Hazard::WriteAfterWrite)),
            (true, false) => Some((earlier, Hazard::ReadAfterWrite)),
            (false, true) => Some((earlier, Hazard::WriteAfterRead)),
            (false, false) => None,
        };
        self.accesses_of(cell).into_iter().filter_map(hazard).collect()
    }

    /// Whether no access of a cell races with one that happens now, whatever bytes of `whole` they have in common.
    fn are_ordered(&mut self, cell: Cell, now: &Access, whole: &Range<u64>) -> bool {
        let hazards = self.hazards(cell, now);
        hazards.iter().all(|&(earlier, _)| self.is_no_race(earlier, now) || self.lack(earlier, now, whole).is_none())
    }

    /// The detector compares the accesses of one command. Atomics of one size are mutually ordered; atomics of
    /// different sizes access different locations, even if they share bytes (Vulkan, "Mutually-ordered Atomics").
    fn is_no_race(&self, earlier: AccessId, now: &Access) -> bool {
        let [first, second] = [earlier, now.id].map(|id| &self.accesses[id as usize - 1]);
        first.command.is(&second.command) || first.atomic.is_some() && first.atomic == second.atomic
    }

    /// The last accesses of a cell.
    pub(super) fn accesses_of(&self, cell: Cell) -> SmallVec<[AccessId; 4]> {
        let write = (cell.write != 0).then_some(cell.write);
        write.into_iter().chain(self.sets.get(cell.others).iter().copied()).collect()
    }

    /// Whether an access writes.
    pub(super) fn writes(&self, id: AccessId) -> bool {
        self.kind(id).access.writes()
    }

    fn kind(&self, id: AccessId) -> AccessKind {
        let info = &self.accesses[id as usize - 1];
        let at = &self.orders[info.order as usize].order.at;
        AccessKind { queue: at.queue, stage: at.stage, access: at.access, atomic: info.atomic }
    }

    /// A layout transition, which needs values to be available and not visible. Those of one queue happen in submission
    /// order (Vulkan, "Image Layout Transitions").
    pub(super) fn transition(&mut self, checker: &Checker, access: &Access, range: Range<u64>, seen: &mut SeenRaces) {
        let mut runs = Vec::new();
        self.runs(range, &mut runs);
        for (run, cell) in runs {
            for earlier in self.accesses_of(cell) {
                let hazard = if self.writes(earlier) { Hazard::WriteAfterWrite } else { Hazard::WriteAfterRead };
                let before = &self.accesses[earlier as usize - 1];
                let queue = self.orders[before.order as usize].order.at.queue;
                if before.command.is_transition() && queue == access.point.queue {
                    continue;
                }
                if self.lack(earlier, access, &run).is_some_and(|(lack, _)| lack != Lack::Visibility)
                    && let Some(race) = self.compare(earlier, access, &run, hazard)
                {
                    seen.add(race, self, checker);
                }
            }
            self.cells.set(run.clone(), Cell { write: access.id, others: 0 });
            self.close(checker, &CommandAccesses::one(*access, run));
        }
    }

    /// Appends the runs of equal cells of a range.
    pub(super) fn runs(&self, range: Range<u64>, to: &mut Vec<(Range<u64>, Cell)>) {
        self.cells.runs([(range, ())], |(), run, cell| to.push((run, cell)));
    }

    /// What is missing between an earlier access and one that happens now, and for which bytes.
    pub(super) fn lack(&mut self, earlier: AccessId, now: &Access, range: &Range<u64>) -> Option<(Lack, Range<u64>)> {
        let index = self.accesses[earlier as usize - 1].order as usize;
        let ordered = &mut self.orders[index];
        ordered.order.follow(&self.events, &ordered.extent);
        ordered.order.precedes(&now.point, range).err()
    }

    /// A race of an earlier access with one that happens now, if they have no dependency for all of a range.
    fn compare(&mut self, earlier: AccessId, now: &Access, range: &Range<u64>, hazard: Hazard) -> Option<SeenRace> {
        if self.is_no_race(earlier, now) {
            return None;
        }
        let (lack, bytes) = self.lack(earlier, now, range)?;
        Some(SeenRace { earlier, now: *now, bytes, hazard, lack })
    }

    /// The accesses that a cell keeps beside its last write once this access is in it: those for which neither this
    /// access nor that write stands.
    ///
    /// What is ordered after a later access is ordered after an earlier one of the same queue and stage, by the same
    /// dependencies, and so it is if the later one is ordered after the earlier one. But atomics of one size are not
    /// compared with each other. So an atomic stands for no other access, since atomics of other commands may race with
    /// that; and it stands for an atomic of another queue or stage only if it is ordered after it.
    fn others(&mut self, cell: Cell, access: &Access, run: &Range<u64>) -> u32 {
        let new = self.kind(access.id);
        // A plain write stands for everything before it: what races with that races with the write, or was reported.
        if new.access.writes() && new.atomic.is_none() {
            return 0;
        }
        let mut others = SmallVec::<[AccessId; 4]>::new();
        if !new.access.writes() {
            if self.sets.get(cell.others).contains(&access.id) {
                return cell.others;
            }
            others.extend(self.sets.get(cell.others).iter().copied().filter(|&id| {
                let old = self.kind(id);
                let same = (old.queue, old.stage) == (new.queue, new.stage);
                old.access.writes() || !same || new.atomic.is_some() && old.atomic != new.atomic
            }));
            others.push(access.id);
        } else {
            for id in self.accesses_of(cell) {
                let [old, now] = [id, access.id].map(|id| &self.accesses[id as usize - 1].command);
                let (own, old) = (old.is(now), self.kind(id));
                if old.atomic != new.atomic || !own && old != new && self.lack(id, access, run).is_some() {
                    others.push(id);
                }
            }
        }
        others.sort_unstable();
        others.dedup();
        self.sets.number(others.into_vec().into())
    }
}

#[cfg(test)]
mod tests {
    use spelter_shaders::schedule::Schedule;

    use super::*;
    use crate::check::CheckOptions;
    use crate::check::commands::order::Point;
    use crate::check::commands::trap::host_at;

    #[test]
    fn cells_of_words_by_turns_are_bounded() {
        let options = CheckOptions { memory: 1 << 20, log_accesses: 1, ..CheckOptions::default() };
        let checker = Checker::new(options, Schedule::Ascending, 0..0, None, None);
        let forgotten = [16 << 10, 8 << 20].map(|bytes: u64| {
            let mut log = LogState::default();
            let (access, submitted) = (Accesses::TRANSFER_WRITE, log.events.next());
            let point = Point { queue: Some(0), submitted, stage: Stage::Copy, access };
            let order = log.order(point, 0..bytes);
            let id = log.access(order, &host_at(None), None, None);
            let mut all = CommandAccesses::default();
            all.add(Access { point, id }, (0..bytes).step_by(8).map(|at| at..at + 4));
            let before = checker.stats().commands_forgotten;
            log.place(&checker, &all);
            assert!(log.cells.bytes() < 1 << 19, "{} bytes for {bytes}", log.cells.bytes());
            assert_eq!([log.cells.at(0).write, log.cells.at(4).write], [id, 0]);
            assert_eq!(log.cells.at(bytes - 8).write, if bytes > 1 << 20 { 0 } else { id });
            checker.stats().commands_forgotten - before
        });
        assert_eq!(forgotten, [0, 1]);
    }
}

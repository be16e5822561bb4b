//! Compares an access with the last ones to the same bytes, and takes its place among them.

use std::ops::Range;

use super::memory::{AccessId, Cell};
use super::order::Lack;
use super::report::{self, Race};
use super::{Access, Checker, Hazard, State};
use crate::check::finding::Severity;

impl State {
    /// The accesses of a command. All are compared before any takes its place: a read of this command must not stand
    /// for earlier ones when its own write comes.
    pub(super) fn accesses(&mut self, checker: &Checker, list: &[(Access, Range<u64>)]) {
        for (access, range) in list {
            let writes = access.point.access.writes();
            for (run, cell) in self.runs(range.clone()) {
                if cell.write != 0 {
                    let hazard = if writes { Hazard::WriteAfterWrite } else { Hazard::ReadAfterWrite };
                    self.compare(checker, cell.write, access, &run, hazard);
                }
                for at in 0.. {
                    let Some(&read) = self.sets.get(cell.reads).get(at).filter(|_| writes) else { break };
                    self.compare(checker, read, access, &run, Hazard::WriteAfterRead);
                }
            }
        }
        for (access, range) in list {
            for (run, cell) in self.runs(range.clone()) {
                let new = if access.point.access.writes() {
                    Cell { write: access.id, reads: 0 }
                } else {
                    Cell { reads: self.with_read(cell.reads, access.id), ..cell }
                };
                if new != cell {
                    self.cells.set(run, new);
                }
            }
        }
    }

    /// A layout transition, which needs values to be available and not visible. Those of one queue happen in submission
    /// order (Vulkan, "Image Layout Transitions").
    pub(super) fn transition(&mut self, checker: &Checker, access: &Access, range: Range<u64>) {
        for (run, cell) in self.runs(range) {
            let reads = self.sets.get(cell.reads).to_vec();
            let all = std::iter::once((cell.write, Hazard::WriteAfterWrite))
                .chain(reads.into_iter().map(|read| (read, Hazard::WriteAfterRead)));
            for (earlier, hazard) in all.filter(|(earlier, _)| *earlier != 0) {
                let before = &self.accesses[earlier as usize - 1];
                let queue = self.orders[before.order as usize].order.at.queue;
                if before.command.is_transition() && queue == access.point.queue {
                    continue;
                }
                if self.lack(earlier, access, &run).is_some_and(|(lack, _)| lack != Lack::Visibility) {
                    self.compare(checker, earlier, access, &run, hazard);
                }
            }
            self.cells.set(run, Cell { write: access.id, reads: 0 });
        }
    }

    fn runs(&self, range: Range<u64>) -> Vec<(Range<u64>, Cell)> {
        let mut runs = Vec::new();
        self.cells.runs(range, |run, cell| runs.push((run, cell)));
        runs
    }

    /// What is missing between an earlier access and one that happens now, and for which bytes.
    fn lack(&mut self, earlier: AccessId, now: &Access, range: &Range<u64>) -> Option<(Lack, Range<u64>)> {
        let index = self.accesses[earlier as usize - 1].order as usize;
        let ordered = &mut self.orders[index];
        ordered.order.follow(&self.events, &ordered.extent);
        ordered.order.precedes(&now.point, range).err()
    }

    fn compare(&mut self, checker: &Checker, earlier: AccessId, now: &Access, range: &Range<u64>, hazard: Hazard) {
        let [first, second] = [earlier, now.id].map(|id| &self.accesses[id as usize - 1]);
        // A command's own accesses are the business of the detector, and atomics are mutually ordered.
        if first.command.is(&second.command) || (first.atomic && second.atomic) {
            return;
        }
        let Some((lack, bytes)) = self.lack(earlier, now, range) else { return };
        let [first, second] = [earlier, now.id].map(|id| self.accesses[id as usize - 1].clone());
        let order = &self.orders[first.order as usize].order;
        let (pair, points) = ((&first, &second), (order.at, now.point));
        let race = Race { hazard, lack, bytes, pair, points, order, events: &self.events };
        report::report(checker, &race, Severity::Error);
    }

    /// A set of reads with one more. Reads of one queue and stage are ordered before a write by the same dependencies,
    /// so the last one stands for all.
    fn with_read(&mut self, set: u32, id: AccessId) -> u32 {
        let point = |id: AccessId| {
            let order = self.accesses[id as usize - 1].order;
            self.orders[order as usize].order.at
        };
        let new = point(id);
        let old = self.sets.get(set);
        if old.contains(&id) {
            return set;
        }
        let stays = |&read: &AccessId| {
            let old = point(read);
            (old.queue, old.stage) != (new.queue, new.stage)
        };
        let mut reads: Vec<_> = old.iter().copied().filter(stays).chain([id]).collect();
        reads.sort_unstable();
        self.sets.number(reads.into())
    }
}

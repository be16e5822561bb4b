//! Mapped memory: what the host does through a pointer is not seen. Once it has waited for a command that wrote to
//! mapped memory, or maps memory with values of commands, it is about to read, so a missing dependency to the host is
//! an advice.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use foldhash::fast::FixedState;

use super::memory::AccessId;
use super::order::{Lack, Point};
use super::report::CommandRace;
use super::scope::{Accesses, Stage};
use super::{AccessInfo, Checker, CommandInfo, Hazard, LogState};
use crate::check::finding::Severity;

impl LogState {
    /// The host maps memory, or ends the mapping.
    pub(super) fn map(&mut self, checker: &Checker, range: Range<u64>, mapped: bool) {
        self.mapped.retain(|known| *known != range);
        if !mapped {
            return;
        }
        let mut written = BTreeSet::new();
        self.cells.runs([(range.clone(), ())], |(), _, cell| _ = written.insert(cell.write));
        // The host may still wait for these writes while the memory is mapped.
        let is_news = |id: &AccessId| *id != 0 && !self.reported.contains(id) && !self.unread.contains(id);
        let of_queues = |id: &AccessId| {
            let order = self.accesses[*id as usize - 1].order;
            self.orders[order as usize].order.at.queue.is_some()
        };
        let news: Vec<_> = written.into_iter().filter(|id| is_news(id) && of_queues(id)).collect();
        self.unread.extend(news);
        self.mapped.push(range);
        self.advise(checker);
    }

    /// Looks at the writes that the host knows to be done since the last call.
    pub(super) fn advise(&mut self, checker: &Checker) {
        if checker.trap.is_some() {
            // What the host reads is seen.
            self.unread.clear();
            return;
        }
        let submitted = self.events.next();
        let point = Point { queue: None, submitted, stage: Stage::Host, access: Accesses::HOST_READ };
        let (mut settled, mut unread) = (Vec::new(), std::mem::take(&mut self.unread));
        unread.retain(|&id| {
            let ordered = &mut self.orders[self.accesses[id as usize - 1].order as usize];
            ordered.order.follow(&self.events, &ordered.extent);
            if ordered.order.is_settled() {
                settled.push(id);
            }
            !ordered.order.is_settled()
        });
        self.unread = unread;
        let invisible = self.invisible(&settled, &point);
        for id in settled {
            if let Some(bytes) = invisible.get(&id).cloned() {
                self.reported.insert(id);
                let info = &self.accesses[id as usize - 1];
                let order = &self.orders[info.order as usize].order;
                let host =
                    AccessInfo { order: 0, command: CommandInfo::host(None), site: None, atomic: None, example: None };
                let (hazard, lack) = (Hazard::ReadAfterWrite, Lack::HostDomain);
                let (pair, points) = ((info, &host), (order.at, point));
                let (between, events) = (order.born()..self.events.next(), &self.events);
                let race = CommandRace {
                    hazard,
                    lack,
                    bytes,
                    pair,
                    points,
                    order,
                    between,
                    is_reversed: false,
                    events,
                    needs: None,
                };
                checker.report(race.finding(checker, race.memory(checker), Severity::Note));
            }
        }
    }

    /// For each of these writes, mapped bytes with its value, which is not visible to the host.
    fn invisible(&self, writes: &[AccessId], point: &Point) -> HashMap<AccessId, Range<u64>, FixedState> {
        let mut found: HashMap<AccessId, Option<Range<u64>>, FixedState> =
            writes.iter().map(|id| (*id, None)).collect();
        let of = |id: AccessId| &self.orders[self.accesses[id as usize - 1].order as usize];
        let mut extents: Vec<_> = writes.iter().map(|id| of(*id).extent.clone()).collect();
        extents.sort_unstable_by_key(|extent| extent.start);
        for mapped in &self.mapped {
            let mut at = mapped.start;
            // Writes may share what contains them.
            for extent in &extents {
                let range = at.max(extent.start)..mapped.end.min(extent.end);
                if range.start >= range.end {
                    continue;
                }
                at = range.end;
                self.cells.runs([(range, ())], |(), run, cell| {
                    if let Some(found @ None) = found.get_mut(&cell.write) {
                        *found = of(cell.write).order.precedes(point, &run).err().map(|(_, bytes)| bytes);
                    }
                });
            }
        }
        found.into_iter().filter_map(|(id, bytes)| Some((id, bytes?))).collect()
    }
}

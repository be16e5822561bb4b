//! Keeps the log small: drops accesses that nothing can race with any more, and dependencies that none follows.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::memory::{AccessId, Cell, Pages, ReadSets};
use super::{Checker, State};

/// Accesses and pages that are known before those that nothing can race with any more are dropped.
const MAX_ACCESSES: usize = 1 << 14;

/// Accesses that are kept at most: if more may still race, all are forgotten.
const MAX_LIVE: usize = 1 << 20;

/// Dependencies that are kept until all accesses have followed them.
const MAX_EVENTS: usize = 1 << 18;

impl State {
    /// Drops accesses that nothing can race with any more, and the dependencies that none follows.
    pub(super) fn clean(&mut self, checker: &Checker) {
        let (accesses, pages) = self.clean_at;
        let few = self.accesses.len() < accesses.max(MAX_ACCESSES) && self.cells.len() < pages.max(MAX_ACCESSES);
        if few && self.events.len() < MAX_EVENTS {
            return;
        }
        self.host = None;
        self.unread.clear();
        let Self { events, orders, accesses, cells, sets, .. } = self;
        let pending = !self.submitted.is_empty();
        // Most accesses were superseded, and need not follow what came since.
        let mut last: HashSet<u32, FixedState> = HashSet::default();
        cells.all(|_, cell| {
            let ids = sets.get(cell.reads).iter().chain([&cell.write]).filter(|&&id| id != 0);
            last.extend(ids.map(|&id| accesses[id as usize - 1].order));
        });
        for order in last {
            let ordered = &mut orders[order as usize];
            ordered.order.follow(events, &ordered.extent);
        }
        // What is submitted already was perhaps submitted before the host knew of an access.
        let live = |id: AccessId| {
            let access = &accesses[id as usize - 1];
            pending || !orders[access.order as usize].order.is_settled()
        };
        let mut numbers: HashMap<AccessId, AccessId, FixedState> = HashMap::default();
        let mut kept = Vec::new();
        let mut number = |id: AccessId| {
            if id == 0 || !live(id) {
                return 0;
            }
            *numbers.entry(id).or_insert_with(|| {
                kept.push(accesses[id as usize - 1].clone());
                kept.len() as AccessId
            })
        };
        let mut new_sets = ReadSets::default();
        cells.change(|cell| {
            let reads: Vec<_> = sets.get(cell.reads).iter().map(|&id| number(id)).filter(|&id| id != 0).collect();
            Cell { write: number(cell.write), reads: new_sets.number(reads.into()) }
        });
        let mut order_numbers: HashMap<u32, u32, FixedState> = HashMap::default();
        let mut old: Vec<_> = std::mem::take(orders).into_iter().map(Some).collect();
        for access in &mut kept {
            let new = order_numbers.entry(access.order).or_insert_with(|| {
                orders.extend(old[access.order as usize].take());
                (orders.len() - 1) as u32
            });
            access.order = *new;
        }
        (*accesses, *sets) = (kept, new_sets);
        if accesses.len() > MAX_LIVE || cells.bytes() > checker.options.memory / 4 {
            checker.count(|counts| counts.commands_forgotten += accesses.len() as u64);
            (*cells, *sets) = (Pages::default(), ReadSets::default());
            accesses.clear();
            orders.clear();
        }
        self.clean_at = (2 * accesses.len(), 2 * cells.len());
        let first = orders.iter().map(|ordered| ordered.order.next()).min().unwrap_or(events.next());
        events.drop_before(first);
        self.signals.clean(events.first());
        self.awaited.retain(|signal| *signal >= first);
    }
}

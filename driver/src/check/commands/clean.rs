//! Keeps the log small: drops accesses that nothing can race with any more, and dependencies that none follows.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::memory::{AccessId, Cell, Pages};
use super::order::Order;
use super::sets::Sets;
use super::signalled::SignalUnion;
use super::{Checker, LogState, Ordered};

/// Accesses that are kept at most: if more may still race, those that only the host can race with are forgotten, and if
/// that is not enough, all.
const MAX_LIVE: usize = 1 << 20;

/// Dependencies that are kept until all accesses have followed them.
const MAX_EVENTS: usize = 1 << 18;

impl LogState {
    /// Drops accesses that nothing can race with any more, and the dependencies that none follows.
    pub(super) fn clean(&mut self, checker: &Checker) {
        let (accesses, pages) = self.clean_at;
        let enough = checker.options.log_accesses;
        let few = self.accesses.len() < accesses.max(enough) && self.cells.len() < pages.max(enough);
        if few && self.events.len() < MAX_EVENTS {
            return;
        }
        self.host = None;
        self.follow_all();
        let oldest = self.oldest();
        self.drop_accesses(|order| order.is_over(oldest));
        let is_full = |state: &Self| state.accesses.len() > MAX_LIVE || state.bytes() > checker.options.memory / 4;
        if is_full(self) {
            let known = self.accesses.len();
            self.drop_accesses(|order| order.precedes_submission(oldest));
            if is_full(self) {
                (self.cells, self.sets) = (Pages::default(), Sets::default());
                self.accesses.clear();
                self.orders.clear();
                self.unread.clear();
                self.reported.clear();
            }
            checker.count(|counts| counts.commands_forgotten += (known - self.accesses.len()) as u64);
        }
        self.clean_at = (2 * self.accesses.len(), 2 * self.cells.len());
        let first = self.orders.iter().map(|ordered| ordered.order.next()).min().unwrap_or(self.events.next());
        self.events.drop_before(first);
        // Keep signals that an access's order already includes.
        let mut held = SignalUnion::default();
        self.orders.iter().for_each(|ordered| ordered.order.add_signals(&mut held));
        self.signals.clean(first, &held);
        self.awaited.retain(|event| *event >= first);
    }

    /// The event that submitted the oldest batch that is not done: what the host knew before it comes before whatever
    /// runs from now on.
    pub(super) fn oldest(&self) -> u64 {
        self.submitted.values().copied().min().unwrap_or(self.events.next())
    }

    /// Bytes of host memory that the cells, accesses and orders occupy, about.
    fn bytes(&self) -> u64 {
        let orders: u64 = self.orders.iter().map(|ordered| ordered.order.bytes()).sum();
        // The accesses of a command follow each other.
        let commands = self.accesses.chunk_by(|a, b| Arc::ptr_eq(&a.command, &b.command));
        let of_commands: u64 = commands.map(|accesses| accesses[0].command.bytes()).sum();
        self.cells.bytes() + size_of_val(&*self.accesses) as u64 + of_commands + orders
    }

    /// Lets the last accesses of all memory follow the dependencies: most others were superseded, and need not.
    fn follow_all(&mut self) {
        let Self { events, orders, accesses, cells, sets, .. } = self;
        let mut last: HashSet<u32, FixedState> = HashSet::default();
        cells.all(|_, cell| {
            let ids = sets.get(cell.others).iter().chain([&cell.write]).filter(|&&id| id != 0);
            last.extend(ids.map(|&id| accesses[id as usize - 1].order));
        });
        for order in last {
            let ordered = &mut orders[order as usize];
            ordered.order.follow(events, &ordered.extent);
        }
    }

    /// Drops superseded accesses, and those that nothing races with.
    fn drop_accesses(&mut self, nothing_races_with: impl Fn(&Order) -> bool) {
        let oldest = self.oldest();
        let Self { orders, accesses, cells, sets, .. } = self;
        let live = |id: AccessId| !nothing_races_with(&orders[accesses[id as usize - 1].order as usize].order);
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
        let mut new_sets = Sets::default();
        cells.change(|cell| {
            let others: Vec<_> = sets.get(cell.others).iter().map(|&id| number(id)).filter(|&id| id != 0).collect();
            Cell { write: number(cell.write), others: new_sets.number(others.into()) }
        });
        self.reported = self.reported.iter().filter_map(|id| numbers.get(id).copied()).collect();
        self.unread = self.unread.iter().filter_map(|id| numbers.get(id).copied()).collect();
        // The events so far have been followed: what is left of many orders is the same.
        let mut order_numbers: HashMap<u32, u32, FixedState> = HashMap::default();
        let mut new_orders: HashMap<Order, u32, FixedState> = HashMap::default();
        let mut extents: Vec<Range<u64>> = Vec::new();
        for access in &mut kept {
            let new = order_numbers.entry(access.order).or_insert_with(|| {
                let Ordered { order, extent } = &orders[access.order as usize];
                let mut order = order.clone();
                order.forget(oldest);
                let next = new_orders.len() as u32;
                let new = *new_orders.entry(order).or_insert(next);
                match extents.get_mut(new as usize) {
                    Some(both) => *both = both.start.min(extent.start)..both.end.max(extent.end),
                    None => extents.push(extent.clone()),
                }
                new
            });
            access.order = *new;
        }
        let mut new_orders: Vec<_> = new_orders.into_iter().collect();
        new_orders.sort_unstable_by_key(|(_, number)| *number);
        *orders = new_orders.into_iter().zip(extents).map(|((order, _), extent)| Ordered { order, extent }).collect();
        (*accesses, *sets) = (kept, new_sets);
    }
}

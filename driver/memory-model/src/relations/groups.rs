//! Sets of events with something in common (thread, location, reference, scope instance): most relations that a trace
//! determines are rows of such sets, so that none needs to look at every pair of events.

use std::collections::BTreeMap;

use crate::event::{Agent, Scope, Trace};
use crate::relation::Relation;
use crate::row::Row;

/// The events in disjoint sets, by a key; events without a key are in none.
pub(super) struct Partition<R: Row> {
    /// For each event, the number of its set.
    of: Vec<Option<usize>>,
    sets: Vec<R>,
}

impl<R: Row> Partition<R> {
    /// The sets of the events below `n` with equal keys.
    pub(super) fn by<K: Ord>(n: usize, key: impl Fn(usize) -> Option<K>) -> Self {
        let mut numbers = BTreeMap::new();
        let mut sets: Vec<R> = Vec::new();
        let mut number = |event: usize| {
            let next = numbers.len();
            let number = *numbers.entry(key(event)?).or_insert(next);
            if number == sets.len() {
                sets.push(R::default());
            }
            sets[number].insert(event);
            Some(number)
        };
        let of = (0..n).map(&mut number).collect();
        Self { of, sets }
    }

    /// The set that contains `event`.
    pub(super) fn of(&self, event: usize) -> Option<&R> {
        self.of[event].map(|number| &self.sets[number])
    }

    /// Pairs of events in one set; reflexive.
    pub(super) fn relation(&self) -> Relation<R> {
        let mut relation: Relation<R> = Relation::new(self.of.len());
        for event in 0..self.of.len() {
            if let Some(set) = self.of(event) {
                relation.row_mut(event).clone_from(set);
            }
        }
        relation
    }
}

/// All scopes, narrow to wide.
const SCOPES: [Scope; 6] =
    [Scope::Invocation, Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device, Scope::CrossDevice];

/// For each scope, the events of each of its instances.
pub(super) struct Scopes<R: Row> {
    instances: [Partition<R>; 6],
}

impl<R: Row> Scopes<R> {
    pub(super) fn new(trace: &Trace) -> Self {
        // A host thread shares nothing with others but all devices, nor does an invocation share its own instance.
        let key = |event: usize, scope: Scope| match (trace.agent(event), scope) {
            (_, Scope::CrossDevice) => (0, 0),
            (Agent::Device { subgroup, .. }, Scope::Subgroup) => (1, subgroup as usize),
            (Agent::Device { workgroup, .. }, Scope::Workgroup) => (1, workgroup as usize),
            (Agent::Device { queue_family, .. }, Scope::QueueFamily) => (1, queue_family as usize),
            (Agent::Device { device, .. }, Scope::Device) => (1, device as usize),
            _ => (2, trace.events[event].thread),
        };
        Self { instances: SCOPES.map(|scope| Partition::by(trace.len(), |event| Some(key(event, scope)))) }
    }

    /// The instances of one scope.
    pub(super) fn of(&self, scope: Scope) -> &Partition<R> {
        &self.instances[scope as usize]
    }

    /// Pairs of events each of which is in the other's instance of the scope that `scope` gives it.
    pub(super) fn mutual(&self, n: usize, scope: impl Fn(usize) -> Option<Scope>) -> Relation<R> {
        let with = SCOPES.map(|wanted| R::of(n, |event| scope(event) == Some(wanted)));
        let mut relation = Relation::new(n);
        for event in 0..n {
            let Some(own) = scope(event).and_then(|scope| self.of(scope).of(event)) else { continue };
            let row: &mut R = relation.row_mut(event);
            for (groups, with) in self.instances.iter().zip(&with) {
                if let Some(set) = groups.of(event).filter(|_| !with.is_empty()) {
                    row.add(&set.and(with));
                }
            }
            row.keep(own);
        }
        relation
    }
}

/// For each event, the events above it in each set of `groups`: an order of the sets.
pub(super) fn ascending<R: Row>(groups: &Partition<R>) -> Relation<R> {
    let n = groups.of.len();
    let mut relation: Relation<R> = Relation::new(n);
    let mut above = vec![R::default(); groups.sets.len()];
    for event in (0..n).rev() {
        if let Some(number) = groups.of[event] {
            relation.row_mut(event).clone_from(&above[number]);
            above[number].insert(event);
        }
    }
    relation
}

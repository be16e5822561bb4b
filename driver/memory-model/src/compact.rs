//! Removes control barriers that only repeat the one before, so that a recording of a loop fits a slice.
//!
//! A slice keeps two agents and what their reads depend on, but all their barriers: in a loop with few kept accesses,
//! one barrier follows another in every thread. Let J be an instance of a control barrier, each event of which directly
//! follows an event of the instance I in its thread, with the same operation; and let both have the same threads. Then
//! J orders, makes available and makes visible nothing that I does not: replacing J's events by I's maps every relation
//! of the model into itself, since no event lies between the two, and the agents that meet, and are in each other's
//! scopes, are the same. So the remaining events have the same relations without J (`tests/compact.rs`).

use std::collections::{BTreeMap, HashSet};

use crate::event::Trace;
use crate::relations::Source;

/// A trace without repeated barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compact {
    /// The trace.
    pub trace: Trace,
    /// The number that each of its events had, in ascending order.
    pub events: Vec<usize>,
}

impl Compact {
    /// The new number of an event; `None` for a barrier that was removed.
    pub fn event(&self, old: usize) -> Option<usize> {
        self.events.binary_search(&old).ok()
    }

    /// The sources of the remaining events, with their new numbers.
    pub fn sources(&self, sources: &[Option<Source>]) -> Vec<Option<Source>> {
        let renumber = |source: Source| match source {
            Source::Initial => Some(Source::Initial),
            Source::Write(write) => self.event(write).map(Source::Write),
        };
        self.events.iter().map(|&old| sources.get(old).copied().flatten().and_then(renumber)).collect()
    }

    /// Pairs of events, with their new numbers.
    pub fn pairs(&self, pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
        pairs.iter().filter_map(|&(a, b)| self.event(a).zip(self.event(b))).collect()
    }
}

/// The trace without the control barriers that repeat the one before. Its other events have the same races.
pub fn compact(trace: &Trace) -> Compact {
    let n = trace.len();
    // The event before each, in its thread.
    let mut last = BTreeMap::new();
    let before: Vec<_> = (0..n).map(|event| last.insert(trace.events[event].thread, event)).collect();
    let mut instances: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (event, executed) in trace.events.iter().enumerate() {
        if let Some(instance) = executed.instance {
            instances.entry(instance).or_default().push(event);
        }
    }
    let system: HashSet<_> = trace.system.iter().copied().collect();
    let mut has_edges: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for &(a, b) in &trace.system {
        has_edges.entry(a).or_default().push((a, b));
        has_edges.entry(b).or_default().push((a, b));
    }
    // Whether all edges of `event` are also edges of `earlier`.
    let as_ordered = |event: usize, earlier: usize| {
        has_edges.get(&event).is_none_or(|edges| {
            edges.iter().all(|&(a, b)| system.contains(&if a == event { (earlier, b) } else { (a, earlier) }))
        })
    };
    let repeats = |event: usize, earlier: usize| {
        let (one, other) = (&trace.events[event], &trace.events[earlier]);
        one.operation.control_barrier()
            && one.operation == other.operation
            && one.site == other.site
            && as_ordered(event, earlier)
    };
    let mut removed = vec![false; n];
    for members in instances.values() {
        let previous: Option<Vec<usize>> = members.iter().map(|&event| before[event]).collect();
        let Some(previous) = previous else { continue };
        let instance = trace.events[previous[0]].instance;
        let all = instance.and_then(|instance| instances.get(&instance)).map_or(0, Vec::len);
        let is_one = previous.iter().all(|&event| trace.events[event].instance == instance) && all == previous.len();
        if is_one && members.iter().zip(&previous).all(|(&event, &earlier)| repeats(event, earlier)) {
            members.iter().for_each(|&event| removed[event] = true);
        }
    }
    let events: Vec<_> = (0..n).filter(|&event| !removed[event]).collect();
    let mut compact = Compact { trace: Trace { events: Vec::new(), ..trace.clone() }, events };
    compact.trace.events = compact.events.iter().map(|&old| trace.events[old].clone()).collect();
    compact.trace.system = compact.pairs(&trace.system);
    compact
}

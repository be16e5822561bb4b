//! Applies edits to a trace, with the reads-from that was recorded.
//!
//! 1. A control barrier between sites A and B is executed by every thread of a workgroup after each run of As and
//!    before the Bs that follow; the n-th arrivals of the threads of a workgroup are one instance. So it is assumed
//!    that the slice holds the As and Bs of the same iterations for all of its threads, and that the barrier is in
//!    uniform control flow. A barrier that would cross another one of the trace is no repair.
//! 2. An inserted event inherits system-synchronizes-with from its neighbours in program order.
//! 3. A dependency between commands is a thread of its own with operations of the API, after all events of the one
//!    command and before all of the other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Dependency, Memory, TraceEdit};
use crate::event::{Action, Agent, Command, Domain, Event, Operation, Scope, Site, Stage, Trace};
use crate::relation::Relation;
use crate::relations::{Choice, Frame, Source};
use crate::repair::Edit;
use crate::repair::edit::barrier;
use crate::row::Row;

/// A trace with edits.
pub(super) struct Edited {
    pub(super) trace: Trace,
    /// The sources, and the pairs of the modification orders.
    pub(super) sources: Vec<Option<Source>>,
    orders: Vec<(usize, usize)>,
    /// The number of each event of the trace without the edits.
    pub(super) events: Vec<usize>,
}

/// The trace with `edits`.
pub(super) fn apply(trace: &Trace, choice: &Choice<u128>, edits: &BTreeSet<TraceEdit>) -> Edited {
    let code = || {
        edits.iter().filter_map(|edit| match edit {
            TraceEdit::Code(edit) => Some(edit),
            TraceEdit::Api(_) => None,
        })
    };
    let mut edited = Edited {
        trace: trace.clone(),
        sources: choice.sources.clone(),
        orders: choice.modification_order.iter().collect(),
        events: (0..trace.len()).collect(),
    };
    for edit in Edit::in_order(code().collect::<Vec<_>>().into_iter()) {
        edited.change(edit);
    }
    let mut inserted = Vec::new();
    for edit in code() {
        if let Edit::Barrier(after, before, class) = *edit {
            inserted
                .extend(barriers(trace, (after, before), inserted.len()).into_iter().map(|at| (at, barrier(class))));
        }
    }
    edited.insert(inserted);
    for edit in edits {
        if let TraceEdit::Api(dependency) = edit {
            edited.depend(*dependency);
        }
    }
    edited
}

/// A place for a new event: before the event of this number, in a thread; and the instance of a barrier there.
struct Gap {
    before: usize,
    thread: usize,
    instance: u32,
}

/// The places of a control barrier between two sites. `offset` distinguishes the instances of several edits.
fn barriers(trace: &Trace, (after, before): (Site, Site), offset: usize) -> Vec<Gap> {
    let used: BTreeSet<_> = trace.events.iter().filter_map(|event| event.instance).collect();
    // One number for each workgroup and arrival; there are at most as many as events.
    let mut free = (0..u32::MAX).rev().filter(|number| !used.contains(number)).skip(offset);
    let mut instances = BTreeMap::new();
    let mut gaps = Vec::new();
    for (thread, agent) in trace.agents.iter().enumerate() {
        let Agent::Device { workgroup, .. } = *agent else { continue };
        let mut arrivals = 0;
        let mut arrive = |before: usize| {
            let instance = *instances.entry((workgroup, arrivals)).or_insert_with(|| free.next().unwrap_or_default());
            arrivals += 1;
            gaps.push(Gap { before, thread, instance });
        };
        // The last A after which no barrier has come yet, and whether the last of both was a B.
        let (mut open, mut passed) = (None, false);
        for (at, event) in trace.events.iter().enumerate().filter(|(_, event)| event.thread == thread) {
            if event.site == Some(after) {
                if let Some(open) = open.filter(|_| after == before) {
                    arrive(open);
                }
                (open, passed) = (Some(at + 1), false);
            } else if event.site == Some(before) {
                if !passed {
                    arrive(open.unwrap_or(at));
                }
                (open, passed) = (None, true);
            }
        }
        if let Some(open) = open {
            arrive(open);
        }
    }
    gaps
}

impl Edited {
    fn change(&mut self, edit: &Edit<Site>) {
        let (one, other) = edit.places();
        if matches!(edit, Edit::Barrier(..)) {
            return;
        }
        for event in &mut self.trace.events {
            if event.site == Some(one) || other.is_some() && event.site == other {
                edit.change(&mut event.operation);
            }
        }
    }

    fn insert(&mut self, mut inserted: Vec<(Gap, Operation)>) {
        if inserted.is_empty() {
            return;
        }
        inserted.sort_by_key(|(gap, _)| gap.before);
        let old = std::mem::take(&mut self.trace.events);
        let neighbours: Vec<_> = inserted
            .iter()
            .map(|(gap, _)| {
                let own = |event: &usize| old[*event].thread == gap.thread;
                ((0..gap.before).rev().find(own), (gap.before..old.len()).find(own))
            })
            .collect();
        let mut next = inserted.into_iter().zip(neighbours).peekable();
        let mut system = Vec::new();
        let mut numbers = Vec::new();
        let mut place = |before: usize, events: &mut Vec<Event>| {
            while let Some(((gap, operation), (left, right))) = next.next_if(|((gap, _), _)| gap.before == before) {
                system.push((events.len(), left, right));
                let instance = Some(gap.instance);
                events.push(Event { instance, ..Event::new(gap.thread, operation) });
            }
        };
        let n = old.len();
        for (event, executed) in old.into_iter().enumerate() {
            place(event, &mut self.trace.events);
            numbers.push(self.trace.events.len());
            self.trace.events.push(executed);
        }
        place(n, &mut self.trace.events);
        let mut edges = Vec::new();
        for (new, left, right) in system {
            let before = self.trace.system.iter().filter(|edge| Some(edge.1) == left);
            edges.extend(before.map(|edge| (numbers[edge.0], new)));
            let after = self.trace.system.iter().filter(|edge| Some(edge.0) == right);
            edges.extend(after.map(|edge| (new, numbers[edge.1])));
        }
        let renumber = |pair: &mut (usize, usize)| *pair = (numbers[pair.0], numbers[pair.1]);
        self.trace.system.iter_mut().for_each(renumber);
        self.trace.system.extend(edges);
        self.orders.iter_mut().for_each(renumber);
        let mut sources = vec![None; self.trace.len()];
        for (event, source) in self.sources.iter().enumerate() {
            sources[numbers[event]] = source.map(|source| match source {
                Source::Initial => Source::Initial,
                Source::Write(write) => Source::Write(numbers[write]),
            });
        }
        self.sources = sources;
        self.events.iter_mut().for_each(|event| *event = numbers[*event]);
    }

    /// Adds the operations and edges of a dependency.
    fn depend(&mut self, dependency: Dependency) {
        let of = |trace: &Trace, command: Command| {
            (0..trace.len()).filter(|&event| trace.command(event) == Some(command)).collect::<Vec<_>>()
        };
        let [from, to] = [dependency.from, dependency.to].map(|command| of(&self.trace, command));
        let domain = |command: Command| if command.stage == Stage::Host { Domain::Host } else { Domain::Device };
        let (source, destination) = (domain(dependency.from), domain(dependency.to));
        let mut actions = Vec::new();
        if dependency.memory != Memory::Execution {
            actions.push(Action::Available(source));
            if source != destination {
                actions.push(Action::Transfer { from: source, to: destination });
            }
        }
        if dependency.memory == Memory::Visible {
            actions.push(Action::Visible(destination));
        }
        let agent = |events: &[usize]| events.first().map(|&event| self.trace.agent(event));
        let (Some(first), Some(last)) = (agent(&from), agent(&to)) else { return };
        let thread = self.trace.agents.len();
        // Its subgroup and workgroup have no other members.
        let (subgroup, workgroup) = (u32::MAX - thread as u32, u32::MAX - thread as u32);
        let own = [first, last].into_iter().find_map(|agent| match agent {
            Agent::Device { queue_family, device, .. } => {
                Some(Agent::Device { subgroup, workgroup, queue_family, device })
            }
            Agent::Host => None,
        });
        self.trace.agents.push(own.unwrap_or(Agent::Host));
        if !self.trace.commands.is_empty() {
            // A command of its own.
            let number = self.trace.commands.iter().map(|command| command.number).max().map_or(0, |last| last + 1);
            self.trace.commands.push(Command { number, stage: Stage::Transfer });
        }
        let start = self.trace.len();
        for action in actions {
            self.trace.events.push(Event::new(thread, Operation::new(action)));
            self.sources.push(None);
        }
        let new = start..self.trace.len();
        let edges = new.clone().flat_map(|new| {
            let before = from.iter().map(move |&event| (event, new));
            before.chain(to.iter().map(move |&event| (new, event)))
        });
        let across = from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b)));
        let edges: Vec<_> = edges.chain(across).collect();
        self.trace.system.extend(edges);
    }

    /// The choice: reads-from without that of the `open` events (numbers of the trace without edits), and modification
    /// orders that also order the writes which only the edits make mutually ordered: as happens-before does, or else by
    /// their numbers. `None` if there is no such order.
    pub(super) fn choice(&self, frame: &Frame<u128>, open: &u128) -> Option<Choice<u128>> {
        let mut sources = self.sources.clone();
        open.iter().for_each(|event| sources[self.events[event]] = None);
        let writes = frame.sets.writes;
        let mutual = frame.mutual.clone().from(&writes).to(&writes);
        let mut recorded = Relation::new(frame.n);
        self.orders.iter().for_each(|&(a, b)| recorded.insert(a, b));
        let is_complete = |order: &Relation<u128>| mutual.iter().all(|(a, b)| order.either(a, b));
        if !is_complete(&recorded) {
            let recorded_choice = Choice { sources: sources.clone(), modification_order: recorded.clone() };
            let before = frame.order(&recorded_choice).happens_before.and(&mutual);
            let before = recorded.clone().or(&before).closed();
            // A recorded order that happens-before contradicts is kept: the axioms reject it.
            let mut order = if before.closed_is_acyclic() { before } else { recorded };
            for (a, b) in mutual.iter().filter(|(a, b)| a < b) {
                if !order.either(a, b) {
                    order.insert(a, b);
                    order = order.closed();
                }
            }
            recorded = order;
        }
        let fits = recorded.is_within(&mutual) && recorded.closed_is_acyclic();
        fits.then_some(Choice { sources, modification_order: recorded })
    }
}

/// Whether two threads of the events' agents can meet at a control barrier.
pub(super) fn in_one_workgroup(trace: &Trace, a: usize, b: usize) -> bool {
    !trace.same_agent(a, b) && trace.shares(a, b, Scope::Workgroup)
}

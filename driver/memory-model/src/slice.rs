//! A slice of a run: a trace with the reads-from that was seen, as a race detector records it to confirm a race.
//!
//! Nothing is searched: all relations follow from the trace and the choice. So a slice of a hundred events is decided
//! in less than a millisecond (`benches/traces.rs`), with rows of 128 bits. A longer trace is an error; a [`Frame`]
//! with [`SparseRow`](crate::row::SparseRow) decides those, more slowly.
//!
//! ```
//! use spelter_memory_model::event::{Access, Action, Agent, Class, Event, Location, Operation, Site, Trace};
//! use spelter_memory_model::names::Numbers;
//! use spelter_memory_model::relations::{Choice, Source};
//! use spelter_memory_model::repair::{self, TraceEffort};
//! use spelter_memory_model::slice::{Slice, TraceError};
//! use spelter_memory_model::{Model, explain};
//!
//! // Two invocations of a workgroup: one writes a word of workgroup memory, the other reads it.
//! let access = |writes: bool| Access {
//!     reads: !writes,
//!     writes,
//!     atomic: false,
//!     non_private: true,
//!     available: false,
//!     visible: false,
//!     class: Class::Workgroup,
//!     reference: 0,
//!     location: Location { object: 0, bytes: 0..4 },
//! };
//! let event = |thread: usize, writes| {
//!     let operation = Operation::new(Action::Access(access(writes)));
//!     Event { site: Some(Site(thread as u32)), ..Event::new(thread, operation) }
//! };
//! let agents = [0, 1].map(|subgroup| Agent::Device { subgroup, workgroup: 0, queue_family: 0, device: 0 });
//! let events = vec![event(0, true), event(1, false)];
//! let trace = Trace { agents: agents.to_vec(), events, ..Trace::default() };
//! let choice = Choice::recorded(vec![None, Some(Source::Write(0))], &[])?;
//!
//! assert!(Slice::new(&trace, &choice, Model::SPEC)?.is_race(0, 1));
//! let (pair, names) = ((0, 1), Numbers(&trace));
//! let explanation = explain::of_trace(&trace, &choice, pair, Model::SPEC, &names)?;
//! assert_eq!(explanation.cause().unwrap().because, "nothing that T1:1 waits for or reads follows T0:1");
//! let found = repair::of_trace(&trace, &choice, pair, Model::SPEC, TraceEffort::default())?;
//! let barrier = "a control barrier for WorkgroupMemory after site 0 and before site 1";
//! assert_eq!(found.repairs[0][0].text(&trace, pair, &names), barrier);
//! # Ok::<(), TraceError>(())
//! ```

use crate::axioms::{Violation, violation};
use crate::event::Trace;
use crate::model::Model;
use crate::relation::Relation;
use crate::relations::{Choice, Frame, Order, Source, conflicts, races};
use crate::row::Row;
use crate::wellformed::defects;

/// Why a trace is no slice of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// It has too many events.
    #[error("the trace is too large: it has {events} events, and the bound is {bound}")]
    TooLarge {
        /// Their number.
        events: usize,
        /// The maximum.
        bound: usize,
    },
    /// A list has not one element for each event or thread.
    #[error("the trace has {wanted} {of}, but {found} {what}")]
    Length {
        /// What the list is for: events or threads.
        of: &'static str,
        /// What is listed.
        what: &'static str,
        /// Number of elements that it must have.
        wanted: usize,
        /// Number of elements that it has.
        found: usize,
    },
    /// An event, or what is said of it, breaks a rule.
    #[error("event {event}: {rule}")]
    Event {
        /// The event, or the number that is none.
        event: usize,
        /// The rule.
        rule: &'static str,
    },
    /// The two events of a question are no pair of different accesses of a common location, one of them a write.
    #[error("events {0} and {1} do not conflict: a race is of two accesses of common bytes, one of them a write")]
    NoConflict(usize, usize),
}

impl Choice<u128> {
    /// A choice for `sources.len()` events, with modification orders as pairs; these are closed transitively.
    ///
    /// # Errors
    ///
    /// If there are more than 128 events, or if a pair names none of them.
    pub fn recorded(sources: Vec<Option<Source>>, modification_order: &[(usize, usize)]) -> Result<Self, TraceError> {
        let n = sources.len();
        fits(n)?;
        let mut order = Relation::new(n);
        for &(a, b) in modification_order {
            exists(n, a)?;
            exists(n, b)?;
            order.insert(a, b);
        }
        Ok(Self { sources, modification_order: order.closed() })
    }
}

fn fits(events: usize) -> Result<(), TraceError> {
    let bound = u128::LIMIT;
    if events > bound { Err(TraceError::TooLarge { events, bound }) } else { Ok(()) }
}

fn exists(n: usize, event: usize) -> Result<(), TraceError> {
    if event < n { Ok(()) } else { Err(TraceError::Event { event, rule: "there is no event with this number" }) }
}

/// A trace with all relations derived from it.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The relations that it determines.
    pub frame: Frame<u128>,
    /// Reads-from and modification orders.
    pub choice: Choice<u128>,
    /// The relations that both determine.
    pub order: Order<u128>,
}

impl<'a> Slice<'a> {
    /// The relations of a trace of at most 128 events. `choice` gives each read the write that it read from (none, if
    /// that does not matter), and orders all mutually ordered writes.
    ///
    /// # Errors
    ///
    /// If there are too many events, if a number names none, or if the trace or the choice breaks a rule of the model.
    pub fn new(trace: &'a Trace, choice: &Choice<u128>, model: Model) -> Result<Self, TraceError> {
        fits(trace.len())?;
        check_numbers(trace, choice)?;
        if let Some(defect) = defects(trace).first() {
            return Err(TraceError::Event { event: defect.event, rule: defect.rule });
        }
        let frame = Frame::new(trace, model);
        check_choice(&frame, choice)?;
        Ok(Self::derived(trace, frame, choice.clone()))
    }

    /// The relations of a trace and a choice that are known to be right.
    pub(crate) fn derived(trace: &'a Trace, frame: Frame<u128>, choice: Choice<u128>) -> Self {
        let order = frame.order(&choice);
        Self { trace, frame, choice, order }
    }

    /// Whether two events are accesses of common bytes, one of them a write ("Data Race"): then they race, are ordered
    /// by location order, or are mutually ordered atomics.
    pub fn conflicts(&self, a: usize, b: usize) -> bool {
        let writes = |event: usize| self.frame.sets.writes.contains(event);
        a != b && a.max(b) < self.frame.n && self.frame.same_location.contains(a, b) && (writes(a) || writes(b))
    }

    /// Whether two events race ("Data Race").
    pub fn is_race(&self, a: usize, b: usize) -> bool {
        self.conflicts(a, b) && !self.frame.mutual.contains(a, b) && !self.order.location_order.either(a, b)
    }

    /// All races, the lower event first.
    pub fn races(&self) -> Relation<u128> {
        races(&conflicts(&self.frame), &self.order.location_order)
    }

    /// The axiom that the recorded reads-from violates ("Scoped Modification Order Coherence" and those of
    /// visible-to). An execution of a correct implementation violates none, so the recording is wrong.
    pub fn violation(&self) -> Option<Violation> {
        violation(&self.frame, &self.choice, &self.order)
    }

    /// The pair, if it conflicts.
    pub(crate) fn pair(&self, (a, b): (usize, usize)) -> Result<(usize, usize), TraceError> {
        exists(self.frame.n, a)?;
        exists(self.frame.n, b)?;
        if self.conflicts(a, b) { Ok((a, b)) } else { Err(TraceError::NoConflict(a, b)) }
    }
}

/// Fails if a number names no thread or event.
fn check_numbers(trace: &Trace, choice: &Choice<u128>) -> Result<(), TraceError> {
    let (n, threads) = (trace.len(), trace.agents.len());
    let length = |of, what, wanted, found| {
        if found == wanted { Ok(()) } else { Err(TraceError::Length { of, what, wanted, found }) }
    };
    length("events", "sources", n, choice.sources.len())?;
    length("events", "rows of modification orders", n, choice.modification_order.events())?;
    if !trace.commands.is_empty() {
        length("threads", "commands", threads, trace.commands.len())?;
    }
    if let Some(event) = trace.events.iter().position(|event| event.thread >= threads) {
        return Err(TraceError::Event { event, rule: "its thread has no agent" });
    }
    for (a, b) in trace.system.iter().copied().chain(choice.modification_order.iter()) {
        exists(n, a)?;
        exists(n, b)?;
    }
    choice.sources.iter().try_for_each(|source| match source {
        Some(Source::Write(write)) => exists(n, *write),
        _ => Ok(()),
    })
}

/// Fails if a source writes nothing that its read reads, or if a modification order is none.
fn check_choice(frame: &Frame<u128>, choice: &Choice<u128>) -> Result<(), TraceError> {
    let wrong = |event: usize, rule| Err(TraceError::Event { event, rule });
    for (read, source) in choice.sources.iter().enumerate().filter(|(_, source)| source.is_some()) {
        if !frame.sets.reads.contains(read) {
            return wrong(read, "only a read has a source");
        }
        if let Some(Source::Write(write)) = *source
            && (!frame.sets.writes.contains(write) || !frame.same_location.contains(write, read) || write == read)
        {
            return wrong(read, "its source writes none of its bytes");
        }
    }
    let order = &choice.modification_order;
    let writes = frame.sets.writes;
    let mutual = frame.mutual.clone().from(&writes).to(&writes);
    if let Some((event, _)) = order.clone().minus(&mutual).iter().next() {
        return wrong(event, "a modification order is one of mutually ordered atomic writes");
    }
    if let Some((event, _)) = order.iter().find(|&(a, b)| order.contains(b, a)) {
        return wrong(event, "a modification order has no cycle");
    }
    if let Some((event, _)) = order.then(order).minus(order).iter().next() {
        return wrong(event, "a modification order is transitive");
    }
    if let Some((event, _)) = mutual.iter().find(|&(a, b)| !order.either(a, b)) {
        return wrong(event, "two writes that are mutually ordered are in a modification order");
    }
    Ok(())
}

//! The search for all consistent executions of an instance.
//!
//! 1. Orient the scoped modification orders, pair by pair (`orient`).
//! 2. Give one read after the other a source, and test the axioms on the partial execution.
//!
//! Synchronizes-with grows monotonically with reads-from, happens-before with synchronizes-with, location order and
//! from-reads with happens-before: with fixed modification orders, a partial execution that violates an axiom still
//! violates it when more reads are decided. So pruning is sound. `brute` decides everything first and tests the axioms
//! last; the tests compare the two.
//!
//! A step is cheap because a new source rarely changes happens-before: only if its read serves an acquire. Otherwise
//! the step adds a row to a transitively closed relation and tests for a cycle.

mod brute;
mod orient;
mod values;

pub use brute::{Candidates, Signature, brute_force, brute_force_values};

use std::ops::ControlFlow;

use crate::axioms::{hidden, precedence, violation};
use crate::model::{Coherence, Model};
use crate::program::{Instance, TooLarge};
use crate::relation::Relation;
use crate::relations::{
    Choice, Frame, Order, Source, conflicts, from_reads, overlap_in_part, races, release_sequences, shadowed,
};
use crate::row::Row;
use crate::wellformed;

pub use values::Values;

/// Bounds on the cost of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of events of an instance, at most 128.
    pub events: usize,
    /// Maximum number of steps: sources given to reads, and modification orders.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events: 128, steps: 50_000_000 }
    }
}

/// An execution that was found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// For each event that reads, its source.
    pub sources: &'a [Option<Source>],
    /// The scoped modification orders, as pairs.
    pub modification_order: &'a [(usize, usize)],
    /// The races, the lower event first.
    pub races: &'a [(usize, usize)],
    /// Number of pairs in the release sequences of releases, including each head with itself.
    pub release_sequences: usize,
    /// The values that events read and write.
    pub values: &'a Values,
    /// For each write, whether another follows it in modification or location order: the others are the final values.
    pub overwritten: &'a [bool],
}

/// Statistics of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Modification orders, and sources given to reads, including inconsistent ones.
    pub steps: u64,
    /// Executions found.
    pub executions: u64,
    /// Number of values that were tried for a read that depends on itself, if other values may be possible, too: then
    /// there may be further executions. 0 if there are none.
    pub guessed: u64,
}

/// Calls `visit` with every consistent execution of `instance`, until it breaks.
///
/// # Errors
///
/// If the instance has too many events, if accesses overlap in part (then a read may have several sources), or if the
/// search takes too many steps.
pub fn search(
    instance: &Instance,
    model: Model,
    limits: Limits,
    visit: &mut dyn FnMut(&Found<'_>) -> ControlFlow<()>,
) -> Result<Statistics, TooLarge> {
    resume(instance, model, limits, Statistics::default(), visit)
}

/// As [`search`], with the steps `so_far` of other instances counted against the same limits.
pub(crate) fn resume(
    instance: &Instance,
    model: Model,
    limits: Limits,
    so_far: Statistics,
    visit: &mut dyn FnMut(&Found<'_>) -> ControlFlow<()>,
) -> Result<Statistics, TooLarge> {
    let events = instance.trace.len();
    let bound = limits.events.min(u128::LIMIT);
    match events {
        _ if events > bound => Err(TooLarge::new(format!("an execution has {events} events"), bound as u64)),
        _ if overlap_in_part(&instance.trace) => Err(overlaps()),
        0..=16 => Search::<u16>::run(instance, model, limits, so_far, visit),
        17..=64 => Search::<u64>::run(instance, model, limits, so_far, visit),
        _ => Search::<u128>::run(instance, model, limits, so_far, visit),
    }
}

/// Derived relations at a point of the search, shared by all points with the same happens-before.
struct Known<R: Row> {
    order: Order<R>,
    /// Pairs of a write and an access from which a later write hides it.
    shadowed: Relation<R>,
    races: Vec<(usize, usize)>,
}

struct Search<'a, R: Row> {
    instance: &'a Instance,
    frame: Frame<R>,
    conflicts: Relation<R>,
    /// The reads in the order in which they get sources.
    reads: Vec<usize>,
    /// The candidate sources of each.
    candidates: Vec<Vec<Source>>,
    /// Whether steps may be computed incrementally, which readings with other axioms do not allow.
    incremental: bool,
    choice: Choice<R>,
    sequences: Relation<R>,
    orders: Vec<(usize, usize)>,
    sequence_pairs: usize,
    limits: Limits,
    statistics: Statistics,
    visit: &'a mut dyn FnMut(&Found<'_>) -> ControlFlow<()>,
}

/// Why a search ends early.
enum Stop {
    Visitor,
    Bound(TooLarge),
}

impl<'a, R: Row> Search<'a, R> {
    fn run(
        instance: &'a Instance,
        model: Model,
        limits: Limits,
        so_far: Statistics,
        visit: &'a mut dyn FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> Result<Statistics, TooLarge> {
        if !wellformed::defects(&instance.trace).is_empty() {
            return Ok(so_far);
        }
        let frame = Frame::<R>::new(&instance.trace, model);
        let Some((reads, candidates)) = candidates(instance, &frame) else { return Ok(so_far) };
        let n = frame.n;
        let mut search = Search {
            instance,
            conflicts: conflicts(&frame),
            reads,
            candidates,
            incremental: model.coherence == Coherence::Acyclic && !model.scoped_order_is_location_order,
            choice: Choice { sources: vec![None; n], modification_order: Relation::new(n) },
            sequences: Relation::new(n),
            orders: Vec::new(),
            sequence_pairs: 0,
            limits,
            statistics: so_far,
            visit,
            frame,
        };
        let undecided = search.frame.order(&search.choice);
        let forced = search.incremental.then_some(undecided.location_order);
        let orders = orient::Orders::new(&search.frame, forced, limits.steps);
        let mut stop = None;
        orders.each(&mut |order| match search.with_order(order) {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => {
                stop = Some(why);
                ControlFlow::Break(())
            }
        });
        match stop {
            Some(Stop::Bound(bound)) => Err(bound),
            None if orders.is_exhausted() => Err(too_many_steps(limits)),
            _ => Ok(search.statistics),
        }
    }

    fn know(&self, order: Order<R>) -> Known<R> {
        Known {
            shadowed: shadowed(&self.frame, &order.location_order),
            races: races(&self.conflicts, &order.location_order).iter().collect(),
            order,
        }
    }

    /// The relation that must be acyclic. There is one layer.
    fn precedence(&self, order: &Order<R>) -> Relation<R> {
        precedence(&self.frame, &self.frame.layers[0], &self.choice, &order.location_order)
    }

    fn count_step(&mut self) -> Result<(), Stop> {
        self.statistics.steps += 1;
        if self.statistics.steps > self.limits.steps { Err(Stop::Bound(too_many_steps(self.limits))) } else { Ok(()) }
    }

    /// Searches under one orientation of the modification orders.
    fn with_order(&mut self, order: &Relation<R>) -> Result<(), Stop> {
        self.count_step()?;
        self.choice.modification_order = order.clone();
        self.sequences = release_sequences(&self.frame, order);
        self.orders = order.iter().collect();
        let heads = self.frame.sets.releases.and(&self.frame.sets.atomics);
        self.sequence_pairs = self.sequences.clone().from(&heads).len();
        let known = self.know(self.frame.order(&self.choice));
        if violation(&self.frame, &self.choice, &known.order).is_some() {
            return Ok(());
        }
        let before = self.precedence(&known.order).closed();
        self.decide(0, &known, &before)
    }

    /// Gives sources to the `at`-th read and all later ones.
    fn decide(&mut self, at: usize, known: &Known<R>, before: &Relation<R>) -> Result<(), Stop> {
        let Some(&read) = self.reads.get(at) else { return self.found(known) };
        for candidate in 0..self.candidates[at].len() {
            let source = self.candidates[at][candidate];
            self.count_step()?;
            self.choice.sources[read] = Some(source);
            let result = if !self.constraints_may_hold() {
                Ok(())
            } else if self.incremental {
                self.step(at, read, source, known, before)
            } else {
                self.whole_step(at, before)
            };
            self.choice.sources[read] = None;
            result?;
        }
        Ok(())
    }

    /// Tests the axioms on everything that is decided, without incremental state: the readings that need this do not
    /// use `before`.
    fn whole_step(&mut self, at: usize, before: &Relation<R>) -> Result<(), Stop> {
        let known = self.know(self.frame.order(&self.choice));
        match violation(&self.frame, &self.choice, &known.order) {
            Some(_) => Ok(()),
            None => self.decide(at + 1, &known, before),
        }
    }

    fn step(
        &mut self,
        at: usize,
        read: usize,
        source: Source,
        known: &Known<R>,
        before: &Relation<R>,
    ) -> Result<(), Stop> {
        if let Source::Write(write) = source {
            let edges = self.frame.synchronized_by(&self.sequences, write, read);
            // The orders depend on synchronizes-with: without a new edge all that is known stays.
            if !edges.is_within(&known.order.synchronizes_with) {
                let order = self.frame.order_after(known.order.synchronizes_with.clone().or(&edges));
                let before = self.precedence(&order).closed();
                if !before.closed_is_acyclic() {
                    return Ok(());
                }
                let known = self.know(order);
                if hidden(&self.frame, &self.choice, &known.shadowed).is_some() {
                    return Ok(());
                }
                return self.decide(at + 1, &known, &before);
            }
            if known.shadowed.contains(write, read) && !self.frame.sets.atomics.contains(read) {
                return Ok(());
            }
        }
        let mut before = before.clone();
        if let Source::Write(write) = source {
            let mut target = R::default();
            target.insert(read);
            if !precede(&mut before, write, &target) {
                return Ok(());
            }
        }
        let order = &self.choice.modification_order;
        let later = from_reads(&self.frame, &self.frame.layers[0], &known.order.location_order, order, read, source);
        if !precede(&mut before, read, &later) {
            return Ok(());
        }
        self.decide(at + 1, known, &before)
    }

    /// Whether no constraint of the path is known to be violated.
    fn constraints_may_hold(&self) -> bool {
        self.instance.constraints.is_empty() || values::constraints_may_hold(self.instance, &self.choice.sources)
    }

    fn found(&mut self, known: &Known<R>) -> Result<(), Stop> {
        let writes = &self.frame.sets.writes;
        let is_overwritten = |write: usize| {
            known.order.location_order.row(write).meets(writes)
                || self.choice.modification_order.row(write).meets(writes)
        };
        let overwritten: Vec<_> =
            (0..self.frame.n).map(|event| writes.contains(event) && is_overwritten(event)).collect();
        let solved = values::solve(self.instance, &self.choice.sources).map_err(Stop::Bound)?;
        self.statistics.guessed = self.statistics.guessed.max(solved.open);
        for values in solved.solutions {
            self.statistics.executions += 1;
            let found = Found {
                sources: &self.choice.sources,
                modification_order: &self.orders,
                races: &known.races,
                release_sequences: self.sequence_pairs,
                values: &values,
                overwritten: &overwritten,
            };
            if (self.visit)(&found).is_break() {
                return Err(Stop::Visitor);
            }
        }
        Ok(())
    }
}

/// The search gives each read one source, so it cannot have accesses that overlap in part. Texts have none.
fn overlaps() -> TooLarge {
    TooLarge::new("accesses overlap in part", 0)
}

fn too_many_steps(limits: Limits) -> TooLarge {
    TooLarge::steps("the search takes too many steps", limits.steps)
}

/// Adds `a → b` for each `b` of `targets` to a transitively closed relation and closes it again; `false` if that makes
/// a cycle.
fn precede<R: Row>(closed: &mut Relation<R>, a: usize, targets: &R) -> bool {
    let mut reached = targets.clone();
    targets.iter().for_each(|b| reached.add(closed.row(b)));
    if reached.contains(a) {
        return false;
    }
    for event in 0..closed.events() {
        if event == a || closed.contains(event, a) {
            closed.row_mut(event).add(&reached);
        }
    }
    true
}

/// The reads of an instance in the order of the search, with their candidate sources; `None` if a stated source is
/// impossible. Stated sources come first, then reads that branches depend on, then atomics: they constrain the others
/// most.
fn candidates<R: Row>(instance: &Instance, frame: &Frame<R>) -> Option<(Vec<usize>, Vec<Vec<Source>>)> {
    let trace = &instance.trace;
    let mut branched = vec![false; frame.n];
    for constraint in &instance.constraints {
        constraint.left.reads(&mut |event| branched[event] = true);
        constraint.right.reads(&mut |event| branched[event] = true);
    }
    let pins = |read: usize| instance.pins.iter().filter(move |pin| pin.0 == read).map(|pin| pin.1);
    let mut reads: Vec<_> = frame.sets.reads.iter().collect();
    reads.sort_by_key(|&read| (pins(read).next().is_none(), !branched[read], !frame.sets.atomics.contains(read), read));
    let location = |event: usize| trace.operation(event).access().map(|access| &access.location);
    let of = |read: usize| {
        let mut sources = vec![Source::Initial];
        let writes = frame.sets.writes.iter().filter(|&write| write != read && location(write) == location(read));
        sources.extend(writes.map(Source::Write));
        sources.retain(|source| pins(read).all(|pin| pin == *source));
        (!sources.is_empty()).then_some(sources)
    };
    let candidates = reads.iter().map(|&read| of(read)).collect::<Option<_>>()?;
    Some((reads, candidates))
}

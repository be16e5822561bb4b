//! Every consistent execution of an instance.
//!
//! 1. Orient the scoped modification orders, pair by pair (`orient`).
//! 2. Give one read after the other a source, and ask the axioms of what is known so far.
//!
//! Synchronizes-with grows with reads-from, happens-before with it, location order and from-reads with that: with the
//! modification orders fixed, everything that the axioms forbid stays forbidden when more reads are decided. So giving
//! up early loses nothing. `brute` decides everything first and asks the axioms last; the tests hold the two against
//! each other.
//!
//! A step is cheap because a new source rarely changes happens-before: only if its read serves an acquire. Otherwise
//! the step adds a row to a closed relation and looks for a cycle.

mod brute;
mod orient;
mod values;

pub use brute::{Candidates, Signature, brute_force, brute_force_values};

use std::ops::ControlFlow;

use crate::axioms::{hidden, precedence, violation};
use crate::model::{Coherence, Model};
use crate::program::{Instance, TooLarge};
use crate::relation::Relation;
use crate::relations::{Choice, Frame, Order, Source, conflicts, from_reads, races, release_sequences, shadowed};
use crate::row::Row;
use crate::wellformed;

pub use values::Values;

/// What a search may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events of an instance; never more than 128.
    pub events: usize,
    /// Steps: sources given to reads, and modification orders.
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
    /// How many pairs the release sequences of releases have, heads with themselves included.
    pub release_sequences: usize,
    /// What is read and written.
    pub values: &'a Values,
    /// Whether a write is before another in modification or location order: what is last is the final value.
    pub overwritten: &'a [bool],
}

/// What a search found out by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Modification orders, and sources given to reads, the inconsistent ones included.
    pub steps: u64,
    /// Executions found.
    pub executions: u64,
    /// How many numbers were tried for a value that depends on itself, if others may fit as well: then there may be
    /// executions besides those found. 0 if there are none.
    pub guessed: u64,
}

/// Calls `visit` with every consistent execution of `instance`, until it breaks.
///
/// # Errors
///
/// If the instance has too many events, or the search takes too many steps.
pub fn search(
    instance: &Instance,
    model: Model,
    limits: Limits,
    visit: &mut dyn FnMut(&Found<'_>) -> ControlFlow<()>,
) -> Result<Statistics, TooLarge> {
    resume(instance, model, limits, Statistics::default(), visit)
}

/// As [`search`], after `so_far` was spent on other instances under the same limits.
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
        0..=16 => Search::<u16>::run(instance, model, limits, so_far, visit),
        17..=64 => Search::<u64>::run(instance, model, limits, so_far, visit),
        _ => Search::<u128>::run(instance, model, limits, so_far, visit),
    }
}

/// What is known at a point of the search. Shared by all points where happens-before is the same.
struct Known<R: Row> {
    order: Order<R>,
    /// Writes with the accesses from which later writes hide them.
    shadowed: Relation<R>,
    races: Vec<(usize, usize)>,
}

struct Search<'a, R: Row> {
    instance: &'a Instance,
    frame: Frame<R>,
    conflicts: Relation<R>,
    /// The reads, in the order in which they get sources.
    reads: Vec<usize>,
    /// For each of them, what it may read.
    candidates: Vec<Vec<Source>>,
    /// Whether steps may build on each other: not for readings with other axioms.
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
        let before = precedence(&self.frame, &self.choice, &known.order).closed();
        self.decide(0, &known, &before)
    }

    /// Gives a source to the `at`-th read and all after it.
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

    /// Asks the axioms of everything that is decided. `before` is not used by the readings that come here.
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
            if !edges.is_within(&known.order.synchronizes_with) {
                let order = self.frame.order_after(known.order.synchronizes_with.clone().or(&edges));
                let before = precedence(&self.frame, &self.choice, &order).closed();
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
        let later = from_reads(&self.frame, &known.order.location_order, order, read, source);
        if !precede(&mut before, read, &later) {
            return Ok(());
        }
        self.decide(at + 1, known, &before)
    }

    /// Whether no constraint of the path is known to be broken.
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

fn too_many_steps(limits: Limits) -> TooLarge {
    TooLarge::steps("the search takes too many steps", limits.steps)
}

/// Adds `a → b` for each `b` of `targets` to a closed relation and closes it; `false` if that makes a cycle.
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

/// The reads of an instance in the order of the search, and what each may read; `None` if the text states what cannot
/// be. Stated sources first, then reads that branches depend on, then atomics: they decide most for the others.
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

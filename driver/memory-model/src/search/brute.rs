//! Brute force: every execution without pruning, by all orientations of all pairs and all sources of all reads, with
//! the axioms last.
//!
//! This is the reference for the search. It shares relations and axioms with the search, but not the algorithm: it
//! neither orders reads nor tests partial choices, and it finds values by trying all candidates. It excludes only
//! sources that the text or the path rules out on their own: another source is stated, or the following branch goes the
//! other way for the number that the source writes.

use crate::axioms::violation;
use crate::model::Model;
use crate::program::{Instance, TooLarge, Value};
use crate::relation::Relation;
use crate::relations::{Choice, Frame, Source, overlap_in_part};
use crate::row::Row;
use crate::wellformed;

use super::values::{Values, is_consistent, numbers};

/// An execution in comparable form: sources by event, and the modification order as sorted pairs.
pub type Signature = (Vec<Option<Source>>, Vec<(usize, usize)>);

/// The choices of an instance: sources for each read, and the pairs of writes to orient.
pub struct Candidates {
    /// The reads, each with its sources.
    pub reads: Vec<(usize, Vec<Source>)>,
    /// Pairs of mutually ordered writes, the lower event first.
    pub pairs: Vec<(usize, usize)>,
}

impl Candidates {
    /// The choices of `instance`.
    pub fn new<R: Row>(instance: &Instance, frame: &Frame<R>) -> Self {
        let trace = &instance.trace;
        let writes = &frame.sets.writes;
        let ordered = |(a, b): &(usize, usize)| a < b && writes.contains(*a) && writes.contains(*b);
        let location = |event: usize| trace.operation(event).access().map(|access| &access.location);
        let stated = |read: usize, source: Source| instance.pins.iter().all(|pin| pin.0 != read || pin.1 == source);
        let sources = |read: usize| {
            let others = writes.iter().filter(move |&write| write != read && location(write) == location(read));
            let all = std::iter::once(Source::Initial).chain(others.map(Source::Write));
            all.filter(|&source| stated(read, source) && is_possible(instance, read, source)).collect()
        };
        Self {
            reads: frame.sets.reads.iter().map(|read| (read, sources(read))).collect(),
            pairs: frame.mutual.iter().filter(ordered).collect(),
        }
    }

    /// Number of candidate executions; `u64::MAX` if there are more.
    pub fn count(&self) -> u64 {
        let orientations = (self.pairs.len() < 40).then(|| 1u64 << self.pairs.len());
        let choices = |product: u64, read: &(usize, Vec<Source>)| product.checked_mul(read.1.len() as u64);
        orientations.and_then(|product| self.reads.iter().try_fold(product, choices)).unwrap_or(u64::MAX)
    }
}

/// The executions of `instance`: all, or the consistent ones. The path's constraints on several values are not tested;
/// see [`brute_force_values`].
///
/// # Errors
///
/// If there are more than `limit` candidates, or more than 64 events, or if accesses overlap in part.
pub fn brute_force(
    instance: &Instance,
    model: Model,
    consistent: bool,
    limit: u64,
) -> Result<Vec<Signature>, TooLarge> {
    match instance.trace.len() {
        _ if overlap_in_part(&instance.trace) => Err(super::overlaps()),
        0..=16 => executions::<u16>(instance, model, consistent, limit),
        17..=64 => executions::<u64>(instance, model, consistent, limit),
        events => Err(TooLarge::new(format!("an execution has {events} events"), u64::LIMIT as u64)),
    }
}

fn executions<R: Row>(
    instance: &Instance,
    model: Model,
    consistent: bool,
    limit: u64,
) -> Result<Vec<Signature>, TooLarge> {
    let trace = &instance.trace;
    if !wellformed::defects(trace).is_empty() {
        return Ok(Vec::new());
    }
    let frame = Frame::<R>::new(trace, model);
    let candidates = Candidates::new(instance, &frame);
    let number = candidates.count();
    if number > limit || number == u64::MAX {
        return Err(TooLarge::new("there are too many candidate executions", limit));
    }
    let Candidates { reads, pairs } = candidates;
    let mut found = Vec::new();
    if number == 0 {
        return Ok(found);
    }
    for orientation in 0..1u64 << pairs.len() {
        let mut order = Relation::new(frame.n);
        for (at, &(low, high)) in pairs.iter().enumerate() {
            let (first, second) = if orientation >> at & 1 == 0 { (low, high) } else { (high, low) };
            order.insert(first, second);
        }
        if !order.then(&order).is_within(&order) || !order.is_acyclic() {
            continue;
        }
        let mut at = vec![0; reads.len()];
        let mut choice = Choice { sources: vec![None; frame.n], modification_order: order };
        loop {
            reads.iter().zip(&at).for_each(|((read, sources), &at)| choice.sources[*read] = Some(sources[at]));
            if !consistent || violation(&frame, &choice, &frame.order(&choice)).is_none() {
                found.push((choice.sources.clone(), choice.modification_order.iter().collect()));
            }
            if !count(&mut at, |index| reads[index].1.len()) {
                break;
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Increments a number, each digit below its base; `false` if it wraps to 0.
fn count(digits: &mut [usize], base: impl Fn(usize) -> usize) -> bool {
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit += 1;
        if *digit < base(at) {
            return true;
        }
        *digit = 0;
    }
    false
}

/// Whether `source` alone meets the path's constraints on `read` alone, as far as both are numbers.
fn is_possible(instance: &Instance, read: usize, source: Source) -> bool {
    let held = match source {
        Source::Initial => {
            let object = instance.trace.operation(read).access().map(|access| access.location.object as usize);
            object.and_then(|object| instance.initial.get(object)).copied()
        }
        Source::Write(write) => match &instance.values[write] {
            Some(Value::Constant(number)) => Some(*number),
            _ => None,
        },
    };
    let mut of = |event: usize| held.filter(|_| event == read);
    instance.constraints.iter().all(|constraint| constraint.is_met(&mut of) != Some(false))
}

/// The value of a read, as far as it is known.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    Unknown,
    Nothing,
    Number(i64),
}

/// All assignments of values to the reads of an execution, sorted, in which each read has the value that its source
/// writes and the path's constraints are met. Values that depend on themselves are tried from the numbers of the
/// program.
pub fn brute_force_values(instance: &Instance, sources: &[Option<Source>]) -> Vec<Vec<Option<i64>>> {
    let n = sources.len();
    let mut held = vec![Held::Nothing; n];
    let reads: Vec<_> = (0..n).filter(|&event| sources[event].is_some()).collect();
    reads.iter().for_each(|&read| held[read] = Held::Unknown);
    settle(instance, sources, &mut held);
    // Dependencies between reads, transitively closed.
    let mut depends = vec![vec![false; n]; n];
    for &read in &reads {
        if let Some(Source::Write(write)) = sources[read]
            && let Some(value) = &instance.values[write]
        {
            value.reads(&mut |other| depends[read][other] = true);
        }
    }
    for via in 0..n {
        for from in 0..n {
            for to in 0..n {
                depends[from][to] |= depends[from][via] && depends[via][to];
            }
        }
    }
    let circular: Vec<_> = reads.iter().copied().filter(|&read| depends[read][read]).collect();
    let numbers = numbers(instance);
    let mut at = vec![0; circular.len()];
    let mut found = Vec::new();
    loop {
        let mut held = held.clone();
        circular.iter().zip(&at).for_each(|(&read, &at)| held[read] = Held::Number(numbers[at]));
        settle(instance, sources, &mut held);
        let number = |held: &Held| if let Held::Number(number) = held { Some(*number) } else { None };
        let values = Values { read: held.iter().map(number).collect(), out_of_thin_air: !circular.is_empty() };
        if is_consistent(instance, sources, &values) {
            found.push(values.read);
        }
        if !count(&mut at, |_| numbers.len()) {
            found.sort();
            return found;
        }
    }
}

/// Propagates known values of reads until nothing changes.
fn settle(instance: &Instance, sources: &[Option<Source>], held: &mut [Held]) {
    fn of(value: &Value, held: &[Held]) -> Held {
        match value {
            Value::Constant(number) => Held::Number(*number),
            Value::Read(read) => held[*read],
            Value::Binary(binary, a, b, _) => match (of(a, held), of(b, held)) {
                (Held::Number(a), Held::Number(b)) => Held::Number(binary.apply(a, b)),
                (Held::Nothing, _) | (_, Held::Nothing) => Held::Nothing,
                _ => Held::Unknown,
            },
        }
    }
    loop {
        let mut changed = false;
        for read in 0..held.len() {
            if held[read] != Held::Unknown {
                continue;
            }
            let now = match sources[read] {
                Some(Source::Write(write)) => {
                    instance.values[write].as_ref().map_or(Held::Nothing, |value| of(value, held))
                }
                Some(Source::Initial) => {
                    let object = instance.trace.operation(read).access().map(|access| access.location.object as usize);
                    let initial = object.and_then(|object| instance.initial.get(object));
                    initial.map_or(Held::Nothing, |number| Held::Number(*number))
                }
                None => Held::Nothing,
            };
            changed |= now != Held::Unknown;
            held[read] = now;
        }
        if !changed {
            return;
        }
    }
}

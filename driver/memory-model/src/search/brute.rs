//! Every execution without any pruning: all orientations of all pairs, all sources for all reads, the axioms last.
//!
//! This is the reference for the search. It shares the relations and the axioms with it, and nothing of the way.

use crate::axioms::violation;
use crate::model::Model;
use crate::program::{Instance, TooLarge};
use crate::relation::Relation;
use crate::relations::{Choice, Frame, Source};
use crate::row::Row;
use crate::wellformed;

/// One execution, in a form that can be compared: sources by event, modification order as sorted pairs.
pub type Signature = (Vec<Option<Source>>, Vec<(usize, usize)>);

/// The executions of `instance`: all, or the consistent ones. The path's constraints on values are not asked.
///
/// # Errors
///
/// If there are more than `limit` candidates, or more than 64 events.
pub fn brute_force(
    instance: &Instance,
    model: Model,
    consistent: bool,
    limit: u64,
) -> Result<Vec<Signature>, TooLarge> {
    let trace = &instance.trace;
    if trace.len() > u64::LIMIT {
        return Err(TooLarge { what: format!("an execution has {} events", trace.len()), bound: u64::LIMIT as u64 });
    }
    if !wellformed::defects(trace).is_empty() {
        return Ok(Vec::new());
    }
    let frame = Frame::<u64>::new(trace, model);
    let writes: Vec<_> = frame.sets.writes.iter().collect();
    let pairs: Vec<_> = frame
        .mutual
        .iter()
        .filter(|(a, b)| a < b && frame.sets.writes.contains(*a) && frame.sets.writes.contains(*b))
        .collect();
    let reads: Vec<_> = frame.sets.reads.iter().collect();
    let location = |event: usize| trace.operation(event).access().map(|access| &access.location);
    let choices: Vec<Vec<Source>> = reads
        .iter()
        .map(|&read| {
            let others = writes.iter().filter(|&&write| write != read && location(write) == location(read));
            std::iter::once(Source::Initial).chain(others.map(|&write| Source::Write(write))).collect()
        })
        .collect();
    let orientations = 1u64.checked_shl(pairs.len() as u32).filter(|_| pairs.len() < 40);
    let candidates = choices
        .iter()
        .try_fold(orientations.unwrap_or(u64::MAX), |product, sources| product.checked_mul(sources.len() as u64));
    if candidates.is_none_or(|candidates| candidates > limit) {
        return Err(TooLarge { what: "there are too many candidate executions".to_owned(), bound: limit });
    }
    let mut found = Vec::new();
    for orientation in 0..orientations.unwrap_or(0) {
        let mut order = Relation::new(frame.n);
        for (at, &(low, high)) in pairs.iter().enumerate() {
            let (first, second) = if orientation >> at & 1 == 0 { (low, high) } else { (high, low) };
            order.insert(first, second);
        }
        if !order.then(&order).is_within(&order) || !order.is_acyclic() {
            continue;
        }
        let mut at = vec![0; reads.len()];
        'sources: loop {
            let mut sources = vec![None; frame.n];
            reads.iter().enumerate().for_each(|(index, &read)| sources[read] = Some(choices[index][at[index]]));
            let stated = |pin: &(usize, Source)| sources[pin.0] == Some(pin.1);
            if instance.pins.iter().all(stated) {
                let choice = Choice { sources, modification_order: order.clone() };
                if !consistent || violation(&frame, &choice, &frame.order(&choice)).is_none() {
                    found.push((choice.sources, choice.modification_order.iter().collect()));
                }
            }
            for index in 0..at.len() {
                at[index] += 1;
                if at[index] < choices[index].len() {
                    continue 'sources;
                }
                at[index] = 0;
            }
            break;
        }
    }
    found.sort();
    Ok(found)
}

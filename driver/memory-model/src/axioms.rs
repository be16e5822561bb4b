//! The axioms: which executions are consistent.
//!
//! Today's appendix: location order, reads-from, from-reads and scoped modification order form no cycle, and no plain
//! read takes its value from a write that is hidden from it. The appendix of 1.1.90 had four bullets on scoped
//! modification order instead, which bind mutually ordered atomics only ([`Coherence::Bullets`]).
//!
//! Deviations:
//! 1. The appendix says "if X is visible-to Y, then Y reads the value written by X", and nothing about racing reads.
//!    The cycle rule, which is the Khronos model's, also restricts those: they read some write that is not hidden.
//! 2. A cycle is one of edges for a common location. The appendix has one union for all locations; that differs only
//!    for racing accesses that overlap in part, whose bytes need not be accessed at once.

use crate::model::Coherence;
use crate::relation::Relation;
use crate::relations::{Choice, Frame, Layer, Order, Source, from_reads, shadowed};
use crate::row::Row;

/// An axiom that an execution violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Events each of which must come before the next, and the last before the first.
    Cycle(Vec<usize>),
    /// A plain read whose source is hidden by a later write.
    Hidden {
        /// The read.
        read: usize,
        /// Its source, or a write that is visible to it if it reads the initial value.
        write: usize,
    },
    /// Two mutually ordered atomics whose happens-before contradicts their modification order.
    Incoherent {
        /// The one that happens before the other.
        first: usize,
        /// The other.
        second: usize,
    },
}

/// The relation that must be acyclic, for the locations of a layer with their location order.
pub fn precedence<R: Row>(
    frame: &Frame<R>,
    layer: &Layer<R>,
    choice: &Choice<R>,
    location_order: &Relation<R>,
) -> Relation<R> {
    let mut before = location_order.clone().or(&choice.modification_order.clone().and(&layer.same_location));
    for (read, source) in choice.sources.iter().enumerate() {
        let Some(source) = source.filter(|source| supplies(layer, *source, read)) else { continue };
        if let Source::Write(write) = source {
            before.insert(write, read);
        }
        let later = from_reads(frame, layer, location_order, &choice.modification_order, read, source);
        before.row_mut(read).add(&later.and(layer.same_location.row(read)));
    }
    before
}

/// Whether the bytes of the layer that `read` reads come from `source`.
fn supplies<R: Row>(layer: &Layer<R>, source: Source, read: usize) -> bool {
    match source {
        Source::Initial => layer.same_location.contains(read, read),
        Source::Write(write) => layer.same_location.contains(write, read),
    }
}

/// The first axiom that the execution violates. Reads without a source are ignored: a violation without them remains
/// one with them.
pub fn violation<R: Row>(frame: &Frame<R>, choice: &Choice<R>, order: &Order<R>) -> Option<Violation> {
    let broken = match frame.model.coherence {
        Coherence::Acyclic => {
            let mut layers = frame.layers.iter().zip(order.layers());
            layers.find_map(|(layer, location_order)| cycle(&precedence(frame, layer, choice, location_order)))
        }
        Coherence::Bullets => incoherence(frame, choice, order)
            .or_else(|| order.layers().find_map(|location_order| unseen(frame, choice, location_order))),
    };
    broken.or_else(|| order.layers().find_map(|location_order| hidden(frame, choice, &shadowed(frame, location_order))))
}

/// A read of the initial value although a write is visible to it, which is not mutually ordered with it.
fn unseen<R: Row>(frame: &Frame<R>, choice: &Choice<R>, location_order: &Relation<R>) -> Option<Violation> {
    let writes = location_order.clone().from(&frame.sets.writes).minus(&frame.mutual);
    let mut seen = writes.iter().filter(|&(_, read)| choice.sources[read] == Some(Source::Initial));
    seen.next().map(|(write, read)| Violation::Hidden { read, write })
}

/// A plain read whose source is hidden from it.
pub(crate) fn hidden<R: Row>(frame: &Frame<R>, choice: &Choice<R>, shadowed: &Relation<R>) -> Option<Violation> {
    choice.sources.iter().enumerate().find_map(|(read, source)| match *source {
        Some(Source::Write(write)) if shadowed.contains(write, read) && !frame.sets.atomics.contains(read) => {
            Some(Violation::Hidden { read, write })
        }
        _ => None,
    })
}

/// A shortest cycle, if there is one.
fn cycle<R: Row>(before: &Relation<R>) -> Option<Violation> {
    let n = before.events();
    let closed = before.clone().closed();
    let start = (0..n).find(|&event| closed.contains(event, event))?;
    let mut best: Option<Vec<usize>> = None;
    for start in (start..n).filter(|&event| closed.contains(event, event)) {
        // Breadth-first search from `start` back to it.
        let mut parents = vec![None; n];
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(event) = queue.pop_front() {
            if before.contains(event, start) {
                let mut path = vec![event];
                let mut at = event;
                while at != start {
                    at = parents[at].unwrap_or(start);
                    path.push(at);
                }
                path.reverse();
                if best.as_ref().is_none_or(|best| path.len() < best.len()) {
                    best = Some(path);
                }
                break;
            }
            for next in before.row(event).iter() {
                if next != start && parents[next].is_none() {
                    parents[next] = Some(event);
                    queue.push_back(next);
                }
            }
        }
    }
    best.map(Violation::Cycle)
}

/// The four bullets of 1.1.90. "Let A and B be mutually-ordered atomic operations, where A happens-before B …": two
/// writes are in that order; two reads take values in that order; a read after a write reads it or a later one; a read
/// before a write reads an earlier one.
fn incoherence<R: Row>(frame: &Frame<R>, choice: &Choice<R>, order: &Order<R>) -> Option<Violation> {
    let order_of = &choice.modification_order;
    let source = |event: usize| choice.sources[event];
    // Whether the write `a` equals the write `b` or precedes it.
    let up_to = |a: Source, b: Source| match (a, b) {
        (Source::Initial, _) => true,
        (Source::Write(_), Source::Initial) => false,
        (Source::Write(a), Source::Write(b)) => a == b || !order_of.contains(b, a),
    };
    let before = |a: Source, b: usize| match a {
        Source::Initial => true,
        Source::Write(a) => a != b && !order_of.contains(b, a),
    };
    let writes = |event: usize| frame.sets.writes.contains(event);
    let coherent = |a: usize, b: usize| {
        !(writes(a) && writes(b) && order_of.contains(b, a))
            && match (source(a), source(b)) {
                (Some(x), Some(y)) => up_to(x, y),
                _ => true,
            }
            && source(b).is_none_or(|y| !writes(a) || up_to(Source::Write(a), y))
            && source(a).is_none_or(|x| !writes(b) || before(x, b))
    };
    let mutual = order.happens_before.clone().and(&frame.mutual);
    let broken = mutual.iter().find(|&(a, b)| !coherent(a, b));
    // A read-modify-write must read the write immediately before its own.
    let torn = || {
        (0..frame.n).find_map(|update| {
            let source = source(update).filter(|_| writes(update))?;
            let between = match source {
                Source::Initial => frame.mutual.row(update).and(&frame.sets.writes),
                Source::Write(write) => order_of.row(write).clone(),
            };
            let late = matches!(source, Source::Write(write) if order_of.contains(update, write));
            let between = between.iter().find(|&write| order_of.contains(write, update));
            between.map(|write| (write, update)).or(late.then_some((update, update)))
        })
    };
    broken.or_else(torn).map(|(first, second)| Violation::Incoherent { first, second })
}

//! Mutually ordered atomics and their scoped modification order.
//!
//! "Two atomic operations A and B are potentially-mutually-ordered if … they access the same set of memory locations,
//! they use the same reference, A is in the instance of B's memory scope, B is in the instance of A's memory scope."
//! "For a given atomic write A, all atomic writes that are mutually-ordered with A occur in an order known as A's
//! scoped modification order."
//!
//! Deviations:
//! 1. Mutual order is irreflexive, which the appendix does not state.
//! 2. The orders of all atomics are one relation here. It is transitive as a whole, though mutual order is not: with
//!    mixed scopes no such relation may exist, and the program has no execution (as in the Khronos model).
//! 3. In 1.1.90 the order included reads. With [`ScopedOrder::AllAtomics`](crate::ScopedOrder::AllAtomics) a read comes
//!    after its source and before the writes after it; reads with the same source stay unordered.

use crate::event::{Agent, Location, Trace};
use crate::model::Model;
use crate::relation::Relation;
use crate::row::Row;

use super::groups::Partition;
use super::{Choice, Frame, Source};

/// Pairs of accesses through the same reference; reflexive.
pub(super) fn same_reference<R: Row>(trace: &Trace) -> Relation<R> {
    let reference = |event: usize| trace.operation(event).access().map(|access| access.reference);
    Partition::by(trace.len(), reference).relation()
}

/// Pairs of mutually ordered atomics.
pub(super) fn mutual_order<R: Row>(trace: &Trace, in_scope: &Relation<R>, model: Model) -> Relation<R> {
    let apart = |event: usize| trace.agent(event) == Agent::Host && !model.host_atomics;
    let key = |event: usize| {
        let access = trace.operation(event).access().filter(|access| access.atomic)?;
        let Location { object, bytes } = &access.location;
        Some((*object, bytes.start, bytes.end, access.reference, apart(event)))
    };
    Partition::by(trace.len(), key).relation().and(in_scope).irreflexive()
}

/// Scoped modification order extended to reads.
pub(super) fn with_reads<R: Row>(frame: &Frame<R>, choice: &Choice<R>) -> Relation<R> {
    let mut order = choice.modification_order.clone();
    for (read, source) in choice.sources.iter().enumerate() {
        let mut later = R::default();
        match source {
            Some(Source::Write(write)) if frame.mutual.contains(*write, read) => {
                order.insert(*write, read);
                later = choice.modification_order.row(*write).clone();
            }
            Some(Source::Initial) => later = frame.sets.writes.clone(),
            _ => {}
        }
        later.keep(frame.mutual.row(read));
        order.row_mut(read).add(&later);
    }
    order.closed().and(&frame.mutual)
}

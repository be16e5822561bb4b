//! Synchronizes-with, through atomics.
//!
//! "If A and B are atomic operations, then A synchronizes-with B if and only if … A performs a release operation, B
//! performs an acquire operation, A and B are mutually-ordered, B reads a value written by A or by an operation in the
//! release sequence headed by A." Four of the five shapes are this one, with a barrier in place of A, of B, or of both:
//! a release barrier is carried by an atomic write after it, an acquire barrier is served by an atomic read before it,
//! each in a storage class that the barrier's semantics hold. The fifth shape is in `barriers`.
//!
//! Deviations:
//! 1. Mutual order is required between the read and its source, which is in the sequence, instead of between the read
//!    and the head of the sequence; A and B must be in each other's scopes in every shape. The Khronos model and
//!    Dartagnan do the same.

use crate::event::Trace;
use crate::relation::Relation;
use crate::row::Row;

use super::classes::ByClass;
use super::{Frame, Sets, Source};

/// Pairs of a release and an atomic write that carries it.
pub(super) fn carried_by<R: Row>(
    trace: &Trace,
    sets: &Sets<R>,
    classes: &ByClass<R>,
    program_order: &Relation<R>,
) -> Relation<R> {
    let writes = sets.atomics.and(&sets.writes);
    let mut carried = Relation::identity(trace.len(), &sets.releases.and(&writes));
    for release in sets.releases.and(&sets.fences).iter() {
        let later =
            program_order.row(release).and(&writes).and(&classes.accesses_in(trace.operation(release).semantics));
        carried.row_mut(release).add(&later);
    }
    carried
}

/// Pairs of an atomic read and an acquire that it serves.
pub(super) fn serves<R: Row>(
    trace: &Trace,
    sets: &Sets<R>,
    classes: &ByClass<R>,
    program_order: &Relation<R>,
) -> Relation<R> {
    let reads = sets.atomics.and(&sets.reads);
    let barriers = sets.acquires.and(&sets.fences);
    let mut serves = Relation::identity(trace.len(), &sets.acquires.and(&reads));
    for read in reads.iter() {
        let Some(access) = trace.operation(read).access() else { continue };
        let later = program_order.row(read).and(&barriers).and(classes.semantics(access.class));
        serves.row_mut(read).add(&later);
    }
    serves
}

/// The edges of one read: every release whose sequence contains `write`, with every acquire that `read` serves.
pub(super) fn edge<R: Row>(frame: &Frame<R>, sequences: &Relation<R>, write: usize, read: usize) -> Relation<R> {
    let mut edges = Relation::new(frame.n);
    let acquires = frame.serves.row(read);
    if acquires.is_empty() || !frame.mutual.contains(write, read) {
        return edges;
    }
    for head in 0..frame.n {
        if sequences.contains(head, write) {
            for release in (0..frame.n).filter(|&release| frame.carried_by.contains(release, head)) {
                *edges.row_mut(release) = acquires.and(frame.in_scope.row(release));
            }
        }
    }
    edges
}

/// Synchronizes-with, of all five shapes.
pub(super) fn synchronizes_with<R: Row>(
    frame: &Frame<R>,
    sequences: &Relation<R>,
    sources: &[Option<Source>],
) -> Relation<R> {
    let mut reads_from = Relation::new(frame.n);
    for (read, source) in sources.iter().enumerate() {
        if let Some(Source::Write(write)) = source
            && frame.mutual.contains(*write, read)
        {
            reads_from.insert(*write, read);
        }
    }
    frame.carried_by.then(sequences).then(&reads_from).then(&frame.serves).and(&frame.in_scope).or(&frame.barriers)
}

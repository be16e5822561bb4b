//! System-synchronizes-with.
//!
//! "Certain operations system-synchronize-with each other, which informally means the first operation occurs before
//! the second and that the synchronization is performed without using application-visible memory accesses."
//!
//! Deviations:
//! 1. The edges are given by the trace, not derived: a litmus test states them between threads, a driver gets them from
//!    its queues.

use crate::event::Trace;
use crate::relation::Relation;
use crate::row::Row;

/// The edges of the trace.
pub(super) fn system_synchronizes_with<R: Row>(trace: &Trace) -> Relation<R> {
    let mut edges = Relation::new(trace.len());
    trace.system.iter().for_each(|&(a, b)| edges.insert(a, b));
    edges
}

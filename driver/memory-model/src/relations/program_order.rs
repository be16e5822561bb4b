//! Program order.
//!
//! "Program-order is an ordering on dynamic instances of instructions executed by a single shader invocation." In a
//! trace, the events of a thread are in program order.
//!
//! Deviations:
//! 1. The appendix leaves instances of unrelated basic blocks unordered; a trace is one path, which orders all of them.

use crate::event::Trace;
use crate::relation::Relation;
use crate::row::Row;

/// Program order, transitive.
pub(super) fn program_order<R: Row>(trace: &Trace) -> Relation<R> {
    Relation::of(trace.len(), |a, b| a < b && trace.same_agent(a, b))
}

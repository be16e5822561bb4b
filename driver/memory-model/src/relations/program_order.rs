//! Program order.
//!
//! "Program-order is an ordering on dynamic instances of instructions executed by a single shader invocation." In a
//! trace, the events of a thread are in program order.
//!
//! Deviations:
//! 1. The appendix leaves instances of unrelated basic blocks unordered; a trace is one path, which orders all of them.

use crate::event::Scope;
use crate::relation::Relation;
use crate::row::Row;

use super::groups::{Scopes, ascending};

/// Program order, transitive.
pub(super) fn program_order<R: Row>(scopes: &Scopes<R>) -> Relation<R> {
    ascending(scopes.of(Scope::Invocation))
}

//! Scopes.
//!
//! "A scope describes a set of shader invocations, where each such set is a scope instance." Two operations are in
//! scope when each one's agent is in the instance of the other one's memory scope.
//!
//! Deviations:
//! 1. CrossDevice exists for host operations only: Vulkan forbids it in shaders.
//! 2. An operation without a memory scope (a plain private access) is in scope with nothing.

use crate::event::{Scope, Trace};
use crate::relation::Relation;
use crate::row::Row;

/// Pairs of events whose agents share an instance of `scope`.
pub(super) fn shares<R: Row>(trace: &Trace, scope: Scope) -> Relation<R> {
    Relation::of(trace.len(), |a, b| trace.shares(a, b, scope))
}

/// Pairs of operations that are in the instances of each other's memory scopes.
pub(super) fn in_scope<R: Row>(trace: &Trace) -> Relation<R> {
    let includes = |a: usize, b: usize| trace.operation(a).scope.is_some_and(|scope| trace.shares(a, b, scope));
    Relation::of(trace.len(), |a, b| includes(a, b) && includes(b, a))
}

//! Scopes.
//!
//! "A scope describes a set of shader invocations, where each such set is a scope instance." Two operations are in
//! scope when each one's agent is in the instance of the other one's memory scope.
//!
//! Deviations:
//! 1. CrossDevice exists for host operations only: Vulkan forbids it in shaders.
//! 2. An operation without a memory scope (a plain private access) is in scope with nothing.

use crate::event::Trace;
use crate::relation::Relation;
use crate::row::Row;

use super::groups::Scopes;

/// Pairs of operations that are in the instances of each other's memory scopes.
pub(super) fn in_scope<R: Row>(trace: &Trace, scopes: &Scopes<R>) -> Relation<R> {
    scopes.mutual(trace.len(), |event| trace.operation(event).scope)
}

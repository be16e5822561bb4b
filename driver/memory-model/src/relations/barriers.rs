//! Synchronizes-with, through control barriers.
//!
//! "If A is a release barrier and B is an acquire barrier and C is a control barrier (where A can optionally equal C
//! and B can optionally equal C), then A synchronizes-with B if … A is program-ordered before (or equals) C, C is
//! program-ordered before (or equals) B, A and B are in the instance of each other's memory scopes, A and B are in the
//! instance of C's execution scope."
//!
//! Deviations:
//! 1. A control barrier is an event for each invocation; events with the same instance number are the same dynamic
//!    instance.
//! 2. The Khronos format has one scope for both the execution and the memory of a control barrier.

use crate::event::{Action, Trace};
use crate::relation::Relation;
use crate::row::Row;

use super::Sets;
use super::groups::{Partition, Scopes};

/// Pairs of barriers that synchronize through a control barrier. They do not depend on reads-from, so the trace fixes
/// them.
pub(super) fn synchronize<R: Row>(
    trace: &Trace,
    sets: &Sets<R>,
    program_order: &Relation<R>,
    in_scope: &Relation<R>,
    scopes: &Scopes<R>,
) -> Relation<R> {
    let execution = |event: usize| match trace.operation(event).action {
        Action::ControlBarrier { execution } => Some(execution),
        _ => None,
    };
    let together = Partition::by(trace.len(), |event| trace.events[event].instance).relation();
    let meet = scopes.mutual(trace.len(), execution).and(&together).irreflexive();
    let or_same = program_order.clone().reflexive();
    let before = or_same.clone().from(&sets.releases.and(&sets.fences)).to(&sets.control_barriers);
    let after = or_same.from(&sets.control_barriers).to(&sets.acquires.and(&sets.fences));
    before.then(&meet).then(&after).and(in_scope)
}

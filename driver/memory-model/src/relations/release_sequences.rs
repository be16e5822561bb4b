//! Release sequences.
//!
//! "After an atomic operation A performs a release operation on a set of memory locations M, the release sequence
//! headed by A is the longest continuous subsequence of A's scoped modification order that consists of the atomic
//! operation A as its first element, [and] atomic read-modify-write operations on M by any agent." A relaxed atomic
//! write after a release barrier heads a hypothetical one.
//!
//! Deviations:
//! 1. One relation holds both kinds: the sequence of every atomic write. Synchronizes-with asks only for the writes
//!    that release or follow a release barrier.

use crate::relation::Relation;
use crate::row::Row;

use super::Frame;

/// Pairs of an atomic write and an operation of the sequence that it heads, including itself.
pub fn release_sequences<R: Row>(frame: &Frame<R>, modification_order: &Relation<R>) -> Relation<R> {
    let updates = frame.sets.reads.and(&frame.sets.writes);
    let heads = frame.sets.atomics.and(&frame.sets.writes);
    let own = Relation::identity(frame.n, &heads);
    if updates.is_empty() {
        return own;
    }
    modification_order.immediate().to(&updates).closed().or(&own).from(&heads)
}

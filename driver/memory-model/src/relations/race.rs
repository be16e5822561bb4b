//! Data races.
//!
//! "Let X and Y be operations that access overlapping sets of memory locations M, where X != Y, and at least one of X
//! and Y is a write, and X and Y are not mutually-ordered atomic operations. If there does not exist a
//! location-ordered relation between X and Y for each location in M, then there is a data race."
//!
//! [`Order::location_order`](super::Order::location_order) holds the pairs that are ordered for each of their common
//! bytes, so a pair that is ordered for some of them only races.
//!
//! Writes of equal values race like other writes.

use crate::relation::Relation;
use crate::row::Row;

use super::Frame;

/// Pairs that race unless location order relates them, each once, with the lower event first.
pub fn conflicts<R: Row>(frame: &Frame<R>) -> Relation<R> {
    let sets = &frame.sets;
    let mut pairs = Relation::new(frame.n);
    let mut above = R::default();
    for event in (0..frame.n).rev() {
        let mut others = frame.same_location.row(event).and(&above);
        if !sets.writes.contains(event) {
            others.keep(&sets.writes);
        }
        others.drop(frame.mutual.row(event));
        *pairs.row_mut(event) = others;
        above.insert(event);
    }
    pairs
}

/// The races of an execution, each once, with the lower event first.
pub fn races<R: Row>(conflicts: &Relation<R>, location_order: &Relation<R>) -> Relation<R> {
    let mut races = conflicts.clone().minus(location_order);
    if !races.is_empty() {
        races = races.minus(&location_order.inverse());
    }
    races
}

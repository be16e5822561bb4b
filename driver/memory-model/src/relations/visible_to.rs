//! Visible-to.
//!
//! "Let X be a write and Y be a read … X is visible-to Y … if and only if X is location-ordered before Y for each
//! location L in M2, [and] there does not exist another write Z to any location L in M2 such that X is
//! location-ordered before Z for location L and Z is location-ordered before Y."
//!
//! Deviations:
//! 1. "Z" may be a chain of writes, each location-ordered before the next, as in the Khronos model.

use crate::relation::Relation;
use crate::row::Row;

use super::{Frame, Order};

/// Pairs of a write and a read to which it is visible, for all or some of their common bytes.
pub fn visible_to<R: Row>(frame: &Frame<R>, order: &Order<R>) -> Relation<R> {
    order.layers().fold(Relation::new(frame.n), |visible, location_order| {
        let from_writes = location_order.clone().from(&frame.sets.writes);
        visible.or(&from_writes.minus(&shadowed(frame, location_order)).to(&frame.sets.reads))
    })
}

/// Pairs of a write and an access from which a later write hides it, by the location order of one layer.
pub(crate) fn shadowed<R: Row>(frame: &Frame<R>, location_order: &Relation<R>) -> Relation<R> {
    let from_writes = location_order.clone().from(&frame.sets.writes);
    from_writes.then(&from_writes.clone().closed())
}

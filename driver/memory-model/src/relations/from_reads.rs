//! From-reads.
//!
//! The appendix has no such relation. It follows from "if X is visible-to Y, then Y reads the value written by X" and
//! from the coherence of scoped modification order: a read comes before every write that comes after its source.
//!
//! Deviations:
//! 1. As in the Khronos model: after its source in scoped modification order, or in location order. A read of the
//!    initial value comes before every write to the location.
//! 2. Dartagnan uses location order only for a read that is itself location-ordered after its source (A3, a switch).
//!    Only outcomes of racy programs differ.

use crate::model::FromReads;
use crate::relation::Relation;
use crate::row::Row;

use super::{Frame, Layer, Source};

/// The writes that come after the event `read`, which reads from `source`, for the locations of a layer with their
/// location order.
pub fn from_reads<R: Row>(
    frame: &Frame<R>,
    layer: &Layer<R>,
    location_order: &Relation<R>,
    modification_order: &Relation<R>,
    read: usize,
    source: Source,
) -> R {
    let mut later = match source {
        Source::Initial => layer.same_location.row(read).and(&frame.sets.writes),
        Source::Write(write) => {
            let in_location_order = match frame.model.from_reads {
                FromReads::Khronos => true,
                FromReads::Dartagnan => location_order.contains(write, read),
                FromReads::ModificationOrder => false,
            };
            let mut later = modification_order.row(write).clone();
            if in_location_order {
                later.add(&location_order.row(write).and(&frame.sets.writes));
            }
            later
        }
    };
    let mut own = R::default();
    own.insert(read);
    later.drop(&own);
    later
}

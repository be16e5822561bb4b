//! Layers: the memory locations of a trace, in sets that can be treated at once.
//!
//! "X is location-ordered before Y *for a location L in M*": location order, availability and visibility are per byte.
//! All accesses of most traces have either the same bytes or none in common; then the bytes of an access are alike, and
//! one relation says it for all of them. If accesses overlap in part, the bytes fall into classes, each with the set of
//! events that access it. A layer is a set of classes without a common event: within it two accesses share one class
//! or none, so that one relation orders all of its classes.
//!
//! The classes are distributed greedily. An access of eight bytes that overlaps two of four needs two layers, however
//! often that occurs in the trace.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Location, Trace};
use crate::model::Model;
use crate::relation::Relation;
use crate::row::Row;

use super::coverage::Covering;
use super::groups::Partition;

/// A part of a partition of the locations, chosen so that each event accesses at most one class of bytes in it.
#[derive(Clone, Debug)]
pub struct Layer<R: Row> {
    /// Pairs of accesses that share bytes of this layer; reflexive.
    pub same_location: Relation<R>,
    /// Pairs of an access and an availability operation whose source scope contains the access's bytes of this layer.
    pub availability_covers: Relation<R>,
    /// Pairs of a visibility operation and an access whose bytes of this layer are in its destination scope.
    pub visibility_covers: Relation<R>,
}

impl<R: Row> Layer<R> {
    fn new(covering: &Covering<'_, R>, model: Model, same_location: Relation<R>) -> Self {
        let (availability_covers, visibility_covers) = covering.covers(model, &same_location);
        Self { same_location, availability_covers, visibility_covers }
    }
}

/// Whether two accesses of the trace have some, but not all bytes in common.
pub fn overlap_in_part(trace: &Trace) -> bool {
    let mut objects: BTreeMap<u32, Vec<&Location>> = BTreeMap::new();
    for location in locations(trace).flatten().filter(|location| !location.bytes.is_empty()) {
        objects.entry(location.object).or_default().push(location);
    }
    objects.values_mut().any(|locations| {
        locations.sort_by_key(|location| (location.bytes.start, location.bytes.end));
        // Equal ranges are neighbours; a different one that overlaps begins before the end of an earlier one.
        locations.windows(2).any(|pair| pair[0] != pair[1] && pair[0].overlaps(pair[1]))
    })
}

/// The layers of a trace, at least one.
pub(super) fn layers<R: Row>(trace: &Trace, model: Model, covering: &Covering<'_, R>) -> Vec<Layer<R>> {
    if !overlap_in_part(trace) {
        let bytes = |event: usize| {
            let Location { object, bytes } = &trace.operation(event).access()?.location;
            (!bytes.is_empty()).then_some((*object, bytes.start, bytes.end))
        };
        return vec![Layer::new(covering, model, Partition::by(trace.len(), bytes).relation())];
    }
    let mut layers: Vec<Vec<Option<usize>>> = Vec::new();
    for (class, events) in classes(trace).into_iter().enumerate() {
        let free = layers.iter().position(|layer| events.iter().all(|&event| layer[event].is_none()));
        let at = free.unwrap_or_else(|| {
            layers.push(vec![None; trace.len()]);
            layers.len() - 1
        });
        events.iter().for_each(|&event| layers[at][event] = Some(class));
    }
    let layer = |class: Vec<Option<usize>>| {
        Layer::new(covering, model, Partition::by(trace.len(), |event| class[event]).relation())
    };
    layers.into_iter().map(layer).collect()
}

/// The location of each event, if it is an access.
fn locations(trace: &Trace) -> impl Iterator<Item = Option<&Location>> {
    trace.events.iter().map(|event| event.operation.access().map(|access| &access.location))
}

/// The sets of events that access the same bytes, without those of one event, which nothing needs to be ordered with.
fn classes(trace: &Trace) -> BTreeSet<Vec<usize>> {
    // Events that begin and end to access the bytes from a place on.
    let mut edges: BTreeMap<(u32, u64), (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (event, location) in locations(trace).enumerate() {
        let Some(Location { object, bytes }) = location.filter(|location| !location.bytes.is_empty()) else { continue };
        edges.entry((*object, bytes.start)).or_default().0.push(event);
        edges.entry((*object, bytes.end)).or_default().1.push(event);
    }
    let mut classes = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (begin, end) in edges.into_values() {
        end.iter().for_each(|event| _ = open.remove(event));
        open.extend(begin);
        if open.len() > 1 {
            classes.insert(open.iter().copied().collect());
        }
    }
    classes
}

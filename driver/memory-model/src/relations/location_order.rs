//! Location order.
//!
//! "X is location-ordered before Y for a location L in M if and only if any of the following is true": both are of one
//! agent and reference and X happens before Y; X is a read, both are non-private, and X happens before Y; X is a read
//! and system-synchronizes with Y; X is a write that was made available to a domain which both agents share, through
//! one reference, both non-private, and, if Y is a read, made visible to it from there; or the same through the device
//! and host domains, for all references and for private accesses, too.
//!
//! Deviations:
//! 1. The locations of a layer are treated at once (`layers`), which changes nothing.
//! 2. The case of 1.1.90 "X is before Y in X's scoped modification order" is a switch, off by default.
//! 3. Whether a write after a write also needs visibility is a switch (A1); the appendix requires availability only.

use crate::model::Overwrite;
use crate::relation::Relation;
use crate::row::Row;

use super::{DOMAINS, Frame, Layer, chains};

/// Why one access is location-ordered before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// One agent, one reference, happens-before.
    SameAgent,
    /// The first is a read, both are non-private, happens-before.
    AfterRead,
    /// The first is a read, system-synchronizes-with.
    AfterReadBySystem,
    /// Through the domain of a scope: subgroup, workgroup, queue family, or shader for Device.
    Through(crate::event::Scope),
    /// Through the device or host domain.
    ThroughApi,
}

/// The cases of location order, each as a relation.
#[derive(Clone, Debug)]
pub struct Paths<R: Row> {
    /// The relation of each case.
    pub cases: Vec<(Case, Relation<R>)>,
    /// For each shader domain, pairs of a write and an operation that makes it available there.
    pub available: [Relation<R>; 4],
    /// For each shader domain, pairs of an operation and a read to which it makes values visible.
    pub visible: [Relation<R>; 4],
}

/// Location order by cases, for the locations of a layer.
pub(super) fn paths<R: Row>(frame: &Frame<R>, layer: &Layer<R>, happens_before: &Relation<R>) -> Paths<R> {
    let before = || happens_before.clone();
    let sets = &frame.sets;
    let location = |relation: Relation<R>| relation.and(&layer.same_location).irreflexive();
    let reads = sets.reads.and(&sets.non_private);
    let writes = sets.writes.and(&sets.non_private);
    let same_agent = before().and(&frame.same_agent).and(&frame.same_reference);
    let mut cases = vec![
        (Case::SameAgent, location(same_agent)),
        (Case::AfterRead, location(before().from(&reads).to(&sets.non_private))),
        (Case::AfterReadBySystem, location(frame.system.clone().from(&sets.reads))),
    ];
    let available = chains::availability(frame, layer, happens_before);
    let visible = chains::visibility(frame, layer, happens_before);
    for at in 0..DOMAINS.len() {
        let shared = before().and(&frame.shares[at]);
        let arrived = available[at].clone().from(&writes).then(&shared);
        let seen = arrived.then(&visible[at]);
        let overwritten = match frame.model.overwrite {
            Overwrite::Visibility => seen.clone().to(&writes),
            _ => arrived.to(&writes),
        };
        let ordered = overwritten.or(&seen.to(&reads)).and(&frame.same_reference);
        cases.push((Case::Through(DOMAINS[at]), location(ordered)));
    }
    cases.push((Case::ThroughApi, location(through_api(frame, layer, happens_before))));
    Paths { cases, available, visible }
}

/// Location order for the locations of a layer.
pub(super) fn location_order<R: Row>(frame: &Frame<R>, layer: &Layer<R>, happens_before: &Relation<R>) -> Relation<R> {
    let paths = paths(frame, layer, happens_before);
    paths.cases.iter().fold(Relation::new(frame.n), |order, (_, case)| order.or(case))
}

/// Order through the device and host domains.
fn through_api<R: Row>(frame: &Frame<R>, layer: &Layer<R>, happens_before: &Relation<R>) -> Relation<R> {
    let sets = &frame.sets;
    let mut ordered = Relation::new(frame.n);
    if sets.api_available.iter().all(Row::is_empty) {
        return ordered;
    }
    let before = || happens_before.clone();
    for from in 0..2 {
        let covered = before().and(&layer.availability_covers);
        let available = covered.from(&sets.writes.and(&sets.by_domain[from])).to(&sets.api_available[from]);
        for to in 0..2 {
            let there =
                if from == to { available.clone() } else { available.then(&before().to(&sets.transfers[from])) };
            let arrived = there.then(happens_before);
            let made_visible = before().and(&layer.visibility_covers).from(&sets.api_visible[to]);
            let seen = arrived.clone().to(&sets.api_visible[to]).then(&made_visible);
            let overwritten = match frame.model.overwrite {
                Overwrite::Availability => arrived.to(&sets.writes),
                _ => seen.clone().to(&sets.writes),
            };
            ordered = ordered.or(&overwritten.or(&seen.to(&sets.reads)).to(&sets.by_domain[to]));
        }
    }
    ordered
}

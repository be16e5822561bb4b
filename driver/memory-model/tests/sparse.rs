//! Traces of a thousand events, as a race detector records them: reads-from is known, so there is no search.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::traces::{Recorded, access, neighbours};
use spelter_memory_model::Model;
use spelter_memory_model::axioms::violation;
use spelter_memory_model::event::{Action, Agent, Class, Domain, Event, Operation, Trace};
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{Choice, Frame, Source, conflicts, races};
use spelter_memory_model::row::SparseRow;

fn race_count(trace: &Trace, sources: Vec<Option<Source>>) -> (usize, bool) {
    let frame = Frame::<SparseRow>::new(trace, Model::SPEC);
    let choice = Choice { sources, modification_order: Relation::new(frame.n) };
    let order = frame.order(&choice);
    let consistent = violation(&frame, &choice, &order).is_none();
    (races(&conflicts(&frame), &order.location_order).len(), consistent)
}

#[test]
fn a_barrier_orders_neighbours_in_a_trace_of_768_events() {
    let Recorded { trace, sources, .. } = neighbours(256, 64, Class::Uniform);
    assert_eq!(race_count(&trace, sources), (0, true));
}

#[test]
fn a_barrier_for_other_memory_leaves_a_race_for_each_invocation() {
    let Recorded { trace, sources, .. } = neighbours(256, 64, Class::Workgroup);
    assert_eq!(race_count(&trace, sources), (256, true));
}

/// The host writes, flushes and submits; the device updates the values; a barrier makes them available to the host
/// domain; the host reads.
fn round_trip(with_barrier: bool) -> (usize, bool) {
    let device = Agent::Device { subgroup: 0, workgroup: 0, queue_family: 0, device: 0 };
    let agents = vec![Agent::Host, device, device, device, Agent::Host];
    let private = |writes: bool, reference: u32| {
        let mut operation = access(writes, 0, 0..4);
        let access = operation.access_mut().unwrap();
        access.non_private = false;
        access.reference = reference;
        operation
    };
    let api = |action| Operation::new(action);
    let mut steps = vec![
        (0, private(true, 0)),
        (0, api(Action::Available(Domain::Host))),
        (1, api(Action::Transfer { from: Domain::Host, to: Domain::Device })),
        (1, api(Action::Visible(Domain::Device))),
        (2, private(false, 1)),
        (2, private(true, 1)),
    ];
    if with_barrier {
        steps.extend([
            (3, api(Action::Available(Domain::Device))),
            (3, api(Action::Transfer { from: Domain::Device, to: Domain::Host })),
            (3, api(Action::Visible(Domain::Host))),
        ]);
    }
    steps.push((4, private(false, 2)));
    let events: Vec<_> = steps.into_iter().map(|(thread, operation)| Event::new(thread, operation)).collect();
    let mut system = Vec::new();
    for a in 0..events.len() {
        // Each step waits for the one before, whatever its agent.
        system.extend((a + 1..events.len()).map(|b| (a, b)));
    }
    let mut sources = vec![None; events.len()];
    sources[4] = Some(Source::Write(0));
    *sources.last_mut().unwrap() = Some(Source::Write(5));
    race_count(&Trace { agents, events, system, ..Trace::default() }, sources)
}

#[test]
fn host_and_device_exchange_memory_through_their_domains() {
    assert_eq!(round_trip(true), (0, true));
    // The device's write is not available to the host domain, so the last read races with it. The read also races with
    // the first write of the host: it uses another reference, and nothing makes the host domain visible to it.
    let (races, _) = round_trip(false);
    assert!(races >= 1, "{races}");
}

#[test]
fn accesses_that_overlap_in_part_race_as_others_do() {
    let agents = [0, 1].map(|subgroup| Agent::Device { subgroup, workgroup: 0, queue_family: 0, device: 0 });
    let events = [(0, 0..4), (1, 2..6), (1, 8..12)].map(|(thread, bytes)| Event::new(thread, access(true, 0, bytes)));
    let trace = Trace { agents: agents.to_vec(), events: events.to_vec(), ..Trace::default() };
    assert_eq!(race_count(&trace, vec![None; 3]), (1, true));
}

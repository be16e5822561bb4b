//! Traces of a thousand events, as a race detector records them: reads-from is known, so there is no search.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use spelter_memory_model::Model;
use spelter_memory_model::axioms::violation;
use spelter_memory_model::event::{
    Access, Action, Agent, Class, Classes, Domain, Event, Location, Operation, Scope, Trace,
};
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{Choice, Frame, Source, conflicts, races};
use spelter_memory_model::row::SparseRow;

fn access(writes: bool, object: u32, bytes: std::ops::Range<u64>) -> Operation {
    let mut operation = Operation::new(Action::Access(Access {
        reads: !writes,
        writes,
        atomic: false,
        non_private: true,
        available: false,
        visible: false,
        class: Class::Uniform,
        reference: object,
        location: Location { object, bytes },
    }));
    operation.complete();
    operation
}

fn barrier(class: Class) -> Operation {
    let mut operation = Operation::new(Action::ControlBarrier { execution: Scope::Workgroup });
    operation.acquire = true;
    operation.release = true;
    operation.semantics = Classes::NONE.with(class);
    operation.make_available = true;
    operation.make_visible = true;
    operation.scope = Some(Scope::Workgroup);
    operation
}

/// Each invocation writes its word, executes the barrier, and reads the word of its neighbour in the same workgroup.
fn neighbours(invocations: usize, workgroup: usize, class: Class) -> (Trace, Vec<Option<Source>>) {
    let mut trace = Trace::default();
    let mut sources = Vec::new();
    for thread in 0..invocations {
        let group = (thread / workgroup) as u32;
        let agent = Agent::Device { subgroup: (thread / 16) as u32, workgroup: group, queue_family: 0, device: 0 };
        trace.agents.push(agent);
        let neighbour = thread / workgroup * workgroup + (thread + 1) % workgroup;
        let word = |at: usize| 4 * at as u64..4 * at as u64 + 4;
        for (operation, instance) in [
            (access(true, 0, word(thread)), None),
            (barrier(class), Some(group)),
            (access(false, 0, word(neighbour)), None),
        ] {
            trace.events.push(Event { thread, operation, instance });
        }
        sources.extend([None, None, Some(Source::Write(neighbour * 3))]);
    }
    (trace, sources)
}

fn race_count(trace: &Trace, sources: Vec<Option<Source>>) -> (usize, bool) {
    let frame = Frame::<SparseRow>::new(trace, Model::SPEC);
    let choice = Choice { sources, modification_order: Relation::new(frame.n) };
    let order = frame.order(&choice);
    let consistent = violation(&frame, &choice, &order).is_none();
    (races(&conflicts(&frame), &order.location_order).len(), consistent)
}

#[test]
fn a_barrier_orders_neighbours_in_a_trace_of_768_events() {
    let (trace, sources) = neighbours(256, 64, Class::Uniform);
    assert_eq!(race_count(&trace, sources), (0, true));
}

#[test]
fn a_barrier_for_other_memory_leaves_a_race_for_each_invocation() {
    let (trace, sources) = neighbours(256, 64, Class::Workgroup);
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
    let events: Vec<_> =
        steps.into_iter().map(|(thread, operation)| Event { thread, operation, instance: None }).collect();
    let mut system = Vec::new();
    for a in 0..events.len() {
        // Each step waits for the one before, whatever its agent.
        system.extend((a + 1..events.len()).map(|b| (a, b)));
    }
    let mut sources = vec![None; events.len()];
    sources[4] = Some(Source::Write(0));
    *sources.last_mut().unwrap() = Some(Source::Write(5));
    race_count(&Trace { agents, events, system }, sources)
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
    let events = [(0, 0..4), (1, 2..6), (1, 8..12)].map(|(thread, bytes)| Event {
        thread,
        operation: access(true, 0, bytes),
        instance: None,
    });
    let trace = Trace { agents: agents.to_vec(), events: events.to_vec(), system: vec![] };
    assert_eq!(race_count(&trace, vec![None; 3]), (1, true));
}

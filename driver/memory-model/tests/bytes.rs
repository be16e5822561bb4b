//! Accesses of different sizes: location order, races, visible-to and the axioms are for each byte.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::random;
use std::ops::Range;

use proptest::prelude::prop;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use spelter_memory_model::Model;
use spelter_memory_model::answer::{Options, find_race};
use spelter_memory_model::axioms::violation;
use spelter_memory_model::event::{Access, Action, Agent, Class, Classes, Event, Location, Operation, Scope, Trace};
use spelter_memory_model::program::unroll;
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{Choice, Frame, Order, Source, conflicts, overlap_in_part, races, visible_to};
use spelter_memory_model::row::SparseRow;

/// A non-private access of object 0 without availability and visibility.
fn plain(writes: bool, bytes: Range<u64>) -> Operation {
    Operation::new(Action::Access(Access {
        reads: !writes,
        writes,
        atomic: false,
        non_private: true,
        available: false,
        visible: false,
        class: Class::Uniform,
        reference: 0,
        location: Location { object: 0, bytes },
    }))
}

fn store(bytes: Range<u64>) -> Operation {
    plain(true, bytes)
}

fn load(bytes: Range<u64>) -> Operation {
    plain(false, bytes)
}

/// `MakePointerAvailable` or `MakePointerVisible` for the workgroup.
fn passed(mut operation: Operation) -> Operation {
    operation.scope = Some(Scope::Workgroup);
    let access = operation.access_mut().unwrap();
    (access.available, access.visible) = (access.writes, access.reads);
    operation
}

/// A control barrier that orders memory, but makes nothing available or visible.
fn barrier() -> Operation {
    let mut operation = Operation::new(Action::ControlBarrier { execution: Scope::Workgroup });
    (operation.acquire, operation.release) = (true, true);
    operation.semantics = Classes::NONE.with(Class::Uniform);
    operation.scope = Some(Scope::Workgroup);
    operation
}

/// Two subgroups of a workgroup: the first executes `before` and the barrier, the second the barrier and `after`.
fn across(before: &[Operation], after: &[Operation]) -> Trace {
    let agents = [0, 1].map(|subgroup| Agent::Device { subgroup, workgroup: 0, queue_family: 0, device: 0 });
    let event = |thread: usize, operation: &Operation| Event {
        instance: operation.control_barrier().then_some(0),
        ..Event::new(thread, operation.clone())
    };
    let wait = barrier();
    let first = before.iter().chain([&wait]).map(|operation| event(0, operation));
    let second = [&wait].into_iter().chain(after).map(|operation| event(1, operation));
    Trace { agents: agents.to_vec(), events: first.chain(second).collect(), ..Trace::default() }
}

struct Verdict {
    races: Vec<(usize, usize)>,
    visible: Vec<(usize, usize)>,
    consistent: bool,
}

/// The verdict on an execution with these sources of reads.
fn verdict(trace: &Trace, sources: &[(usize, Source)]) -> Verdict {
    let (frame, choice, order) = relations(trace, sources, Model::SPEC);
    Verdict {
        races: races(&conflicts(&frame), &order.location_order).iter().collect(),
        visible: visible_to(&frame, &order).iter().collect(),
        consistent: violation(&frame, &choice, &order).is_none(),
    }
}

fn relations(
    trace: &Trace,
    sources: &[(usize, Source)],
    model: Model,
) -> (Frame<SparseRow>, Choice<SparseRow>, Order<SparseRow>) {
    let frame = Frame::<SparseRow>::new(trace, model);
    let mut choice = Choice { sources: vec![None; frame.n], modification_order: Relation::new(frame.n) };
    sources.iter().for_each(|(read, source)| choice.sources[*read] = Some(*source));
    let order = frame.order(&choice);
    (frame, choice, order)
}

#[test]
fn what_is_available_in_part_races_for_the_rest() {
    // 0: the write of eight bytes; 1: a write that makes four of them available; 2, 3: the barrier; 4: the read.
    let trace = |read: Range<u64>| across(&[store(0..8), passed(store(0..4))], &[passed(load(read))]);
    assert_eq!(verdict(&trace(0..8), &[]).races, [(0, 4)], "bytes 4 to 8 are not available");
    assert_eq!(verdict(&trace(4..8), &[]).races, [(0, 4)]);
    assert!(verdict(&trace(0..4), &[]).races.is_empty());
    assert!(verdict(&trace(1..3), &[]).races.is_empty());
}

#[test]
fn what_is_visible_in_part_races_for_the_rest() {
    // 0: the available write; 1, 2: the barrier; 3: a read that makes bytes visible; 4: the read of eight bytes.
    let trace = |seen: Range<u64>| across(&[passed(store(0..8))], &[passed(load(seen)), load(0..8)]);
    assert_eq!(verdict(&trace(0..4), &[]).races, [(0, 4)], "bytes 4 to 8 are not visible");
    assert_eq!(verdict(&trace(4..8), &[]).races, [(0, 4)]);
    assert!(verdict(&trace(0..8), &[]).races.is_empty());
}

/// "It is possible for there to be a write between X and Y that overwrites a subset of the memory locations, but the
/// remaining memory locations will still be visible-to Y."
#[test]
fn the_rest_of_an_overwritten_write_stays_visible() {
    // 0: eight bytes; 1: four of them again; 2, 3: the barrier; 4 and 5: the reads.
    let before = [passed(store(0..8)), passed(store(0..4))];
    let whole = across(&before, &[passed(load(0..8))]);
    assert_eq!(verdict(&whole, &[]).visible, [(0, 4), (1, 4)]);
    let hidden = across(&before, &[passed(load(0..4))]);
    assert_eq!(verdict(&hidden, &[]).visible, [(1, 4)]);
    // So a read of all bytes takes each half from another write.
    let [first, second] = [Source::Write(0), Source::Write(1)];
    let halves = across(&before, &[passed(load(0..4)), passed(load(4..8))]);
    assert!(verdict(&halves, &[(4, second), (5, first)]).consistent);
    assert!(!verdict(&halves, &[(4, first), (5, first)]).consistent, "bytes 0 to 4 were overwritten");
    assert!(!verdict(&halves, &[(4, second), (5, Source::Initial)]).consistent, "bytes 4 to 8 were written");
    assert!(!verdict(&whole, &[(4, first)]).consistent);
}

#[test]
fn racing_accesses_may_be_torn() {
    // No barrier: one invocation writes eight bytes, another reads them in halves.
    let agents = [0, 1].map(|subgroup| Agent::Device { subgroup, workgroup: 0, queue_family: 0, device: 0 });
    let events = [(0, store(0..8)), (1, load(0..4)), (1, load(4..8))];
    let events = events.map(|(thread, operation)| Event::new(thread, operation));
    let trace = Trace { agents: agents.to_vec(), events: events.to_vec(), ..Trace::default() };
    let torn = verdict(&trace, &[(1, Source::Write(0)), (2, Source::Initial)]);
    assert!(torn.consistent);
    assert_eq!(torn.races, [(0, 1), (0, 2)]);
}

#[test]
fn atomics_of_different_sizes_are_not_mutually_ordered() {
    let atomic = |writes: bool, bytes: Range<u64>| {
        let mut operation = plain(writes, bytes);
        operation.scope = Some(Scope::Device);
        operation.access_mut().unwrap().atomic = true;
        operation.complete();
        operation
    };
    let agents = [0, 1].map(|subgroup| Agent::Device { subgroup, workgroup: 0, queue_family: 0, device: 0 });
    let trace = |second: Range<u64>| {
        let events = [(0, atomic(true, 0..8)), (1, atomic(true, second))];
        let events = events.map(|(thread, operation)| Event::new(thread, operation));
        Trace { agents: agents.to_vec(), events: events.to_vec(), ..Trace::default() }
    };
    assert!(verdict(&trace(0..8), &[]).races.is_empty());
    assert_eq!(verdict(&trace(0..4), &[]).races, [(0, 1)], "\"they access the same set of memory locations\"");
    assert!(verdict(&trace(8..16), &[]).races.is_empty());
}

/// Each of 256 invocations writes a word; after the barrier it reads two words that begin at its own.
#[test]
fn a_recording_of_words_and_pairs_needs_two_layers() {
    let mut trace = Trace::default();
    for thread in 0..256usize {
        let (group, at) = (thread as u32 / 64, 4 * thread as u64);
        trace.agents.push(Agent::Device { subgroup: thread as u32 / 16, workgroup: group, queue_family: 0, device: 0 });
        let mut wait = barrier();
        (wait.make_available, wait.make_visible) = (true, true);
        for (operation, instance) in [(store(at..at + 4), None), (wait, Some(group)), (load(at..at + 8), None)] {
            trace.events.push(Event { instance, ..Event::new(thread, operation) });
        }
    }
    let (frame, _, order) = relations(&trace, &[], Model::SPEC);
    assert_eq!(frame.layers.len(), 2);
    // The last invocation of a workgroup reads the first word of the next one, which has another barrier.
    let races: Vec<_> = races(&conflicts(&frame), &order.location_order).iter().collect();
    assert_eq!(races, [63, 127, 191].map(|thread| (3 * thread + 2, 3 * (thread + 1))));
}

#[test]
fn a_search_refuses_programs_whose_accesses_overlap_in_part() {
    let recipe = |bytes: Range<u64>| {
        let mut program =
            random::program(&[(0, vec![(0, 0, 0, 0, false, false)]), (1, vec![(1, 0, 0, 0, false, false)])]);
        program.operation_mut((1, 0)).unwrap().access_mut().unwrap().location.bytes = bytes;
        program
    };
    assert!(find_race(&recipe(0..4), None, &Options::default()).unwrap().is_some());
    let error = find_race(&recipe(2..6), None, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("accesses overlap in part"), "{error}");
}

/// The trace with one byte only: accesses that contain it have one location, each other one has its own.
fn only(trace: &Trace, byte: u64) -> Trace {
    let mut trace = trace.clone();
    for (number, event) in trace.events.iter_mut().enumerate() {
        if let Some(access) = event.operation.access_mut() {
            let here = access.location.object == 0 && access.location.bytes.contains(&byte);
            access.location = Location::whole(if here { 0 } else { 1 + number as u32 });
        }
    }
    trace
}

/// Random programs with plain accesses to parts of eight bytes: each relation agrees with that of every byte alone.
#[test]
fn every_byte_is_as_if_it_were_alone() {
    const BYTES: u64 = 8;
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let strategy = (random::threads(3, 4), prop::collection::vec((0..BYTES, 1..=BYTES), 12));
    let (mut layered, mut racing, mut ordered) = (0, 0, 0);
    for number in 0..8000 {
        let (threads, ranges) = strategy.new_tree(&mut runner).unwrap().current();
        let mut trace = unroll(&random::program(&threads), 1, false).unwrap().remove(0).trace;
        for (event, (start, len)) in trace.events.iter_mut().zip(ranges) {
            let Some(access) = event.operation.access_mut() else { continue };
            // Two atomics of different ranges that share the byte would become mutually ordered.
            if access.atomic || access.location.object != 0 {
                access.location.object += 8;
            } else {
                access.location.bytes = start..(start + len).min(BYTES);
            }
        }
        let model = [Model::SPEC, "spec,chains=alloy".parse().unwrap(), "spec,overwrite=visibility".parse().unwrap()];
        let model: Model = model[number % model.len()];
        let (frame, _, order) = relations(&trace, &[], model);
        layered += usize::from(overlap_in_part(&trace));
        let alone: Vec<_> = (0..BYTES).map(|byte| relations(&only(&trace, byte), &[], model)).collect();
        let shared = |a: usize, b: usize| -> Vec<_> {
            alone.iter().filter(|(frame, ..)| a != b && frame.same_location.contains(a, b)).collect()
        };
        let found = races(&conflicts(&frame), &order.location_order);
        let seen = visible_to(&frame, &order);
        for (a, b) in (0..frame.n).flat_map(|a| (0..frame.n).map(move |b| (a, b))) {
            let bytes = shared(a, b);
            if bytes.is_empty() {
                continue;
            }
            let before = bytes.iter().all(|(_, _, order)| order.location_order.contains(a, b));
            assert_eq!(order.location_order.contains(a, b), before, "{a} before {b} in {trace:?}");
            let visible = bytes.iter().any(|(frame, _, order)| visible_to(frame, order).contains(a, b));
            assert_eq!(seen.contains(a, b), visible, "{a} visible to {b} in {trace:?}");
            let race = bytes
                .iter()
                .any(|(frame, _, order)| races(&conflicts(frame), &order.location_order).contains(a.min(b), a.max(b)));
            assert_eq!(found.contains(a.min(b), a.max(b)), race, "{a} and {b} race in {trace:?}");
            (racing, ordered) = (racing + usize::from(race), ordered + usize::from(before));
        }
    }
    assert!(layered > 500 && racing > 500 && ordered > 200, "{layered} {racing} {ordered}");
}

//! A trace without repeated barriers has the races of the whole trace.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::random;
use std::collections::BTreeSet;

use crate::common::traces::{access, barrier, invocation, word};
use proptest::prelude::*;
use spelter_memory_model::Model;
use spelter_memory_model::compact::compact;
use spelter_memory_model::event::{Class, Event, Trace};
use spelter_memory_model::program::unroll;
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{Choice, Frame, Source, conflicts, races};
use spelter_memory_model::row::SparseRow;

/// The races of a trace.
fn racing(trace: &Trace, sources: &[Option<Source>], model: Model) -> BTreeSet<(usize, usize)> {
    let frame = Frame::<SparseRow>::new(trace, model);
    let mut modification_order = Relation::new(frame.n);
    let writes = frame.sets.writes.clone();
    // By their numbers: any order will do.
    frame.mutual.clone().from(&writes).to(&writes).iter().filter(|(a, b)| a < b).for_each(|(a, b)| {
        modification_order.insert(a, b);
    });
    let order = frame.order(&Choice { sources: sources.to_vec(), modification_order });
    races(&conflicts(&frame), &order.location_order).iter().collect()
}

/// The trace with each control barrier repeated once or more, wherever `repeats` says so for its instance.
fn repeated(trace: &Trace, repeats: &[u8]) -> (Trace, Vec<usize>) {
    let mut long = Trace { events: Vec::new(), ..trace.clone() };
    let mut numbers = Vec::new();
    for event in &trace.events {
        numbers.push(long.events.len());
        long.events.push(event.clone());
        if let Some(instance) = event.instance {
            for more in 0..repeats[instance as usize % repeats.len()] % 3 {
                let instance = Some(instance + 1000 * (1 + u32::from(more)));
                long.events.push(Event { instance, ..event.clone() });
            }
        }
    }
    long.system = trace.system.iter().map(|&(a, b)| (numbers[a], numbers[b])).collect();
    (long, numbers)
}

#[test]
fn a_loop_whose_accesses_were_not_kept_has_one_barrier() {
    let mut trace = Trace { agents: vec![invocation(0, 2), invocation(1, 2)], ..Trace::default() };
    for thread in 0..2 {
        let barriers = (0..100).map(|instance| (barrier(Class::Uniform), Some(instance)));
        let first = (access(true, 0, word(thread)), None);
        let last = (access(false, 0, word(1 - thread)), None);
        for (operation, instance) in std::iter::once(first).chain(barriers).chain([last]) {
            trace.events.push(Event { instance, ..Event::new(thread, operation) });
        }
    }
    let short = compact(&trace);
    assert_eq!(short.events, [0, 1, 101, 102, 103, 203]);
    assert_eq!((short.event(103), short.event(104)), (Some(4), None));
    let mut sources = vec![None; trace.len()];
    (sources[101], sources[203]) = (Some(Source::Write(102)), Some(Source::Write(0)));
    let wanted = [None, None, Some(Source::Write(3)), None, None, Some(Source::Write(0))];
    assert_eq!(short.sources(&sources), wanted);
    assert_eq!(short.pairs(&[(101, 102), (102, 150)]), [(2, 3)]);
    // The second barrier of thread 1 is another one, or has an order of its own.
    let mut other = trace.clone();
    other.events[104].instance = Some(1000);
    assert!(compact(&other).event(2).is_some());
    trace.system.push((2, 203));
    assert!(compact(&trace).event(2).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_remains_races_as_in_the_whole_trace(
        threads in random::threads(3, 6),
        repeats in prop::collection::vec(any::<u8>(), 1..6),
        picks in prop::collection::vec(any::<u8>(), 18),
        model in 0usize..4,
    ) {
        let models = ["spec", "khronos", "1.1.90", "spec,happens-before=transitive"];
        let model: Model = models[model].parse().unwrap();
        let program = random::program(&threads);
        let Some(instance) = unroll(&program, 1, false).unwrap().into_iter().next() else { return Ok(()) };
        let (long, numbers) = repeated(&instance.trace, &repeats);
        // Any atomic reads from any write of its bytes.
        let writes: Vec<_> = (0..long.len()).filter(|&event| long.operation(event).writes()).collect();
        let source = |event: usize| {
            let read = long.operation(event).access().filter(|access| access.reads)?;
            let fits = |write: &&usize| {
                **write != event
                    && long.operation(**write).access().is_some_and(|access| access.location == read.location)
            };
            let fitting: Vec<_> = writes.iter().filter(fits).collect();
            let at = usize::from(picks[event % picks.len()]) % (fitting.len() + 1);
            Some(fitting.get(at).map_or(Source::Initial, |write| Source::Write(**write)))
        };
        let sources: Vec<_> = (0..long.len()).map(source).collect();
        let short = compact(&long);
        let kept = |&number: &usize| short.event(number).is_some() || long.events[number].instance.is_some();
        prop_assert!(numbers.iter().all(kept));
        let whole = racing(&long, &sources, model);
        let kept: BTreeSet<_> = racing(&short.trace, &short.sources(&sources), model)
            .into_iter()
            .map(|(a, b)| (short.events[a], short.events[b]))
            .collect();
        prop_assert_eq!(kept, whole);
    }
}

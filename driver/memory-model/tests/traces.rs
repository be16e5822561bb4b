//! Slices of runs: the verdict and the explanation of a trace are those of the search on the same execution, and its
//! repairs are repairs of the program from which it comes.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use crate::common;
use crate::common::random;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use spelter_memory_model::Model;
use spelter_memory_model::answer::Execution;
use spelter_memory_model::explain::{self, Explanation, explain};
use spelter_memory_model::names::Numbers;
use spelter_memory_model::program::{Barrier, Instance, InstructionKind, Program, unroll};
use spelter_memory_model::relations::{Choice, Source};
use spelter_memory_model::repair::{self, Edit, TraceEdit, TraceEffort, apply};
use spelter_memory_model::search::{Limits, search};
use spelter_memory_model::slice::Slice;

/// The executions of a path, at most `max`; few steps, so that a large path gives some of them.
fn executions(instance: &Arc<Instance>, max: usize) -> Vec<Execution> {
    let mut found = Vec::new();
    let limits = Limits { steps: 20_000, ..Limits::default() };
    let _ = search(instance, Model::SPEC, limits, &mut |execution| {
        found.push(Execution {
            instance: instance.clone(),
            sources: execution.sources.to_vec(),
            modification_order: execution.modification_order.to_vec(),
            races: execution.races.to_vec(),
            values: execution.values.clone(),
        });
        if found.len() == max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

fn recorded(execution: &Execution) -> Choice<u128> {
    Choice::recorded(execution.sources.clone(), &execution.modification_order).unwrap()
}

/// The conditions with their answers, without texts, whose names differ.
fn conditions(explanation: &Explanation) -> Vec<(&'static str, bool, explain::Reason)> {
    let conjuncts = explanation.conjuncts.iter();
    conjuncts.map(|conjunct| (conjunct.question, conjunct.holds, conjunct.reason.clone())).collect()
}

/// Fails if the trace of an execution has another verdict or explanation than the execution.
fn compare(name: &str, program: &Program, execution: &Execution) {
    let trace = &execution.instance.trace;
    let choice = recorded(execution);
    let slice = Slice::new(trace, &choice, Model::SPEC).unwrap();
    assert_eq!(slice.races().iter().collect::<Vec<_>>(), execution.races, "{name}");
    assert_eq!(slice.violation(), None, "{name}");
    for (at, &pair) in execution.races.iter().enumerate() {
        assert!(slice.is_race(pair.0, pair.1) && slice.is_race(pair.1, pair.0), "{name}");
        let found = explain::of_trace(trace, &choice, pair, Model::SPEC, &Numbers(trace)).unwrap();
        let wanted = explain(program, execution, Model::SPEC, at).unwrap();
        assert_eq!((found.pair, conditions(&found)), (wanted.pair, conditions(&wanted)), "{name} {pair:?}");
        assert!(found.cause().is_some(), "{name} {pair:?}: {found:#?}");
    }
    for (a, b) in (0..trace.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
        if slice.conflicts(a, b) && !slice.is_race(a, b) {
            let found = explain::of_trace(trace, &choice, (a, b), Model::SPEC, &Numbers(trace)).unwrap();
            assert_eq!(found.cause(), None, "{name} {a} {b}");
            let none = repair::of_trace(trace, &choice, (a, b), Model::SPEC, TraceEffort::default()).unwrap();
            assert!(none.repairs.is_empty());
        }
    }
}

/// An event of an edited program: the instruction that it executes in the program without edits, `None` if it is new.
fn back(edited: &Program, (thread, at): (usize, usize)) -> Option<(usize, usize)> {
    let inserted = |at: usize| {
        matches!(edited.threads[thread].code[at].kind,
            InstructionKind::Execute { barrier: Some(Barrier::Dynamic(number)), .. } if number >= 1 << 30)
    };
    (!inserted(at)).then(|| (thread, at - (0..at).filter(|&at| inserted(at)).count()))
}

/// The number of executions of the edited program with the atomics' sources and modification orders of `execution`;
/// fails if the pair races in one of them. `None` if the program is too large, or branches.
fn verified(
    program: &Program,
    execution: &Execution,
    pair: (usize, usize),
    edits: &[TraceEdit],
    racing_reads_change: bool,
) -> Option<usize> {
    if !program.is_straight() {
        return None;
    }
    let sites = program.sites();
    let place = |site| {
        let in_thread = |thread: usize| sites[thread].iter().position(|found| *found == site).map(|at| (thread, at));
        (0..sites.len()).find_map(in_thread).unwrap()
    };
    let edits: BTreeSet<Edit> = edits
        .iter()
        .map(|edit| match edit {
            TraceEdit::Code(edit) => edit.map(place),
            TraceEdit::Api(_) => panic!("{edit:?}: a litmus test has no commands"),
        })
        .collect();
    // What a plain read has read is an observation, which a repair may change.
    let atomic = |at: (usize, usize)| program.operations().any(|(place, operation)| place == at && operation.atomic());
    let origin = |event: usize| execution.instance.origins[event];
    let racing = [origin(pair.0), origin(pair.1)];
    let keeps = |at: &(usize, usize)| atomic(*at) && !(racing_reads_change && racing.contains(at));
    let mut open = program.clone();
    open.pins.retain(|pin| keeps(&pin.read));
    let edited = apply(&open, &edits);
    let facts =
        |sources: &[Option<Source>], orders: &[(usize, usize)], origin: &dyn Fn(usize) -> Option<(usize, usize)>| {
            let mut reads = BTreeSet::new();
            for (read, source) in sources.iter().enumerate() {
                let Some((read, source)) = origin(read).filter(keeps).zip(*source) else { continue };
                reads.insert((
                    read,
                    match source {
                        Source::Initial => None,
                        Source::Write(write) => origin(write),
                    },
                ));
            }
            let orders: BTreeSet<_> = orders.iter().map(|&(a, b)| (origin(a), origin(b))).collect();
            (reads, orders)
        };
    let (reads, orders) = facts(&execution.sources, &execution.modification_order, &|event| Some(origin(event)));
    let mut matching = 0;
    for instance in unroll(&edited, 1, false).ok()? {
        let limits = Limits { steps: 50_000, ..Limits::default() };
        let places: Vec<_> = instance.origins.iter().map(|at| back(&edited, *at)).collect();
        search(&instance, Model::SPEC, limits, &mut |found| {
            let (read, ordered) = facts(found.sources, found.modification_order, &|event| places[event]);
            if read == reads && ordered.is_superset(&orders) {
                matching += 1;
                let pairs = found.races.iter().map(|&(a, b)| [places[a], places[b]]);
                let wanted = [Some(origin(pair.0)), Some(origin(pair.1))];
                for mut race in pairs {
                    assert_ne!(race, wanted, "{edits:?} in {program:?}");
                    race.reverse();
                    assert_ne!(race, wanted, "{edits:?} in {program:?}");
                }
            }
            ControlFlow::Continue(())
        })
        .ok()?;
    }
    Some(matching)
}

/// Number of races, of repairs, and of repairs that the search on the program verified; and the races that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Count {
    races: usize,
    repairs: usize,
    verified: usize,
    without: BTreeSet<String>,
}

fn check(name: &str, program: &Program, count: &mut Count, max: usize) {
    let mut seen = BTreeSet::new();
    for instance in unroll(program, 2, true).unwrap().into_iter().take(16) {
        for execution in executions(&Arc::new(instance), max) {
            compare(name, program, &execution);
            for &pair in &execution.races {
                let places = [pair.0, pair.1].map(|event| execution.instance.origins[event]);
                if seen.len() >= 4 || !seen.insert(places) {
                    continue;
                }
                let choice = recorded(&execution);
                let trace = &execution.instance.trace;
                let effort = TraceEffort { traces: 300, ..TraceEffort::default() };
                let found = repair::of_trace(trace, &choice, pair, Model::SPEC, effort).unwrap();
                count.races += 1;
                if found.repairs.is_empty() {
                    let names = Numbers(trace);
                    let explanation = explain::of_trace(trace, &choice, pair, Model::SPEC, &names).unwrap();
                    let code = explanation.cause().unwrap().reason.code();
                    count.without.insert(format!("{} {code}", program.name));
                }
                for edits in &found.repairs {
                    count.repairs += 1;
                    if let Some(matching) = verified(program, &execution, pair, edits, found.racing_reads_change) {
                        assert!(matching > 0, "{name}: {edits:?}");
                        count.verified += 1;
                    }
                }
            }
        }
    }
}

#[test]
fn traces_of_the_corpus_are_decided_explained_and_repaired_as_its_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    let mut count = Count::default();
    let mut files = common::files(&folder, "test");
    files.extend(common::files(&folder, "litmus"));
    assert!(files.len() > 100, "{}", files.len());
    for file in files {
        check(&file.display().to_string(), &common::test(&file).program, &mut count, 40);
    }
    assert!(count.races >= 35 && count.repairs > count.races && count.verified == count.repairs, "{count:?}");
    let without: Vec<&str> = count.without.iter().map(String::as_str).collect();
    // Shaders cannot order different references, nor can commands that the test does not have be changed.
    assert_eq!(
        without,
        [
            "aliases different-reference",
            "aliassamethread different-reference",
            "aliassamethread2 different-reference",
            "ssw4 api-not-available"
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn traces_of_random_programs_are_decided_explained_and_repaired_as_the_programs(
        threads in random::threads(3, 4),
    ) {
        check("random", &random::program(&threads), &mut Count::default(), 10);
    }
}

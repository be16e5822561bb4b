//! The pruned search against brute force: the same executions on every test, on 10,000 random programs, by every
//! reading of the model; and the widths of rows against each other.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use std::ops::ControlFlow;
use std::path::Path;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use spelter_memory_model::Model;
use spelter_memory_model::axioms::violation;
use spelter_memory_model::program::{Instance, Program, unroll};
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{Choice, Frame, conflicts, races, visible_to};
use spelter_memory_model::row::{Row, SparseRow};
use spelter_memory_model::search::{Limits, Signature, brute_force, search};

mod common;
#[path = "common/random.rs"]
mod random;

const MODELS: [&str; 9] = [
    "spec",
    "khronos",
    "dartagnan",
    "1.1.90",
    "spec,chains=single",
    "spec,happens-before=transitive",
    "spec,from-reads=modification-order",
    "spec,overwrite=visibility,coverage=symmetric",
    "spec,scoped-order-is-location-order=yes",
];

fn pruned(instance: &Instance, model: Model) -> Vec<Signature> {
    let mut found = Vec::new();
    search(instance, model, Limits::default(), &mut |execution| {
        let mut order = execution.modification_order.to_vec();
        order.sort_unstable();
        found.push((execution.sources.to_vec(), order));
        ControlFlow::Continue(())
    })
    .unwrap();
    found.sort();
    found
}

/// Compares where brute force is possible; how many executions there are, or `None`.
fn compare(name: &str, instance: &Instance, model: &str, most: u64) -> Option<usize> {
    let mut instance = instance.clone();
    // Brute force does not ask for values.
    instance.constraints.clear();
    instance.values.fill(None);
    let reading: Model = model.parse().unwrap();
    let expected = brute_force(&instance, reading, true, most).ok()?;
    assert_eq!(pruned(&instance, reading), expected, "{name} by {model}");
    Some(expected.len())
}

fn each_instance(folder: &Path, extension: &str, mut visit: impl FnMut(&str, &Program, &Instance)) {
    for file in common::files(folder, extension) {
        let test = common::test(&file);
        for instance in unroll(&test.program, 1, true).unwrap() {
            visit(&test.program.name, &test.program, &instance);
        }
    }
}

#[test]
fn the_same_executions_on_every_test() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus")];
    folders.extend(common::data().map(|data| data.join("dat3m")));
    let (mut compared, mut executions, mut skipped) = (0, 0, 0);
    for folder in folders {
        for extension in ["test", "litmus"] {
            each_instance(&folder, extension, |name, _, instance| {
                for model in MODELS {
                    // More candidates take minutes and were all equal once, too.
                    match compare(name, instance, model, 1000) {
                        Some(found) => {
                            compared += 1;
                            executions += found;
                        }
                        None => skipped += 1,
                    }
                }
            });
        }
    }
    eprintln!("{compared} comparisons, {executions} executions, {skipped} too large for brute force");
    assert!(compared > 9 * 100 && executions > 900);
}

/// A fixed stream of random programs.
fn random_programs(count: usize, threads: usize, events: usize) -> impl Iterator<Item = Program> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = random::threads(threads, events);
    (0..count).map(move |_| random::program(&strategy.new_tree(&mut runner).unwrap().current()))
}

#[test]
fn the_same_executions_on_10_000_random_programs() {
    let (mut compared, mut executions, mut number) = (0, 0, 0);
    for program in random_programs(20_000, 3, 4) {
        number += 1;
        let instance = unroll(&program, 1, false).unwrap().remove(0);
        let model = MODELS[number % MODELS.len()];
        if let Some(found) = compare("random", &instance, model, 3000) {
            compared += 1;
            executions += found;
        }
        if compared == 10_000 {
            break;
        }
    }
    assert_eq!(compared, 10_000);
    assert!(executions > 10_000, "{executions}");
}

/// Everything that the model says about an execution, with one kind of row.
fn verdict<R: Row>(instance: &Instance, model: Model, signature: &Signature) -> (Vec<Vec<(usize, usize)>>, bool) {
    let frame = Frame::<R>::new(&instance.trace, model);
    let mut modification_order = Relation::new(frame.n);
    signature.1.iter().for_each(|&(a, b)| modification_order.insert(a, b));
    let choice = Choice { sources: signature.0.clone(), modification_order };
    let order = frame.order(&choice);
    let pairs = |relation: &Relation<R>| relation.iter().collect::<Vec<_>>();
    let relations = [
        pairs(&order.synchronizes_with),
        pairs(&order.happens_before),
        pairs(&order.location_order),
        pairs(&races(&conflicts(&frame), &order.location_order)),
        pairs(&visible_to(&frame, &order.location_order)),
    ];
    (relations.to_vec(), violation(&frame, &choice, &order).is_none())
}

#[test]
fn every_width_of_rows_gives_the_same_verdict() {
    let mut asked = 0;
    for (number, program) in random_programs(1500, 3, 5).enumerate() {
        let instance = unroll(&program, 1, false).unwrap().remove(0);
        let model: Model = MODELS[number % MODELS.len()].parse().unwrap();
        let Ok(all) = brute_force(&instance, model, false, 2000) else { continue };
        for signature in all.iter().step_by(all.len().div_ceil(3).max(1)) {
            let word = verdict::<u16>(&instance, model, signature);
            assert_eq!(verdict::<u64>(&instance, model, signature), word);
            assert_eq!(verdict::<u128>(&instance, model, signature), word);
            assert_eq!(verdict::<SparseRow>(&instance, model, signature), word);
            asked += 1;
        }
    }
    assert!(asked > 1000, "{asked}");
}

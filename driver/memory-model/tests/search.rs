//! The pruned search compared with brute force: the same executions for every test and 10,000 random programs, in every
//! reading of the model; and rows of different widths compared with each other.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use crate::common;
use crate::common::random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::RngExt;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use spelter_memory_model::Model;
use spelter_memory_model::axioms::violation;
use spelter_memory_model::program::{Instance, Program, unroll};
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{Choice, Frame, conflicts, races, visible_to};
use spelter_memory_model::row::{Row, SparseRow};
use spelter_memory_model::search::{Candidates, Limits, Signature, brute_force, brute_force_values, search};

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

/// An execution with the values of its reads.
type Valued = (Signature, Vec<Option<i64>>);

fn pruned(instance: &Instance, model: Model) -> Vec<Valued> {
    let mut found = Vec::new();
    search(instance, model, Limits::default(), &mut |execution| {
        let mut order = execution.modification_order.to_vec();
        order.sort_unstable();
        found.push(((execution.sources.to_vec(), order), execution.values.read.clone()));
        ControlFlow::Continue(())
    })
    .unwrap();
    found.sort();
    found
}

/// Compares sources, modification orders and values. Returns the number of executions, or `None` if brute force is too
/// expensive.
fn compare(name: &str, instance: &Instance, model: &str, max: u64) -> Option<usize> {
    let reading: Model = model.parse().unwrap();
    let signatures = brute_force(instance, reading, true, max).ok()?;
    let with_values = |signature: Signature| {
        let values = brute_force_values(instance, &signature.0);
        values.into_iter().map(move |values| (signature.clone(), values)).collect::<Vec<_>>()
    };
    let expected: Vec<_> = signatures.into_iter().flat_map(with_values).collect();
    assert_eq!(pruned(instance, reading), expected, "{name} by {model}");
    Some(expected.len())
}

/// Visits the paths of the tests in a folder. Returns the number of files.
fn each_instance(folder: &Path, extension: &str, mut visit: impl FnMut(&str, &Instance)) -> usize {
    let files = common::files(folder, extension);
    for file in &files {
        let test = common::test(file);
        for instance in unroll(&test.program, 1, true).unwrap() {
            visit(&test.program.name, &instance);
        }
    }
    files.len()
}

/// Files with paths that have too many candidates for brute force, with the number of such paths: six threads of six
/// reads each give up to 1,099,511,627,776 (in a path of `xf-barrier`). These paths are tested by [`sample`].
const TOO_MANY: [(&str, usize); 8] = [
    ("xf-barrier", 6),
    ("xf-barrier-cbar-rlx-1", 6),
    ("xf-barrier-cbar-rlx-2", 6),
    ("xf-barrier-cbar-rlx-3", 6),
    ("xf-barrier-load-rlx-1", 6),
    ("xf-barrier-load-rlx-2", 6),
    ("xf-barrier-store-rlx-1", 6),
    ("xf-barrier-store-rlx-2", 6),
];
const MAX_CANDIDATES: u64 = 20_000;

#[test]
fn the_same_executions_on_every_test() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus")];
    folders.extend(common::data().map(|data| data.join("dat3m")));
    let complete = folders.len() > 1;
    // Paths that several files share are compared once.
    let mut known = BTreeSet::new();
    let mut too_many: BTreeMap<String, usize> = BTreeMap::new();
    let (mut files, mut paths, mut executions, mut sampled) = (0, 0, 0, 0);
    for folder in folders {
        for extension in ["test", "litmus"] {
            files += each_instance(&folder, extension, |name, instance| {
                paths += 1;
                let candidates = Candidates::new(instance, &Frame::<u64>::new(&instance.trace, Model::SPEC));
                if candidates.count() > MAX_CANDIDATES {
                    *too_many.entry(name.to_owned()).or_default() += 1;
                    sampled += sample(name, instance);
                } else if known.insert(format!("{instance:?}")) {
                    executions +=
                        MODELS.iter().map(|model| compare(name, instance, model, u64::MAX).unwrap()).sum::<usize>();
                }
            });
        }
    }
    let distinct = known.len();
    eprintln!("{files} files, {paths} paths ({distinct} compared), {executions} executions, {sampled} samples");
    if complete {
        assert_eq!(too_many, TOO_MANY.map(|(name, paths)| (name.to_owned(), paths)).into());
    }
    assert!(executions > 900);
}

/// For paths with too many candidates: every execution that the search finds is consistent, and it finds every
/// consistent one among random candidates and among candidates that differ from a found one in one read. Returns the
/// number of candidates tried.
fn sample(name: &str, instance: &Instance) -> usize {
    let frame = Frame::<u64>::new(&instance.trace, Model::SPEC);
    let candidates = Candidates::new(instance, &frame);
    let mut found: BTreeSet<Signature> = BTreeSet::new();
    let is_consistent = |(sources, pairs): &Signature| {
        let mut modification_order = Relation::new(frame.n);
        pairs.iter().for_each(|&(a, b)| modification_order.insert(a, b));
        let choice = Choice { sources: sources.clone(), modification_order };
        violation(&frame, &choice, &frame.order(&choice)).is_none()
    };
    let mut visited = 0;
    search(instance, Model::SPEC, Limits::default(), &mut |execution| {
        let mut order = execution.modification_order.to_vec();
        order.sort_unstable();
        found.insert((execution.sources.to_vec(), order));
        visited += 1;
        if visited == MAX_EXECUTIONS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut tried: BTreeSet<Signature> = BTreeSet::new();
    for _ in 0..500 {
        let order = candidates.pairs.iter().map(|&(a, b)| if rng.random_bool(0.5) { (a, b) } else { (b, a) });
        let mut order: Vec<_> = order.collect();
        order.sort_unstable();
        let mut sources = vec![None; frame.n];
        for (read, choices) in &candidates.reads {
            sources[*read] = Some(choices[rng.random_range(0..choices.len())]);
        }
        tried.insert((sources, order));
    }
    for (sources, order) in found.iter().take(20) {
        assert!(is_consistent(&(sources.clone(), order.clone())), "{name}");
        for (read, choices) in &candidates.reads {
            for other in choices {
                let mut sources = sources.clone();
                sources[*read] = Some(*other);
                tried.insert((sources, order.clone()));
            }
        }
    }
    if visited < MAX_EXECUTIONS {
        for signature in &tried {
            // A cyclic modification order is not a candidate.
            let has_values = !brute_force_values(instance, &signature.0).is_empty();
            assert_eq!(found.contains(signature), has_values && is_consistent(signature), "{name}: {signature:?}");
        }
    }
    tried.len()
}
const MAX_EXECUTIONS: usize = 100_000;

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

/// All relations of an execution, with one kind of row.
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
        pairs(&visible_to(&frame, &order)),
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

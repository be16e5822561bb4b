//! The tracker against a naive reference: random programs of every operation, on several buffers and images, in slots of
//! every kind, in several contexts.
//!
//! The reference executes each step at once and knows which words are defined. The tracker renames, stages, batches and
//! reorders as it likes; every defined word that is read must be the reference's. Contents that are not defined are
//! poisoned, so nobody passes by relying on them; what is defined must count as valid. Some programs run in a heap that has room for a few buffers only: what
//! is refused there for want of memory must have changed nothing. After each program all handles are dropped and no object
//! may be left.
//!
//! `cargo test` runs a short version; `PROPTEST_CASES=10000 cargo test -p spelter --test model` is about a million steps.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::print_stdout, reason = "long runs tell how far they are")]

mod kernels;
mod reference;
mod resource;
mod step;
mod tracker;

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use reference::{Reference, Shown};
use step::Step;
use tracker::{Home, Tracker};

/// Steps of a program.
const LENGTH: std::ops::Range<usize> = 1..220;

/// Programs that run on one device before there is another.
const PROGRAMS_OF_A_DEVICE: u32 = 50;

/// Mappings without synchronization that a command could have met.
const MAPPED_IN_USE: &str = "mapped unsynchronized while in use";

/// What has to happen in some program of a run, or the run shows nothing of it. (Waits for memory of replaced storage happen
/// once in a million steps; `pressure.rs` has them.)
const WANTED: [&str; 21] = [
    "invalidations_empty",
    "invalidations_idle",
    "invalidations_in_order",
    "renames",
    "invalidations_refused",
    "renames_without_memory",
    "rebinds_uniform",
    "rebinds_storage",
    "rebinds_sampler_view",
    "rebinds_image",
    "sets_reused",
    "sets_dropped",
    "stalls_avoided",
    "stalls_taken",
    "read_waits",
    "context_waits",
    "barriers",
    "bytes_staged",
    "objects_recycled",
    "pressure_waits",
    MAPPED_IN_USE,
];

/// What was done in all programs so far.
#[derive(Default)]
struct Tally {
    steps: u64,
    full: u64,
    counters: BTreeMap<&'static str, u64>,
}

/// Runs a program on both sides.
fn run(home: &Home, steps: Vec<Step>, tally: &mut Tally) -> Result<(), TestCaseError> {
    let (mut reference, mut tracker, before) = (Reference::new(), Tracker::new(home), home.stats());
    let mapped = home.mapped_in_use();
    for (number, step) in steps.into_iter().enumerate() {
        let step = if home.small { step.in_a_small_heap() } else { step };
        let got = tracker.step(&step, &reference);
        tally.steps += 1;
        if tally.steps.is_multiple_of(1_000_000) {
            println!("{} million steps, {} of them refused for want of memory", tally.steps / 1_000_000, tally.full);
        }
        if matches!(got, Shown::Full) && home.small && step.needs_memory() {
            // It has done nothing, so the reference does nothing.
            tally.full += 1;
            continue;
        }
        let wanted = reference.step(&step);
        wanted.compare(&got).map_err(|problem| TestCaseError::fail(format!("step {number}, {step:?}: {problem}")))?;
    }
    for (which, wanted) in reference.contents() {
        // Who is told that bytes hold nothing overwrites them at any time.
        let valid = tracker.valid(which);
        let lost = wanted.defined().find(|word| !valid.iter().any(|range| range.contains(word)));
        prop_assert_eq!(lost, None, "a word of resource {} that is defined does not count as valid", which);
        let got = tracker.read_all(which);
        wanted
            .compare(&got)
            .map_err(|problem| TestCaseError::fail(format!("resource {which} at the end: {problem}")))?;
    }
    let left = tracker.end();
    prop_assert_eq!(left, 0, "objects are left when everything was dropped");
    *tally.counters.entry(MAPPED_IN_USE).or_default() += home.mapped_in_use() - mapped;
    for (name, count) in home.stats().since(&before).iter() {
        *tally.counters.entry(name).or_default() += count;
    }
    Ok(())
}

/// Programs, unless the environment asks for more or fewer.
const CASES: u32 = 300;

fn config() -> ProptestConfig {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { CASES };
    ProptestConfig { cases, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn the_tracker_does_what_a_naive_one_does() {
    let tally = RefCell::new(Tally::default());
    // One with a large heap, one with a small one, each with how many programs it has run.
    let homes: [RefCell<Option<(Home, u32)>>; 2] = Default::default();
    let programs = (proptest::bool::weighted(0.15), step::a_program(LENGTH));
    let result = TestRunner::new(config()).run(&programs, |(small, steps)| {
        // A program that fails takes its device with it.
        let (home, count) = homes[usize::from(small)].take().unwrap_or_else(|| (Home::new(small), 0));
        run(&home, steps, &mut tally.borrow_mut())?;
        if count + 1 < PROGRAMS_OF_A_DEVICE {
            homes[usize::from(small)].replace(Some((home, count + 1)));
        }
        Ok(())
    });
    match result {
        Err(TestError::Fail(why, (small, steps))) => panic!("{why}\nsmall heap: {small}\n{steps:#?}"),
        result => result.unwrap(),
    }
    let Tally { steps, full, counters } = tally.into_inner();
    println!("{steps} steps, {full} of them refused for want of memory; {counters:#?}");
    let never = |name: &&&str| counters.get(**name).is_none_or(|count| *count == 0);
    let missed: Vec<_> = WANTED.iter().filter(never).collect();
    // A few programs (under a slow tool, say) need not have it all.
    let enough = config().cases >= CASES;
    assert!(!enough || (missed.is_empty() && full > 0), "never happened: {missed:?}");
}

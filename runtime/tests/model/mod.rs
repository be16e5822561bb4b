//! The tracker against a naive reference: random programs of every operation, on several buffers and images, in slots
//! and descriptor sets of every kind, in several contexts, and in command buffers that are submitted again and again.
//!
//! The reference executes each step at once and knows which words are defined. The tracker may rename, stage, batch and
//! reorder; every defined word that is read must be the reference's. Undefined contents are poisoned, so that a program
//! that relies on them fails; defined words must count as valid. Some programs run in a heap with room for a few
//! buffers only: a call that fails for lack of memory must have changed nothing. After each program all handles are
//! dropped and no object may be left.
//!
//! `cargo test` runs a short version; `PROPTEST_CASES=10000 cargo test -p spelter --test api model::` is about a
//! million steps.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::print_stdout, reason = "long runs tell how far they are")]

mod commands;
mod kernels;
mod racy;
mod reference;
mod resource;
mod shape;
mod step;
mod tracker;

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use crate::is_checked;

use reference::{Reference, Shown};
use step::Step;
use tracker::{Home, Tracker};

/// The number of steps of a program.
const LENGTH: std::ops::Range<usize> = 1..220;

/// The number of programs that run on one device before a new one is made.
const PROGRAMS_OF_A_DEVICE: u32 = 50;

/// The number of mappings without synchronization that could have conflicted with a command.
const MAPPED_IN_USE: &str = "mapped unsynchronized while in use";

/// The number of images that got another size.
const IMAGES_RESIZED: &str = "images resized";

/// Counters that must be above 0 after a run, or the run has not tested them. (Waits for memory of replaced storage
/// happen once in a million steps; `pressure.rs` tests them.)
const WANTED: [&str; 26] = [
    "invalidations_empty",
    "invalidations_idle",
    "invalidations_in_order",
    "renames",
    "resizes",
    "invalidations_refused",
    "renames_without_memory",
    "rebinds_uniform",
    "rebinds_storage",
    "rebinds_sampler_view",
    "rebinds_image",
    "sets_reused",
    "sets_rewritten",
    "sets_dropped",
    "stalls_avoided",
    "stalls_taken",
    "read_waits",
    "context_waits",
    "barriers",
    "bytes_staged",
    "objects_recycled",
    "pressure_waits",
    "commands_rerecorded",
    "commands_reused",
    MAPPED_IN_USE,
    IMAGES_RESIZED,
];

/// The statistics of all programs so far.
#[derive(Default)]
struct Totals {
    steps: u64,
    full: u64,
    counters: BTreeMap<&'static str, u64>,
}

/// Runs a program on the tracker and on the reference.
fn run(home: &Home, steps: Vec<Step>, totals: &mut Totals) -> Result<(), TestCaseError> {
    let (mut reference, mut tracker, before) = (Reference::new(), Tracker::new(home), home.stats());
    let counted = home.counted();
    for (number, step) in steps.into_iter().enumerate() {
        let step = if home.small { step.in_a_small_heap() } else { step };
        if is_checked() && reference.races(&step) {
            continue;
        }
        let got = tracker.step(&step, &reference);
        totals.steps += 1;
        if totals.steps.is_multiple_of(1_000_000) {
            println!("{} million steps, {} of them refused for want of memory", totals.steps / 1_000_000, totals.full);
        }
        if matches!(got, Shown::Full) && home.small && step.needs_memory() {
            // The step had no effect, so the reference skips it.
            totals.full += 1;
            continue;
        }
        let wanted = reference.step(&step);
        wanted.compare(&got).map_err(|problem| TestCaseError::fail(format!("step {number}, {step:?}: {problem}")))?;
    }
    if is_checked() {
        // What is read below is undefined in part, and commands may be writing there.
        tracker.finish_all();
    }
    for (which, wanted) in reference.contents() {
        // A defined word that does not count as valid could be overwritten at any time.
        let valid = tracker.valid(which);
        let lost = wanted.defined().find(|word| !valid.iter().any(|range| range.contains(word)));
        prop_assert_eq!(lost, None, "a defined word of resource {} does not count as valid", which);
        let got = tracker.read_all(which);
        wanted
            .compare(&got)
            .map_err(|problem| TestCaseError::fail(format!("resource {which} at the end: {problem}")))?;
    }
    let left = tracker.end();
    prop_assert_eq!(left, 0, "objects are left after everything was dropped");
    let own = home.counted().into_iter().zip(counted).map(|((name, after), (_, before))| (name, after - before));
    for (name, count) in home.stats().since(&before).iter().chain(own) {
        *totals.counters.entry(name).or_default() += count;
    }
    Ok(())
}

/// The number of programs, unless the environment sets it.
const CASES: u32 = 300;

fn config() -> ProptestConfig {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { CASES };
    ProptestConfig { cases, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn the_tracker_does_what_a_naive_one_does() {
    let totals = RefCell::new(Totals::default());
    // A device with a large heap and one with a small heap, each with the number of programs that it has run.
    let homes: [RefCell<Option<(Home, u32)>>; 2] = Default::default();
    let programs = (proptest::bool::weighted(0.15), step::a_program(LENGTH));
    let result = TestRunner::new(config()).run(&programs, |(small, steps)| {
        // A program that fails leaves its device unusable, so a new one is made.
        let (home, count) = homes[usize::from(small)].take().unwrap_or_else(|| (Home::new(small), 0));
        run(&home, steps, &mut totals.borrow_mut())?;
        if count + 1 < PROGRAMS_OF_A_DEVICE {
            homes[usize::from(small)].replace(Some((home, count + 1)));
        }
        Ok(())
    });
    match result {
        Err(TestError::Fail(why, (small, steps))) => panic!("{why}\nsmall heap: {small}\n{steps:#?}"),
        result => result.unwrap(),
    }
    let Totals { steps, full, counters } = totals.into_inner();
    println!("{steps} steps, {full} of them refused for want of memory; {counters:#?}");
    let never = |name: &&&str| counters.get(**name).is_none_or(|count| *count == 0);
    let missed: Vec<_> = WANTED.iter().filter(never).collect();
    // A run of a few programs (under a slow tool, say), or without those that race, need not cover everything.
    let enough = config().cases >= CASES && !is_checked();
    assert!(!enough || (missed.is_empty() && full > 0), "never happened: {missed:?}");
}

//! The tracker against a naive reference: random programs of every operation, on several resources, slots and contexts.
//!
//! The reference executes each step at once and knows which bytes are defined. The tracker renames, stages, batches and
//! reorders as it likes; every defined byte that is read must be the reference's. Contents that are not defined are
//! poisoned, so nobody passes by relying on them. After each program all handles are dropped and no object may be left.
//!
//! `cargo test` runs a short version; `PROPTEST_CASES=10000 cargo test -p spelter --test model` is about a million steps.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::print_stdout, reason = "long runs tell how far they are")]

mod kernels;
mod reference;
mod step;
mod tracker;

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use reference::Reference;
use step::Step;
use tracker::Tracker;

/// Steps of a program.
const LENGTH: std::ops::Range<usize> = 1..220;

/// Runs a program on both sides.
fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (mut reference, mut tracker) = (Reference::new(), Tracker::new());
    for (number, step) in steps.iter().enumerate() {
        let wanted = reference.step(step);
        let got = tracker.step(step, &reference);
        wanted.compare(&got).map_err(|problem| TestCaseError::fail(format!("step {number}, {step:?}: {problem}")))?;
    }
    for (which, wanted) in reference.contents() {
        let got = tracker.read_all(which);
        wanted
            .compare(&got)
            .map_err(|problem| TestCaseError::fail(format!("resource {which} at the end: {problem}")))?;
    }
    let left = tracker.end();
    prop_assert_eq!(left, 0, "objects are left when everything was dropped");
    let before = COUNT.fetch_add(steps.len() as u64, Ordering::Relaxed);
    let (million, now) = (1_000_000, before + steps.len() as u64);
    if before / million != now / million {
        println!("{} million steps", now / million);
    }
    Ok(())
}

fn config() -> ProptestConfig {
    // Cases may be set in the environment, for longer runs.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { 200 };
    ProptestConfig { cases, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_tracker_does_what_a_naive_one_does(steps in proptest::collection::vec(step::a_step(), LENGTH)) {
        run(&steps)?;
    }
}

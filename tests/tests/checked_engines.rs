//! Random kernels in checked mode on every engine: what is reported is what the axioms say to the execution.

use spelter_tests::checked::{Counts, Engines};

/// Kernels; the program `races` runs more, and more launches of each.
const KERNELS: u64 = 40;

/// Programs of a kernel, and how many of them run here.
const LAUNCHES: u64 = 128;
const LAUNCHED: u64 = 3;

#[test]
fn reports_are_the_races_of_the_axioms_on_every_engine() {
    let mut engines = Engines::new();
    let mut counts = Counts::default();
    for kernel in 0..KERNELS {
        counts.join(engines.compare(kernel * LAUNCHES..kernel * LAUNCHES + LAUNCHED));
    }
    assert_eq!(counts.defects(), 0, "{counts:#?}");
    assert_eq!((counts.kernels, counts.programs), (KERNELS, KERNELS * LAUNCHED));
    // No kernel falls back to the interpreter, and both verdicts occur.
    assert_eq!(counts.compiled % counts.programs, 0, "{counts:?}");
    let Counts { executions, racy, same_order, .. } = counts;
    assert!((executions / 4..executions * 7 / 8).contains(&racy), "{racy} of {executions} executions race");
    assert!(counts.compiled == 0 || counts.aliased > 0, "{counts:?}");
    // Without machine code there is one engine.
    assert!(counts.compiled == 0 || same_order * 4 > executions, "{counts:?}");
}

//! Kernels with one part of their synchronization removed: checked mode reports each one that the axioms call racy, and
//! is silent on the kernels themselves. The program `sync_mutants` runs many more.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::sync::atomic::AtomicU32;

use spelter_tests::checked::sync::{Bench, Subject, mutants};
use spelter_tests::corpus;
use spelter_tests::modules::memory::Arena;

/// The verdicts on the mutants of a test file, by change and verdict, in the order of the file.
fn verdicts(file: &str) -> Vec<(&'static str, &'static str)> {
    let stop = AtomicU32::new(0);
    let bench = Bench { arena: Arena::default(), groups: [1; 3], stop: &stop, begin: &|| {} };
    let subjects = Subject::of_file(&corpus::root().join(file), Default::default()).unwrap();
    let [subject] = &subjects[..] else { panic!("{file} is a test file with one kernel") };
    let kernel = subject.kernel(&subject.words).unwrap();
    let report = bench.report(subject, &kernel, &subject.words, 6).unwrap();
    assert!(report.reported.is_none() && report.warnings.is_empty(), "{file}: {report:?}");
    let mut judged = Vec::new();
    for mutant in mutants(&subject.words) {
        let verdict = bench.judge(subject, &mutant, 16, 1).unwrap();
        judged.push((mutant.change.name(), verdict.name()));
    }
    judged
}

#[test]
fn a_tree_of_two_subgroups_and_more_needs_all_of_its_barrier() {
    let changes = ["control-barrier", "execution-scope", "class-workgroup", "memory-scope"];
    assert_eq!(verdicts("memory/workgroup_tree.wgsl"), changes.map(|change| (change, "reported")));
}

#[test]
fn within_a_subgroup_its_scope_is_enough() {
    let barrier = [
        ("control-barrier", "reported"),
        ("execution-scope", "ordered"),
        ("class-workgroup", "reported"),
        ("memory-scope", "ordered"),
    ];
    assert_eq!(verdicts("control_flow/barrier_in_loop.spvasm"), [barrier; 2].concat());
}

#[test]
fn no_race_of_atomics_with_semantics_is_missed() {
    let found = verdicts("atomics/memory_model.spvasm");
    // Of some that order a second time what another instruction orders, slices of all pairs would be too large.
    let fine = ["reported", "ordered", "undecided"];
    let missed: Vec<_> = found.iter().filter(|(_, verdict)| !fine.contains(verdict)).collect();
    assert!(missed.is_empty(), "{missed:?}");
    let reported: Vec<_> = found.iter().filter(|(_, verdict)| *verdict == "reported").map(|found| found.0).collect();
    assert!(reported.contains(&"pointer-available") && reported.contains(&"pointer-scope"), "{found:?}");
}

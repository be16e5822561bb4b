//! Our own tests in Dat3M's format: what its files do not ask, with answers worked out by hand.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use std::path::Path;

use spelter_memory_model::answer::{Options, answer, find_race, summarize};
use spelter_memory_model::format::{Format, QuestionKind, Test};

mod common;

fn own(name: &str) -> Test {
    common::test(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus/own").join(name))
}

/// Whether the question's condition holds, and whether the program races where the question looks.
fn verdict(name: &str) -> (bool, bool) {
    let test = own(name);
    assert_eq!(test.warnings, []);
    let question = &test.questions[0];
    let QuestionKind::Final { filter, .. } = &question.kind else { panic!("{name} asks for no final state") };
    let options = Options::default();
    let race = find_race(&test.program, filter.as_ref(), &options).unwrap();
    (answer(&test.program, question, &options).unwrap().holds, race.is_some())
}

#[test]
fn a_lock_taken_in_turns_counts_to_two() {
    assert_eq!(verdict("ticket.litmus"), (true, false));
}

#[test]
fn a_filter_chooses_executions_for_conditions_and_races() {
    assert_eq!(verdict("filter.litmus"), (true, false));
    let test = own("filter.litmus");
    assert!(find_race(&test.program, None, &Options::default()).unwrap().is_some(), "the flag may not be seen");
}

#[test]
fn two_references_of_one_invocation_race() {
    assert_eq!(verdict("aliases.litmus"), (true, true));
}

#[test]
fn the_api_orders_private_accesses_through_different_references() {
    assert_eq!(verdict("dispatches.litmus"), (true, false));
}

#[test]
fn values_in_a_circle_must_fit() {
    assert_eq!(verdict("circle.litmus"), (false, false));
}

#[test]
fn an_endless_loop_has_no_final_state_and_no_race() {
    let text = "VULKAN spin\n{ x=0; }\n P0@sg 0, wg 0, qf 0 ;\n again: ;\n ld.atom.wg.sc0 r, x ;\n beq r, 0, again ;\nexists (0 == 0)";
    let test = Format::Dartagnan.read("spin", text).unwrap();
    let summary = summarize(&test.program, &Options::default(), 100).unwrap();
    assert!(summary.outcomes.is_empty() && summary.executions > 0 && summary.racy == 0);
    assert!(!answer(&test.program, &test.questions[0], &Options::default()).unwrap().holds);
}

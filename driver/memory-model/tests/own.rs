//! Our own tests in Dat3M's format: cases that its files do not cover, with answers derived by hand.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use crate::common;
use std::path::Path;

use spelter_memory_model::answer::{Options, answer, find_race, summarize};
use spelter_memory_model::format::{Format, QuestionKind, Test, write_dartagnan};
use spelter_memory_model::program::{Bound, Program, TooLarge};

fn own(name: &str) -> Test {
    common::test(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus/own").join(name))
}

/// Whether the question's condition holds, and whether an execution that the question considers races.
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
fn two_critical_sections_count_to_two() {
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
fn a_number_stands_for_the_thread_that_is_named_with_it() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/litmus/own/dispatches.litmus")).unwrap();
    let named = own("dispatches.litmus");
    for numbered in [text.replace("ssw P", "ssw ").replace(" P1;", " 1;").replace(" P2;", " 2;"), text.replace('P', "")]
    {
        assert_ne!(numbered, text);
        let test = Format::Dartagnan.read("dispatches", &numbered).unwrap();
        assert_eq!(test.program, named.program);
        assert_eq!(test.questions[0].kind, named.questions[0].kind);
    }
    let swapped = text.replace("ssw P0 P1", "ssw 1 0");
    let test = Format::Dartagnan.read("dispatches", &swapped).unwrap();
    assert_eq!(test.program.system, [(1, 0), (1, 2)]);
}

#[test]
fn a_location_that_only_code_names_holds_0_with_a_warning() {
    let text = "VULKAN t
\"a text that \"quotes\" a word\"
{ x=1; y aliases x; }
 P0@sg 0, wg 0, qf 0 ;
 ld.sc0 r0, z ;
 st.sc0 z, 7 ;
 ld.sc0 r1, y ;
forall (P0:r0 == 0 /\\ P0:r1 == 1 /\\ z == 7)";
    let test = Format::Dartagnan.read("t", text).unwrap();
    let warnings: Vec<_> = test.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["5:13: nothing initialises the location `z`; it holds 0"]);
    assert!(answer(&test.program, &test.questions[0], &Options::default()).unwrap().holds);
}

#[test]
fn cyclic_values_must_be_consistent() {
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

/// The answers to a question and to the search for races; `None` if the bound on loops leaves one undecided.
fn within(unroll: u32, text: &str) -> (Option<bool>, Option<bool>) {
    let test = Format::Dartagnan.read("loop", text).unwrap();
    let options = Options { unroll, ..Options::default() };
    let decided = |error: TooLarge| {
        assert_eq!((error.on, error.bound), (Bound::Unroll, u64::from(unroll)), "{error}");
        assert!(error.what.starts_with("paths of thread P") && error.what.ends_with(" were cut in a loop"), "{error}");
    };
    let holds = answer(&test.program, &test.questions[0], &options).map(|answer| answer.holds);
    let race = find_race(&test.program, None, &options).map(|race| race.is_some());
    let complete = summarize(&test.program, &options, 1000).unwrap().cut.is_none();
    assert!(!complete || holds.is_ok() && race.is_ok(), "a summary that hides something");
    (holds.map_err(decided).ok(), race.map_err(decided).ok())
}

/// A loop that counts to three, and a question.
fn counts(question: &str) -> String {
    format!(
        "VULKAN counts\n{{ x=0; }}\n P0@sg 0, wg 0, qf 0 ;\n again: ;\n rmw.atom.dv.sc0.add r, x, 1 ;\n \
         bne r, 3, again ;\n{question}"
    )
}

#[test]
fn iterations_beyond_the_bound_leave_a_question_undecided() {
    for (question, decided) in [
        ("exists (P0:r == 3)", true),
        ("exists (P0:r == 4)", false),
        ("~exists (P0:r == 3)", false),
        ("~exists (P0:r == 4)", true),
        ("forall (P0:r == 3)", true),
        ("forall (P0:r == 4)", false),
    ] {
        let text = counts(question);
        for unroll in 1..4 {
            assert_eq!(within(unroll, &text), (None, Some(false)), "{question}");
        }
        // Four iterations are all: no execution continues.
        assert_eq!(within(4, &text), (Some(decided), Some(false)), "{question}");
    }
    // The iterations differ by a register that the question uses, though they write nothing.
    let tries = "VULKAN tries\n{ x=0; }\n P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;\n again: | st.atom.wg.sc0 x, 1 ;\n \
                 add n, n, 1 | ;\n ld.atom.wg.sc0 r, x | ;\n bne r, 1, again | ;\n";
    assert_eq!(within(2, &format!("{tries}exists (P0:n == 2)")).0, Some(true));
    assert_eq!(within(2, &format!("{tries}exists (P0:n == 3)")).0, None);
    assert_eq!(within(3, &format!("{tries}exists (P0:n == 3)")).0, Some(true));
}

#[test]
fn a_race_after_a_cut_loop_is_undecided() {
    let text = "VULKAN after\n{ x=0; y=0; }\n P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;\n again: | st.sc0 y, 1 ;\n \
                rmw.atom.wg.sc0.add r, x, 1 | ;\n bne r, 3, again | ;\n st.sc0 y, 2 | ;\nexists (y == 1)";
    assert_eq!(within(2, text), (None, None));
    assert_eq!(within(4, text).1, Some(true));
    // The value that the cut path needs may be written only after the cut.
    let circle = "VULKAN circle\n{ c=0; y=0; z=0; w=0; }\n P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;\n \
                  ld.atom.wg.sc0 a, y | ld.atom.wg.sc0 b, z ;\n bne a, 1, out | st.atom.wg.sc0 y, b ;\n \
                  again: | st.sc0 w, 1 ;\n rmw.atom.wg.sc0.add r, c, 1 | ;\n bne r, 3, again | ;\n \
                  st.atom.wg.sc0 z, 1 | ;\n st.sc0 w, 2 | ;\n out: | ;\nexists (P0:a == 1)";
    assert_eq!(within(2, circle), (None, None));
    assert_eq!(within(4, circle), (Some(true), Some(true)));
}

#[test]
fn iterations_that_only_wait_need_no_bound() {
    let text = "VULKAN spin\n{ data=0; flag=0; }\n P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n \
                st.av.dv.sc0 data, 1 | again: ;\n st.atom.rel.dv.sc0.semsc0 flag, 1 | ld.atom.acq.dv.sc0.semsc0 r0, flag ;\n \
                | bne r0, 1, again ;\n | ld.vis.dv.sc0 r1, data ;\n~exists (P1:r1 == 0)";
    // A race between a waiting iteration and code after the loop needs two iterations.
    assert_eq!(within(1, text), (Some(true), None));
    assert_eq!(within(2, text), (Some(true), Some(false)));
    assert_eq!(within(3, text), (Some(true), Some(false)));
}

/// Two threads that pass each other a value: the first reads `a`, executes `code` and writes `written`.
fn circle(code: &str, written: &str, condition: &str) -> Result<bool, String> {
    let text = format!(
        "VULKAN circle
{{ x=0; y=0; }}
 P0@sg 0, wg 0, qf 0         | P1@sg 1, wg 0, qf 0 ;
 ld.atom.wg.sc0 a, x         | ld.atom.wg.sc0 c, y ;
 {code}                      |                     ;
 st.atom.wg.sc0 y, {written} | st.atom.wg.sc0 x, c ;
exists ({condition})"
    );
    let test = Format::Dartagnan.read("circle", &text).unwrap();
    let answer = answer(&test.program, &test.questions[0], &Options::default());
    answer.map(|answer| answer.holds).map_err(|error| error.to_string())
}

#[test]
fn values_out_of_thin_air_are_all_consistent_values() {
    // a = 10 - a has solutions, a = 9 - a has none.
    assert_eq!(circle("sub b, 10, a", "b", "P0:a != 0 /\\ P0:a != 10"), Ok(true));
    assert_eq!(circle("sub b, 9, a", "b", "P0:a != 0 /\\ P0:a != 9"), Ok(false));
    // A value that is only copied may be any value.
    for condition in ["P0:a == 42", "P0:a > 1000", "P0:a < -1000", "P0:a > 3 /\\ P0:a < 5"] {
        assert_eq!(circle("", "a", condition), Ok(true), "{condition}");
    }
    assert_eq!(circle("", "a", "P0:a != P1:c /\\ P0:a != 0 /\\ P1:c != 0"), Ok(false));
}

#[test]
fn values_that_are_guessed_leave_a_question_undecided_unless_a_guess_shows_it() {
    assert_eq!(circle("and b, a, 6", "b", "P0:a == 4"), Ok(true));
    let message = "the program is too large: a value depends on itself by more than a copy or a sum, and any number would be to try, and the bound is ";
    let error = circle("and b, a, 6", "b", "P0:a == 9").unwrap_err();
    assert!(error.starts_with(message), "{error}");
    // Six independent cyclic values, with eight numbers for each.
    let row = |code: &dyn Fn(u32) -> String| (0..6).map(|at| format!("{} ;\n", code(at))).collect::<String>();
    let text = format!(
        "VULKAN many\n{{ {} }}\n P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;\n{}{}exists (P0:a0 == 40 /\\ P0:a1 == 50 /\\ P0:a2 == 60 /\\ P0:a3 != P0:a3)",
        row(&|at| format!("x{at}=0; y{at}=0")),
        row(&|at| format!("ld.atom.wg.sc0 a{at}, x{at} | ld.atom.wg.sc0 c{at}, y{at}")),
        row(&|at| format!("st.atom.wg.sc0 y{at}, a{at} | st.atom.wg.sc0 x{at}, c{at}")),
    );
    let test = Format::Dartagnan.read("many", &text).unwrap();
    let error = answer(&test.program, &test.questions[0], &Options::default()).unwrap_err().to_string();
    let message = "the values of an execution depend on themselves and take too many guesses, and the bound is 4096";
    assert!(error.ends_with(message), "{error}");
}

#[test]
fn a_written_program_is_read_as_it_was() {
    let options = Options::default();
    let paths = common::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus/own"), "litmus");
    assert!(paths.len() >= 5);
    for path in paths {
        let program = common::test(&path).program;
        let text = write_dartagnan(&program).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let read = Format::Dartagnan.read(&program.name, &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(write_dartagnan(&read.program).unwrap(), text);
        let known = |program: &Program| {
            let races = find_race(program, None, &options).map(|race| race.is_some());
            (races, summarize(program, &options, u64::MAX).map(|summary| summary.executions))
        };
        assert_eq!(known(&program), known(&read.program), "{text}");
    }
}

//! Dat3M's tests: all rows of its two lists of expected results.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use crate::common;
use spelter_memory_model::Model;
use spelter_memory_model::answer::{Options, answer, find_race};
use spelter_memory_model::format::QuestionKind;
use spelter_memory_model::program::{Bound, TooLarge};

/// Rows for files that Dat3M no longer has.
const GONE: [&str; 5] = [
    "Manual/XF-Barrier.litmus",
    "Manual/XF-Barrier-relacq.litmus",
    "Manual/XF-Barrier-relacq2.litmus",
    "Manual/XF-Barrier-rlx.litmus",
    "Manual/XF-Barrier-weak.litmus",
];

/// The rows of a list whose answers differ, or are undecided because of the bound on loops; and the number of decided
/// rows.
fn differences(list: &str, options: &Options, races: bool) -> Option<(Vec<String>, usize)> {
    let folder = common::data()?.join("dat3m");
    let mut differ = Vec::new();
    let mut decided = 0;
    for row in std::fs::read_to_string(folder.join(list)).unwrap().lines() {
        let (path, expected) = row.split_once(',').unwrap();
        if GONE.contains(&path) {
            assert!(!folder.join(path).exists(), "{path} is back");
            continue;
        }
        let test = common::test(&folder.join(path));
        assert_eq!(test.warnings, [], "{path}");
        // As in Dat3M, races are searched for among the executions that pass the test's filter, if it has one.
        let QuestionKind::Final { filter, .. } = &test.questions[0].kind else { panic!("{path} asks nothing") };
        let holds: Result<bool, TooLarge> = if races {
            find_race(&test.program, filter.as_ref(), options).map(|race| race.is_none())
        } else {
            answer(&test.program, &test.questions[0], options).map(|answer| answer.holds)
        };
        match holds {
            Err(bound) if bound.on == Bound::Unroll => differ.push(format!("{path} is cut")),
            holds => {
                decided += 1;
                if holds.unwrap() != (expected == "1") {
                    differ.push(path.to_owned());
                }
            }
        }
    }
    Some((differ, decided))
}

#[test]
fn every_row_agrees_with_dartagnan() {
    for unroll in 1..=3 {
        let options = Options { model: Model::DARTAGNAN, unroll, ..Options::default() };
        let Some(rows) = differences("VULKAN-expected.csv", &options, false) else { return };
        assert_eq!(rows, (vec![], 61), "unrolled {unroll} times");
        let races = differences("VULKAN-DR-expected.csv", &options, true);
        if unroll > 1 {
            assert_eq!(races, Some((vec![], 44)), "unrolled {unroll} times");
            continue;
        }
        // With one iteration it is undecided whether an access in a waiting loop races with code after the loop.
        let (differ, decided) = races.unwrap();
        assert!(differ.iter().all(|row| row.ends_with(" is cut")), "{differ:?}");
        assert_eq!((differ.len(), decided), (2, 42));
    }
}

/// A plain read of one value, then of an older one: the Khronos model forbids it, Dartagnan weakens from-reads to allow
/// it (A3). The program races, and the appendix does not define racing reads.
#[test]
fn by_the_khronos_rule_one_row_differs() {
    let Some(rows) = differences("VULKAN-expected.csv", &Options::default(), false) else { return };
    assert_eq!(rows, (vec!["Manual/CoWW-RR.litmus".to_owned()], 61));
    assert_eq!(differences("VULKAN-DR-expected.csv", &Options::default(), true), Some((vec![], 44)));
}

/// The CADP tests ask about forward progress, which the memory model leaves to SPIR-V (section 2.11.1 has a note, and
/// Vulkan's "Shader Execution" leaves relative progress undefined). The model only decides whether some execution ends,
/// and that holds for all of them.
#[test]
fn the_tests_of_progress_are_parsed_and_have_finished_executions() {
    let Some(data) = common::data() else { return };
    let files = common::files(&data.join("dat3m/CADP"), "litmus");
    assert_eq!(files.len(), 357);
    let mut endless = Vec::new();
    for file in files {
        let test = common::test(&file);
        let options = Options { unroll: 3, ..Options::default() };
        if !answer(&test.program, &test.questions[0], &options).unwrap().holds {
            endless.push(test.program.name);
        }
    }
    assert_eq!(endless, Vec::<String>::new());
}

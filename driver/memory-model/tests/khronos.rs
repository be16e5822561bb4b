//! The tests of the Khronos memory model and our own in its format give the expected answers; and which of them change
//! with each switch.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use crate::common;
use std::collections::BTreeSet;
use std::path::Path;

use spelter_memory_model::Model;
use spelter_memory_model::answer::{Options, answer};

/// The questions of a folder whose answers differ from the expected ones, as `file:line`, and the number of questions.
fn differences(folder: &str, model: &str) -> (BTreeSet<String>, usize) {
    let model: Model = model.parse().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litmus").join(folder);
    let options = Options { model, ..Options::default() };
    let mut differ = BTreeSet::new();
    let mut asked = 0;
    for file in common::files(&folder, "test") {
        let test = common::test(&file);
        assert_eq!(test.warnings, [], "{}", file.display());
        for question in &test.questions {
            asked += 1;
            if answer(&test.program, question, &options).unwrap().differs() {
                differ.insert(format!("{}:{}", test.program.name, question.place.line));
            }
        }
    }
    (differ, asked)
}

fn flips(folder: &str, model: &str, expected: &[&str]) {
    let (differ, _) = differences(folder, model);
    assert_eq!(differ, expected.iter().map(|&name| name.to_owned()).collect(), "{model}");
}

#[test]
fn all_172_questions_are_answered_as_the_files_expect() {
    for model in ["spec", "khronos"] {
        assert_eq!(differences("khronos", model), (BTreeSet::new(), 172), "{model}");
    }
}

#[test]
fn our_own_questions_are_answered_as_the_files_expect() {
    assert_eq!(differences("extra", "spec"), (BTreeSet::new(), 34));
}

const CHAINS: [&str; 8] = [
    "mp3transitive:22",
    "mp3transitive:23",
    "mp3transitive2:27",
    "mp3transitive2:28",
    "mp3transitive3:22",
    "mp3transitive3:23",
    "mp3transitive4:35",
    "mp3transitive4:36",
];
const COHERENCE: [&str; 2] = ["noncohcoww:15", "noncohrmwfail:15"];
const OVERWRITE: [&str; 6] = ["samethread2:19", "samethread2:20", "samethread:17", "samethread:18", "waw:22", "waw:23"];

/// The differences between 1.1.90 and the current text that change answers, one by one.
#[test]
fn the_text_of_1_1_90_flips_the_tests_that_it_should() {
    flips("khronos", "spec,scoped-order=all-atomics", &[]);
    flips("khronos", "spec,scoped-order=all-atomics,scoped-order-is-location-order=yes", &[]);
    flips("khronos", "spec,coherence=bullets", &COHERENCE);
    flips("khronos", "spec,from-reads=modification-order", &COHERENCE);
    flips("khronos", "spec,chains=single", &CHAINS);
    flips("khronos", "khronos,coverage=symmetric", &["mpinscope3:15", "mpnotinscope3:15", "mpnotinscope6:17"]);
    let all: Vec<_> = CHAINS.into_iter().chain(COHERENCE).collect();
    flips("khronos", "1.1.90", &all);
}

#[test]
fn the_ambiguities_flip_the_tests_that_they_should() {
    // A1
    flips("khronos", "spec,overwrite=visibility", &OVERWRITE);
    flips("khronos", "spec,overwrite=api-visibility", &[]);
    flips("extra", "spec,overwrite=api-visibility", &["dispwaw:12", "dispwaw:13"]);
    // A2
    flips("khronos", "spec,chains=alloy", &[]);
    flips("extra", "spec,chains=alloy", &["chainfence:19", "chainfence:20"]);
    // A3
    flips("khronos", "spec,from-reads=dartagnan", &["noncohcoww:15"]);
    // A4: a transitive happens-before would order accesses that the files expect to be unordered.
    let transitive = [
        "mpinscope2:15",
        "mpinscope3:15",
        "mpinscope5:17",
        "scnottransitive:20",
        "scnottransitive:21",
        "test0:16",
        "test0:17",
        "test1:16",
        "test1:17",
        "test2:20",
        "test2:21",
        "test7:24",
        "test7:25",
    ];
    flips("khronos", "spec,happens-before=transitive", &transitive);
    // A5
    for model in ["spec,inclusion=joint", "khronos,inclusion=split"] {
        flips("khronos", model, &[]);
    }
}

//! Khronos' tests of synchronization validation, as programs of checked mode: those that use compute, transfers and the
//! host only, of Vulkan-ValidationLayers at commit 9fe6278b5.
//!
//! Each row of `negative.txt`, `positive.txt` and `semaphores.txt` re-creates the commands of one upstream test, of
//! that name, with the verdict that upstream expects; where checked mode has another one, the row says why. Checked
//! mode compares bytes that were touched, and upstream what descriptors name; upstream's messages and Vulkan's
//! objects are not re-created. `left_out.txt` lists tests without a program. Upstream's tests of graphics are not
//! listed.
//!
//! A marked line is reported by these rules: `RAW`, `WAR`, `WAW`, `HOST`; `RACING` is one of the first three, of two
//! queues, since nothing says which one runs first. What follows a marked line is run without it, as in upstream, whose
//! layer does not record a command that it reports.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeSet;

use spelter_driver::check::{CheckOptions, Finding, Hazard, Rule};
use spelter_tests::commands::{Machine, Pace, Program};

const NEGATIVE: &str = include_str!("negative.txt");
const POSITIVE: &str = include_str!("positive.txt");
const SEMAPHORES: &str = include_str!("semaphores.txt");
const LEFT_OUT: &str = include_str!("left_out.txt");

/// What a marked line says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark<'a> {
    /// The rules that are reported.
    expected: BTreeSet<&'a str>,
    /// Whether upstream expects something else.
    differs: bool,
}

/// A line of a script.
struct Line<'a> {
    text: &'a str,
    mark: Option<Mark<'a>>,
}

/// A test: its scripts, which are independent of each other.
struct Row<'a> {
    name: &'a str,
    scripts: Vec<Vec<Line<'a>>>,
}

impl<'a> Row<'a> {
    fn marks(&self) -> Vec<Mark<'a>> {
        self.scripts.iter().flatten().filter_map(|line| line.mark.clone()).collect()
    }
}

fn mark(text: &str) -> Mark<'_> {
    let (rules, differs) = match text.split_once(" instead of ") {
        Some((rules, rest)) => {
            let (_, why) = rest.split_once(": ").expect("a difference has a reason");
            assert!(why.len() > 20, "{text}");
            (rules, true)
        }
        None => (text, false),
    };
    let expected: BTreeSet<_> = rules.split_whitespace().filter(|rule| *rule != "NONE").collect();
    let known = ["RAW", "WAR", "WAW", "HOST", "RACING"];
    assert!(expected.iter().all(|rule| known.contains(rule)), "{text}");
    Mark { expected, differs }
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("test ") {
            rows.push(Row { name, scripts: vec![Vec::new()] });
            continue;
        }
        let scripts = &mut rows.last_mut().expect("the first line is a test").scripts;
        if line == "--" {
            scripts.push(Vec::new());
            continue;
        }
        let (text, mark) = match line.split_once(" ! ") {
            Some((text, expected)) => (text, Some(mark(expected))),
            None => (line, None),
        };
        scripts.last_mut().unwrap().push(Line { text, mark });
    }
    rows
}

/// A run of a script: its lines, and what is reported.
struct Run<'a> {
    lines: Vec<&'a str>,
    expected: BTreeSet<&'a str>,
}

/// For each marked line a run up to it without earlier ones, and one without any, if there is more than those.
fn runs<'a>(script: &[Line<'a>]) -> Vec<Run<'a>> {
    let (mut all, mut lines) = (Vec::new(), Vec::new());
    for line in script {
        match &line.mark {
            Some(Mark { expected, .. }) => {
                let lines = lines.iter().copied().chain([line.text]).collect();
                all.push(Run { lines, expected: expected.clone() });
            }
            None => lines.push(line.text),
        }
    }
    if script.last().is_some_and(|line| line.mark.is_none()) {
        all.push(Run { lines, expected: BTreeSet::new() });
    }
    all
}

fn rule(finding: &Finding, racing: bool) -> &'static str {
    let queue = |access: &spelter_driver::check::FoundAccess| access.command.as_ref().map(|command| command.queue);
    let apart = finding.first.as_ref().is_some_and(|first| queue(first) != queue(&finding.second));
    match finding.rule {
        Rule::Race(_) if racing && apart => "RACING",
        Rule::Race(Hazard::ReadAfterWrite) => "RAW",
        Rule::Race(Hazard::WriteAfterRead) => "WAR",
        Rule::Race(Hazard::WriteAfterWrite) => "WAW",
        Rule::Host => "HOST",
        Rule::Barrier | Rule::Note => "OTHER",
    }
}

/// The differences of a row, as text.
fn differences(machine: &Machine, row: &Row<'_>) -> Vec<String> {
    let mut list = Vec::new();
    for run in row.scripts.iter().flat_map(|script| runs(script)) {
        let script = || format!("{}\n{}\n", row.name, run.lines.join("\n"));
        let program = Program::parse(run.lines.iter().copied()).unwrap_or_else(|error| panic!("{}{error}", script()));
        match machine.run(&program, Pace::Free) {
            Ok(findings) => {
                let racing = run.expected.contains("RACING");
                let found: BTreeSet<_> = findings.iter().map(|finding| rule(finding, racing)).collect();
                if found != run.expected {
                    let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
                    list.push(format!("{}expected {:?}, found {}\n", script(), run.expected, texts.join("\n")));
                }
            }
            Err(error) => list.push(format!("{}{error}\n", script())),
        }
    }
    list
}

/// Checks all rows of a table. Returns the numbers of tests that report, that report nothing, and of differences from
/// upstream.
fn check(text: &str) -> (usize, usize, usize) {
    let machine = Machine::new(CheckOptions::default()).unwrap();
    let rows = rows(text);
    let wrong: Vec<_> = rows.iter().flat_map(|row| differences(&machine, row)).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    let negative = rows.iter().filter(|row| row.name.starts_with("Negative")).count();
    let reports = rows.iter().filter(|row| row.marks().iter().any(|mark| !mark.expected.is_empty() && !mark.differs));
    assert_eq!(reports.count(), negative, "each negative test reports something, and no other one");
    let differ = rows.iter().flat_map(Row::marks).filter(|mark| mark.differs).count();
    (negative, rows.len() - negative, differ)
}

#[test]
fn programs_that_must_be_reported() {
    assert_eq!(check(NEGATIVE), (56, 0, 3));
}

#[test]
fn programs_that_must_not_be_reported() {
    assert_eq!(check(POSITIVE), (0, 46, 1));
}

#[test]
fn programs_with_semaphores() {
    assert_eq!(check(SEMAPHORES), (13, 37, 1));
}

#[test]
fn no_test_is_listed_twice() {
    let tables = [NEGATIVE, POSITIVE, SEMAPHORES].into_iter().flat_map(rows).map(|row| row.name);
    let left = LEFT_OUT.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_whitespace().next());
    let mut names = BTreeSet::new();
    for name in tables.chain(left) {
        assert!(names.insert(name), "{name}");
    }
}

//! Properties of all programs: names do not matter, synchronization never adds a race, repaired programs are race-free.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::random;
use proptest::prelude::*;
use spelter_memory_model::answer::{Options, find_race, summarize};
use spelter_memory_model::event::{Class, Location, Scope};
use spelter_memory_model::format::{Format, write_khronos};
use spelter_memory_model::program::{Expression, InstructionKind, Operand, Program};
use spelter_memory_model::repair::{Edit, Effort, apply, repair};
use spelter_memory_model::search::Limits;

/// Many programs race from the start, so many are rejected; failures are not saved in files.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() }
}

fn options() -> Options {
    Options { limits: Limits { steps: 200_000, ..Limits::default() }, ..Options::default() }
}

/// Numbers of executions, racing executions and outcomes; `None` if the program is too large for a test.
fn counts(program: &Program) -> Option<(u64, u64, usize)> {
    let summary =
        summarize(program, &options(), 20_000).ok().filter(|summary| !summary.more && !summary.more_outcomes)?;
    Some((summary.executions, summary.racy, summary.outcomes.len()))
}

fn is_racy(program: &Program) -> Option<bool> {
    find_race(program, None, &options()).ok().map(|race| race.is_some())
}

/// The program with its threads rotated, and with other numbers of locations and references and other values.
fn relabelled(program: &Program, rotate: usize) -> Program {
    let mut other = program.clone();
    let threads = other.threads.len();
    other.threads.rotate_left(rotate % threads);
    let references = other.references.len() as u32;
    other.references.rotate_left(1);
    for instruction in other.threads.iter_mut().flat_map(|thread| &mut thread.code) {
        let InstructionKind::Execute { operation, value, .. } = &mut instruction.kind else { continue };
        if let Some(access) = operation.access_mut() {
            access.reference = (access.reference + references - 1) % references;
            access.location = Location::whole(1 - access.location.object);
        }
        if let Some(Expression::Operand(Operand::Constant(value))) = value {
            *value = 1000 - *value;
        }
    }
    other
}

/// Every edit of one operation that adds synchronization, except for scopes: a wider scope may add writes to a
/// modification order, and so break a release sequence.
fn edits(program: &Program) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (place, operation) in program.operations() {
        if let Some(access) = operation.access().filter(|access| !access.atomic) {
            edits.push(Edit::NonPrivate(place));
            let scope = operation.scope.unwrap_or(Scope::Device);
            edits.extend(access.writes.then_some(Edit::Available(place, scope)));
            edits.extend(access.reads.then_some(Edit::Visible(place, scope)));
            continue;
        }
        edits.extend(operation.release.then_some(Edit::MakeAvailable(place)));
        edits.extend(operation.acquire.then_some(Edit::MakeVisible(place)));
        for class in [Class::Uniform, Class::Workgroup] {
            edits.extend((operation.acquire || operation.release).then_some(Edit::Semantics(place, class)));
            let barrier = operation.access().is_none();
            edits.extend((barrier || operation.writes()).then_some(Edit::Release(place, class)));
            edits.extend((barrier || operation.reads()).then_some(Edit::Acquire(place, class)));
        }
    }
    // A barrier for two threads of a workgroup, at any position in them.
    let lengths = || program.threads.iter().map(|thread| thread.code.len()).enumerate();
    for (a, b) in lengths().flat_map(|a| lengths().map(move |b| (a, b))).filter(|(a, b)| a.0 != b.0) {
        if program.threads[a.0].agent.shares(program.threads[b.0].agent, Scope::Workgroup) {
            let places = (0..a.1).flat_map(|x| (0..b.1).map(move |y| ((a.0, x), (b.0, y))));
            edits.extend(places.map(|(after, before)| Edit::Barrier(after, before, Class::Uniform)));
        }
    }
    edits
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn names_and_values_do_not_matter(threads in random::threads(3, 4), rotate in 0usize..3) {
        let program = random::program(&threads);
        prop_assert_eq!(counts(&program), counts(&relabelled(&program, rotate)));
    }

    #[test]
    fn synchronization_never_adds_a_race(threads in random::threads(3, 4), pick in any::<prop::sample::Index>()) {
        let program = random::program(&threads);
        let edits = edits(&program);
        prop_assume!(!edits.is_empty() && is_racy(&program) == Some(false));
        let edit = edits[pick.index(edits.len())];
        let edited = apply(&program, &[edit].into());
        prop_assert_eq!(is_racy(&edited), Some(false), "{}", edit);
    }

    #[test]
    fn what_is_written_reads_back(threads in random::threads(4, 4)) {
        let mut program = random::program(&threads);
        // The format cannot reopen a group.
        for (number, thread) in program.threads.iter_mut().enumerate() {
            if let spelter_memory_model::event::Agent::Device { subgroup, .. } = &mut thread.agent {
                *subgroup = number as u32;
            }
        }
        program.threads.sort_by_key(|thread| match thread.agent {
            spelter_memory_model::event::Agent::Device { workgroup, .. } => workgroup,
            spelter_memory_model::event::Agent::Host => 0,
        });
        let text = write_khronos(&program).unwrap();
        let read = Format::Khronos.read("again", &text).unwrap();
        prop_assert_eq!(&read.warnings, &vec![]);
        // From then on, references are numbered by their first use.
        let again = write_khronos(&read.program).unwrap();
        let twice = Format::Khronos.read("twice", &again).unwrap();
        prop_assert_eq!(write_khronos(&twice.program).unwrap(), again);
        prop_assert_eq!(&twice.program.threads.len(), &program.threads.len());
        prop_assert_eq!(counts(&read.program), counts(&program));
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_repaired_program_is_race_free_and_no_edit_is_idle(threads in random::threads(3, 3)) {
        let program = random::program(&threads);
        let effort = Effort { edits: 3, programs: 300, steps: 200_000, ..Effort::default() };
        let Ok(Some(repaired)) = repair(&program, None, &options(), effort) else { return Ok(()) };
        prop_assert_eq!(is_racy(&repaired.program), Some(false));
        prop_assert!(counts(&repaired.program).is_none_or(|(executions, ..)| executions > 0));
        for edit in &repaired.edits {
            let rest = repaired.edits.iter().copied().filter(|other| other != edit).collect();
            let rest = apply(&program, &rest);
            // A program without executions has no race, but is not a repair.
            let dead = counts(&rest).is_some_and(|(executions, ..)| executions == 0);
            prop_assert!(dead || is_racy(&rest) == Some(true), "{} is not needed", edit);
        }
    }
}

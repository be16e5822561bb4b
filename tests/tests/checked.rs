//! The random programs of checked mode: their executions are ones that the memory model knows.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeSet;

use spelter_memory_model::wellformed::operation_defects;
use spelter_shaders::check::observer::{Invocation, Observer, Target};
use spelter_shaders::ir::{Scope, Site, SiteAction};
use spelter_tests::checked::{Execution, Program, Schedule, SliceCounts, compare};

/// Enough for each shape and each rule of a language many times.
const PROGRAMS: u64 = 1200;

/// Checks what [`Observer`] promises to its listeners.
struct Contract {
    subgroup_size: u32,
    /// The workgroup that calls; workgroups follow each other.
    now: Option<u64>,
    seen: BTreeSet<u64>,
    waiting: BTreeSet<Invocation>,
    ended: BTreeSet<Invocation>,
}

impl Contract {
    fn new(program: &Program) -> Self {
        Self {
            subgroup_size: program.shape.subgroup_size,
            now: None,
            seen: BTreeSet::new(),
            waiting: BTreeSet::new(),
            ended: BTreeSet::new(),
        }
    }

    fn event(&mut self, by: Invocation) {
        assert!(!self.waiting.contains(&by) && !self.ended.contains(&by), "{by:?} does not run");
        if self.now != Some(by.workgroup) {
            assert!(self.seen.insert(by.workgroup), "the calls of workgroup {} are interleaved", by.workgroup);
            self.now = Some(by.workgroup);
        }
    }
}

impl Observer for Contract {
    fn access(&mut self, by: Invocation, _: Site, target: Target) {
        assert!(target.bytes > 0);
        self.event(by);
    }

    fn atomic(&mut self, by: Invocation, _: Site, _: Target, _: bool) {
        self.event(by);
    }

    fn fence(&mut self, by: Invocation, _: Site) {
        self.event(by);
    }

    fn arrive(&mut self, by: Invocation, _: Site) {
        self.event(by);
        self.waiting.insert(by);
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        assert_eq!(self.now, Some(workgroup));
        assert_eq!(execution == Scope::Subgroup, subgroup.is_some());
        let before = self.waiting.len();
        self.waiting.retain(|by| subgroup.is_some_and(|subgroup| by.local / self.subgroup_size != subgroup));
        assert!(self.waiting.len() < before, "no invocation waits");
    }

    fn end(&mut self, by: Invocation) {
        self.event(by);
        self.ended.insert(by);
    }
}

fn run(seed: u64, schedule: Schedule) -> (Program, Execution) {
    let program = Program::random(seed);
    let execution = program.run(schedule, &mut Contract::new(&program));
    (program, execution)
}

#[test]
fn executions_are_consistent_and_their_operations_valid() {
    let (mut racy, mut race_free, mut synchronized) = (0, 0, 0);
    for seed in 0..PROGRAMS {
        for schedule in [Schedule::new(seed), Schedule::fine(seed)] {
            let (program, execution) = run(seed, schedule);
            assert_eq!(execution.violation(), None, "seed {seed}, {schedule:?}");
            for event in &execution.trace.events {
                let defects = operation_defects(&event.operation);
                let fence = matches!(event.operation.action, spelter_memory_model::event::Action::Fence);
                // A fence without an order or without a class does nothing.
                assert!(defects.is_empty() || fence && !event.operation.acquire, "seed {seed}: {defects:?}");
            }
            let races = execution.races();
            let conflicts = execution.conflicts();
            assert!(races.iter().all(|pair| conflicts.contains(pair)));
            let across = |&(a, b): &(usize, usize)| execution.by[a] != execution.by[b];
            racy += u64::from(!races.is_empty());
            race_free += u64::from(races.is_empty() && conflicts.iter().any(across));
            synchronized += conflicts.iter().filter(|&pair| across(pair) && !races.contains(pair)).count();
            assert!(program.sites.len() > 3);
        }
    }
    println!("{racy} racy, {race_free} race-free, {synchronized} ordered pairs of two invocations");
    assert!(racy > PROGRAMS / 4 && race_free > PROGRAMS / 40 && synchronized > 1000);
}

#[test]
fn without_atomics_the_schedule_changes_no_verdict() {
    let mut compared = 0;
    for seed in 0..PROGRAMS {
        let program = Program::random(seed);
        let atomic = |site: &spelter_shaders::ir::SiteData| matches!(site.action, SiteAction::Atomic { .. });
        if program.sites.values().any(atomic) {
            continue;
        }
        // Events named by invocation and number within it, so that the order of the schedule does not show.
        let races = |schedule: Schedule| {
            let execution = program.run(schedule, &mut Contract::new(&program));
            let name = |event: usize| {
                let by = execution.by[event];
                (by, execution.by[..event].iter().filter(|other| **other == by).count())
            };
            let named = |(a, b)| (name(a).min(name(b)), name(a).max(name(b)));
            execution.races().into_iter().map(named).collect::<BTreeSet<_>>()
        };
        let first = races(Schedule::new(0));
        for schedule in [Schedule::new(seed + 1), Schedule::fine(seed), Schedule::fine(seed + 1)] {
            assert_eq!(races(schedule), first, "seed {seed}, {schedule:?}");
        }
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn slices_decide_as_the_whole_execution() {
    let programs = std::env::var("SPELTER_CHECKED_PROGRAMS").ok();
    let programs = programs.map_or(500, |number| number.parse().unwrap());
    let mut counts = SliceCounts::default();
    for seed in 0..programs {
        compare(seed, &mut counts).unwrap();
    }
    println!("{counts:?}");
    assert!(counts.races > programs && counts.ordered > programs && counts.undecided == 0, "{counts:?}");
    assert!(counts.events < 20 * counts.pairs, "slices have {} events for {} pairs", counts.events, counts.pairs);
}

//! Compares the verdicts of checked mode, which come from slices of a recording, with those of the axioms on the whole
//! execution.

use std::collections::BTreeSet;

use spelter_driver::check::{
    AccessFilter, Candidate, Dispatch, Log, Purpose, Recorder, Slice, Verdict, Word, confirm, slice, verdict,
};
use spelter_memory_model::Model;
use spelter_memory_model::relations::{Frame, conflicts};
use spelter_shaders::check::observer::{Memory, Target};

use super::{Execution, Program, Schedule};

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceCounts {
    /// Executions.
    pub executions: u64,
    /// Pairs of conflicting accesses.
    pub pairs: u64,
    /// Those of two invocations that are ordered.
    pub ordered: u64,
    /// Those that race.
    pub races: u64,
    /// Those whose slices would be too large.
    pub undecided: u64,
    /// Events of all slices.
    pub events: u64,
    /// The most events of a slice.
    pub largest: usize,
}

/// Bytes that a recording may need.
const BUDGET: usize = 1 << 24;

/// Compares all verdicts of the program of a seed, under one schedule of each kind.
///
/// # Errors
///
/// The first difference.
pub fn compare(seed: u64, counts: &mut SliceCounts) -> Result<(), String> {
    let program = Program::random(seed);
    for schedule in [Schedule::new(seed % 5), Schedule::fine(seed)] {
        compare_one(&program, schedule, counts).map_err(|problem| format!("seed {seed}, {schedule:?}: {problem}"))?;
    }
    Ok(())
}

fn compare_one(program: &Program, schedule: Schedule, counts: &mut SliceCounts) -> Result<(), String> {
    let (execution, all) = record(program, schedule, None);
    let words = words(&execution);
    counts.executions += 1;
    let races: BTreeSet<_> = execution.races().into_iter().collect();
    let touching: BTreeSet<_> = Frame::<u128>::new(&execution.trace, Model::SPEC)
        .same_location
        .iter()
        .filter(|&(a, b)| a < b && (execution.trace.operation(a).writes() || execution.trace.operation(b).writes()))
        .collect();
    let mut done = BTreeSet::new();
    for &word in &words {
        let (_, alone) = record(program, schedule, Some(word));
        let touches = |event: &usize| {
            let (by, target) = (execution.by[*event], execution.targets[*event]);
            target.is_some_and(|target| touched(target, by.workgroup).any(|touched| touched == word))
        };
        let events: Vec<_> = (0..execution.trace.len()).filter(touches).collect();
        for log in [&alone, &all] {
            let logged: Vec<_> = log.accesses(word).collect();
            let same = logged.len() == events.len()
                && logged.iter().zip(&events).all(|((_, logged), &event)| {
                    (logged.site, logged.by) == (execution.sites[event], execution.by[event])
                });
            if !same {
                return Err(format!("the accesses of {word:?} are not those that were logged"));
            }
            for (at, &second) in events.iter().enumerate() {
                for (before, &first) in events[..at].iter().enumerate() {
                    if !touching.contains(&(first, second)) {
                        continue;
                    }
                    let expected = races.contains(&(first, second));
                    let Ok(racy) = verdict(log, logged[before].0, logged[at].0) else {
                        counts.undecided += 1;
                        continue;
                    };
                    if racy != expected {
                        let whole = if expected { "race" } else { "are ordered" };
                        return Err(format!("events {first} and {second} {whole} in the whole, not in the slice"));
                    }
                    if done.insert((first, second)) {
                        counts.pairs += 1;
                        counts.races += u64::from(racy);
                        counts.ordered += u64::from(!racy && execution.by[first] != execution.by[second]);
                        let (first, second) = (logged[before].0, logged[at].0);
                        // The slice for a repair has the same verdict.
                        if let Ok(slice) = slice(log, first, second, Purpose::Repair)
                            && races_in(&slice) != expected
                        {
                            return Err(format!(
                                "the verdict on {first} and {second} changes in the slice for a repair"
                            ));
                        }
                        if let Ok(slice) = slice(log, first, second, Purpose::Verdict) {
                            counts.events += slice.trace.len() as u64;
                            counts.largest = counts.largest.max(slice.trace.len());
                        }
                    }
                }
            }
        }
        confirms(&execution, &races, &events, word, &alone)?;
    }
    Ok(())
}

/// Whether the two accesses of a slice race.
fn races_in(slice: &Slice) -> bool {
    let frame = Frame::<u128>::new(&slice.trace, Model::SPEC);
    let (order, (first, second)) = (frame.order(&slice.choice), slice.pair);
    conflicts(&frame).contains(first, second) && !order.location_order.either(first, second)
}

/// The verdict on a word is the first race of its accesses.
fn confirms(
    execution: &Execution,
    races: &BTreeSet<(usize, usize)>,
    events: &[usize],
    word: Word,
    log: &Log,
) -> Result<(), String> {
    let pairs = events.iter().flat_map(|&second| events.iter().map(move |&first| (first, second)));
    let expected = pairs.into_iter().find(|pair| races.contains(pair));
    let candidate = Candidate { word, first: AccessFilter::default(), second: AccessFilter::default() };
    let found = confirm(log, &candidate);
    match (&found, expected) {
        (Verdict::Confirmed(race), Some((first, second))) => {
            let at = |event: usize| (execution.by[event], execution.sites[event]);
            let named = ((race.first.by, race.first.site), (race.second.by, race.second.site));
            if named != (at(first), at(second)) {
                return Err(format!("the first race of {word:?} is ({first}, {second}), not {named:?}"));
            }
        }
        (Verdict::Refuted, None) | (Verdict::Undecided(_), _) => {}
        _ => return Err(format!("{word:?}: {found:?}, but the first race is {expected:?}")),
    }
    Ok(())
}

/// Records the accesses of one word, or of all.
fn record(program: &Program, schedule: Schedule, word: Option<Word>) -> (Execution, Log) {
    let words = match word {
        Some(word) => BTreeSet::from([word]),
        None => words(&program.run(schedule, &mut Recorder::new([], 0))),
    };
    let mut recorder = Recorder::new(words, BUDGET);
    recorder.begin(Dispatch {
        sites: program.sites.clone().into(),
        subgroup_size: program.shape.subgroup_size,
        references: (0..8).collect(),
    });
    let execution = program.run(schedule, &mut recorder);
    (execution, recorder.finish())
}

/// The words that an execution accesses.
fn words(execution: &Execution) -> BTreeSet<Word> {
    let accesses = execution.targets.iter().zip(&execution.by).filter_map(|(target, by)| Some(((*target)?, by)));
    accesses.flat_map(|(target, by)| touched(target, by.workgroup)).collect()
}

fn touched(target: Target, workgroup: u64) -> impl Iterator<Item = Word> {
    (0..target.bytes).map(move |byte| match target.memory {
        Memory::Device(address) => Word::Device((address + u64::from(byte)) & !3),
        Memory::Workgroup(offset) => Word::Workgroup { dispatch: 0, workgroup, offset: (offset + byte) & !3 },
    })
}

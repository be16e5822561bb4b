//! Records the accesses to the words of candidates: the dispatch runs again.
//!
//! A small dispatch is observed as a whole. Of a large one that is too much, and little of it matters: a workgroup that
//! touches none of the words leaves nothing in the record, unless other workgroups may read its atomics. So a first
//! replay tells which workgroups touch them, with calls for accesses to the bindings concerned only; a second one
//! observes those workgroups, and runs the others without any calls. None goes on after the last candidate.

use std::collections::BTreeSet;

use cranelift_entity::EntitySet;
use foldhash::HashSet;
use spelter_shaders::abi::{DispatchArgs, Outcome, Stop};
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check;
use spelter_shaders::check::observer::{Invocation, Memory, NoObserver, Observer, Target};
use spelter_shaders::compile::Checked;
use spelter_shaders::host::Host;
use spelter_shaders::ir::{Binding, Scope, Site};

use super::confirm::Confirmed;
use super::dispatch::DispatchRun;
use super::log::{Log, Word, word};
use super::second_pass::Bound;
use super::slice::Undecided;

/// What is observed of a dispatch as a whole, at most.
const MAX_OBSERVED_AT_ONCE: u64 = 1 << 20;

/// How a replay ended that did not come to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interrupted {
    pub(super) outcome: Outcome,
    /// Where the kernel was.
    pub(super) at: Option<Stop>,
}

/// What a replay recorded.
pub(super) struct Record {
    pub(super) log: Log,
    /// The device stopped it, or had no memory for it.
    pub(super) interrupted: Option<Interrupted>,
    /// The accesses and barriers that were observed.
    pub(super) work: u64,
}

/// What is to be recorded.
pub(super) struct Wanted {
    words: BTreeSet<Word>,
    /// The workgroups of the accesses that are asked about: what comes after them does not matter.
    workgroups: BTreeSet<u64>,
    /// Whether atomics that order nothing are wanted, too.
    all_atomics: bool,
}

impl Wanted {
    /// For the verdicts about candidates.
    pub(super) fn of_candidates<'c>(candidates: impl IntoIterator<Item = &'c check::Candidate>) -> Self {
        let (words, workgroups) =
            candidates.into_iter().map(|candidate| (word(candidate), candidate.second.invocation.workgroup)).unzip();
        Self { words, workgroups, all_atomics: false }
    }

    /// For the repairs of races.
    pub(super) fn of_races<'c>(races: impl IntoIterator<Item = (Word, &'c Confirmed)>) -> Self {
        let (words, workgroups) = races.into_iter().map(|(word, race)| (word, race.second.by.workgroup)).unzip();
        Self { words, workgroups, all_atomics: true }
    }
}

impl DispatchRun<'_> {
    /// Records; `None` if the dispatch cannot run again.
    pub(super) fn record(&self, wanted: &Wanted) -> Option<Record> {
        if !self.is_large.get() {
            let limit = if self.ended { MAX_OBSERVED_AT_ONCE } else { u64::MAX };
            let (record, is_cut) = self.record_all(wanted, limit)?;
            if !is_cut || !self.ended || self.pass.is_over() {
                return Some(record);
            }
            self.is_large.set(true);
        }
        self.record_some(wanted)
    }

    /// Observes the whole dispatch; also, whether the bound cut the record.
    fn record_all(&self, wanted: &Wanted, limit: u64) -> Option<(Record, bool)> {
        let mut recorder = self.recorder(self.code.all(), wanted.words.iter().copied(), wanted.all_atomics);
        let mut bound = self.pass.begin(limit);
        let mut replay = self.replay()?;
        let outcome = replay.run(self.code.all(), self.workgroups.clone(), &mut recorder, &mut bound);
        let work = bound.observed();
        self.observed.set(bound.calls());
        self.is_partial.set(outcome != Outcome::Done);
        let (interrupted, cut) = replay.ending(outcome);
        let log = if let Some(why) = cut { recorder.finish_stopped(why) } else { recorder.finish() };
        Some((Record { log, interrupted, work }, cut.is_some()))
    }

    /// Observes the workgroups that matter.
    fn record_some(&self, wanted: &Wanted) -> Option<Record> {
        let all = self.code.all();
        let mut recorder = self.recorder(all, wanted.words.iter().copied(), wanted.all_atomics);
        let mut bound = self.pass.begin(u64::MAX);
        // Trials of repairs observe the whole dispatch, of which it is not known how much that is.
        self.observed.set(0);
        self.is_partial.set(true);
        let mut left = self.workgroups.clone();
        let mut left = left.take_front(self.places_until(&wanted.workgroups));
        let none = EntitySet::new();
        let unobserved = if recorder.needs_all_workgroups() { None } else { self.code.observed_at(&none) };
        let touching = match &unobserved {
            Some(_) => self.touching(wanted, left.clone(), &mut bound)?,
            None => HashSet::default(),
        };
        let is_needed = |id: &[u32; 3]| unobserved.is_none() || touching.contains(&self.workgroups.number_of(*id));
        let mut replay = self.replay()?;
        let mut outcome = Outcome::Done;
        while outcome == Outcome::Done && !left.is_empty() && !recorder.is_cut() {
            let mut ids = left.clone();
            let needed = ids.next().is_some_and(|id| is_needed(&id));
            let alike = 1 + ids.take_while(|id| is_needed(id) == needed).count();
            let part = left.take_front(alike as u64);
            outcome = match &unobserved {
                Some(unobserved) if !needed => replay.run(unobserved, part, &mut NoObserver, &mut bound),
                _ => replay.run(all, part, &mut recorder, &mut bound),
            };
        }
        if unobserved.is_some() {
            recorder.skipped_workgroups();
        }
        let (interrupted, cut) = replay.ending(outcome);
        let work = bound.observed();
        let log = if let Some(why) = cut { recorder.finish_stopped(why) } else { recorder.finish() };
        Some(Record { log, interrupted, work })
    }

    /// The workgroups that touch a word.
    fn touching(&self, wanted: &Wanted, workgroups: Workgroups, bound: &mut Bound<'_>) -> Option<HashSet<u64>> {
        let mut touches = Touches::default();
        for word in &wanted.words {
            match *word {
                Word::Device(address) => _ = touches.words.insert(address),
                Word::Workgroup { workgroup, .. } => _ = touches.workgroups.insert(workgroup),
            }
        }
        if touches.words.is_empty() {
            return Some(touches.workgroups);
        }
        let bindings = self.bindings_of(&wanted.words);
        // Without bindings it is memory that pointers have.
        let code = if bindings.is_empty() { None } else { self.code.observed_at(&bindings) };
        let mut replay = self.replay()?;
        let code = code.as_deref().unwrap_or(self.code.all());
        replay.run(code, workgroups, &mut touches, bound);
        Some(touches.workgroups)
    }

    /// The bindings with a descriptor that has one of these words.
    fn bindings_of(&self, words: &BTreeSet<Word>) -> EntitySet<Binding> {
        let of_descriptors = self.code.kernel().bindings.iter();
        let of_descriptors = of_descriptors.flat_map(|(binding, data)| (0..data.count).map(move |_| binding));
        let mut bindings = EntitySet::new();
        for (binding, range) in of_descriptors.zip(self.args.buffers) {
            let start = range.address() as u64;
            // The word may begin before the range.
            let mut inside = words.range(Word::Device(start & !3)..Word::Device(start.saturating_add(range.len())));
            if inside.next().is_some() {
                bindings.insert(binding);
            }
        }
        bindings
    }

    /// How many workgroups run until all of these have.
    fn places_until(&self, workgroups: &BTreeSet<u64>) -> u64 {
        let numbers = self.workgroups.clone().map(|id| self.workgroups.number_of(id));
        let mut missing = workgroups.len();
        let mut count = 0;
        for number in numbers {
            count += 1;
            missing -= usize::from(workgroups.contains(&number));
            if missing == 0 {
                break;
            }
        }
        count
    }

    /// Restores the memory, so that the dispatch can run again; `None` if it cannot.
    pub(super) fn replay(&self) -> Option<Replay<'_>> {
        self.snapshot?.restore();
        // Messages were printed by the first run.
        let scratch = Scratch { host: Host { printer: None, ..Host::default() }, ..Scratch::default() };
        Some(Replay { run: self, scratch })
    }
}

/// A dispatch that runs again.
pub(super) struct Replay<'r> {
    run: &'r DispatchRun<'r>,
    scratch: Scratch,
}

impl Replay<'_> {
    /// Runs the next workgroups.
    pub(super) fn run(
        &mut self,
        checked: &Checked,
        workgroups: Workgroups,
        observer: &mut dyn Observer,
        bound: &mut Bound<'_>,
    ) -> Outcome {
        let stop = bound.stop();
        let args = DispatchArgs { stop: &stop, ..*self.run.args };
        checked.code.run_observed(&args, workgroups, &mut self.scratch, &mut bound.observe(observer))
    }

    /// Runs workgroups with the device's flag only.
    pub(super) fn run_unbounded(&mut self, checked: &Checked, workgroups: Workgroups) -> Outcome {
        checked.code.run_observed(self.run.args, workgroups, &mut self.scratch, &mut NoObserver)
    }

    /// Where it was when it was interrupted.
    pub(super) fn stopped(&self, outcome: Outcome) -> Interrupted {
        Interrupted { outcome, at: self.scratch.stopped }
    }

    /// What an outcome means: the end of all that is examined, a bound that cuts the record, or neither.
    pub(super) fn ending(&self, outcome: Outcome) -> (Option<Interrupted>, Option<Undecided>) {
        let interrupted = self.stopped(outcome);
        match outcome {
            Outcome::Done => (None, None),
            Outcome::Stopped if self.run.ended && !self.run.pass.is_stopped() => (None, Some(Undecided::TooLong)),
            Outcome::Stopped | Outcome::OutOfMemory => (Some(interrupted), Some(Undecided::Stopped)),
        }
    }
}

/// Notes which workgroups touch one of some words.
#[derive(Default)]
struct Touches {
    words: HashSet<u64>,
    workgroups: HashSet<u64>,
}

impl Observer for Touches {
    fn access(&mut self, by: Invocation, _: Site, target: Target) {
        let Memory::Device(address) = target.memory else { return };
        let mut words = (address & !3..address.saturating_add(target.bytes.max(1).into())).step_by(4);
        if words.any(|word| self.words.contains(&word)) {
            self.workgroups.insert(by.workgroup);
        }
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, _: bool) {
        self.access(by, site, target);
    }

    fn fence(&mut self, _: Invocation, _: Site) {}
    fn arrive(&mut self, _: Invocation, _: Site) {}
    fn meet(&mut self, _: u64, _: Site, _: u32) {}
    fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}
    fn end(&mut self, _: Invocation) {}
    fn ends(&mut self, _: u64, _: u32) {}
}

//! Notes: code that the memory model calls a race, and that profile `common` accepts because compilers emit it.
//!
//! The detector notes an idiom where it meets it, also if nothing depends on it: a fence after the barrier may order
//! all that the fence before it leaves open. So the dispatch runs again under profile `spec`, and a note is reported if
//! the axioms find a race there, of the kind that the idiom is about.

use spelter_memory_model::Model;
use spelter_memory_model::explain::{self, LocationOrderCondition, Reason};
use spelter_memory_model::names::Numbers;
use spelter_shaders::abi::Outcome;
use spelter_shaders::check::{Candidates, Detector, Limits, Note, NoteKind, Profile};

use super::checker::EXAMPLES;
use super::confirm::{Confirmed, Verdict, VerdictBudget, confirm_within};
use super::dispatch::DispatchRun;
use super::finding::{Finding, Hazard, Rule, Severity};
use super::noted::Proven;
use super::record::{Interrupted, Record, Wanted};
use super::replays::candidate;
use super::slice::Slice;

/// Dispatches of a kernel that run again for a note in vain, at most: each doubles the time of one.
const MAX_ATTEMPTS: u32 = 16;

/// Suspicions of which races are sought, at most.
const MAX_KINDS: usize = 64;

/// What is observed of the dispatch in the search of races, at most. Where something is noted, the same happens in most
/// workgroups.
const MAX_WORK: u64 = 1 << 24;

/// Words that are recorded, at most.
const MAX_WORDS: usize = 64;

impl DispatchRun<'_> {
    /// Reports the notes of the detector that races of profile `spec` prove, and that are no errors: those of the
    /// dispatch have been reported.
    /// Says how the dispatch ended if it did not come to its end when it ran again.
    pub(super) fn note(&self, notes: &[Note]) -> Option<Interrupted> {
        let mut proven = self.code.noted.0.lock();
        let is_proven = |proven: &Proven, note: &Note| proven.notes.iter().any(|(kind, _)| *kind == note.kind);
        if !notes.iter().all(|note| is_proven(&proven, note)) && proven.attempts < MAX_ATTEMPTS {
            let FoundRaces { races, is_cut } = match self.races_of_spec() {
                Ok(found) => found,
                Err(interrupted) => return Some(interrupted),
            };
            proven.attempts += u32::from(races.is_empty());
            for note in notes {
                let of_kind = races.iter().filter(|race| kinds_of(&race.slice) & bit(note.kind) != 0);
                let found = of_kind.map(|race| self.noted(note, race)).find(|noted| !self.is_error(noted));
                if let Some(found) = found.filter(|_| !is_proven(&proven, note)) {
                    proven.notes.push((note.kind, found));
                }
            }
            if is_cut && !notes.iter().all(|note| is_proven(&proven, note)) {
                self.code.checker.count(|counts| counts.notes_not_searched += 1);
            }
        }
        for (_, finding) in proven.notes.iter().filter(|(kind, _)| notes.iter().any(|note| note.kind == *kind)) {
            self.code.checker.report(Finding { schedule: self.workgroups.schedule(), ..finding.clone() });
        }
        None
    }

    /// Whether the two accesses of a note race in the profile of the device, too.
    fn is_error(&self, noted: &Finding) -> bool {
        [Hazard::ReadAfterWrite, Hazard::WriteAfterRead, Hazard::WriteAfterWrite].into_iter().any(|hazard| {
            let (rule, severity) = (Rule::Race(hazard), Severity::Error);
            self.code.checker.knows(&Finding { rule, severity, ..noted.clone() })
        })
    }

    /// The finding of a note that this race proves.
    fn noted(&self, note: &Note, race: &Confirmed) -> Finding {
        let text = match note.kind {
            NoteKind::Private => {
                "invocations of a workgroup exchange values through memory that is not coherent; what \
                orders the accesses does so on all known devices, but not by the memory model"
                    .to_owned()
            }
            NoteKind::AcquireBeforeBarrier => {
                let barrier = self.access(note.second.site, note.second.invocation);
                let at = barrier.position().map(|position| format!(" at {position}")).unwrap_or_default();
                format!(
                    "the memory barrier precedes the control barrier{at}, whose own semantics do not acquire; together \
                     they order memory on all known devices, but not by the memory model"
                )
            }
        };
        let [first, second] = [race.first, race.second].map(|access| self.access(access.site, access.by));
        Finding {
            rule: Rule::Note,
            severity: Severity::Note,
            memory: Some(self.common(race)),
            first: Some(first),
            second,
            dispatch: None,
            between: Vec::new(),
            reasons: vec![text],
            repairs: Vec::new(),
            count: 1,
            schedule: self.workgroups.schedule(),
            group: None,
            replay: None,
        }
    }

    /// Races of the dispatch under profile `spec`, or of as much of it as the bound allows.
    fn races_of_spec(&self) -> Result<FoundRaces, Interrupted> {
        let options = &self.code.checker.options;
        let limits = Limits { bytes: options.memory, kinds: MAX_KINDS, examples: EXAMPLES, ..Limits::default() };
        let checked = self.code.detected(self.args);
        let mut detector = Detector::new(&checked.kernel.sites, self.code.launch(), Profile::Spec, limits);
        let memory = self.code.checker.memory();
        if !memory.is_empty() {
            detector.reserve(memory);
        }
        let mut bound = self.pass.begin(MAX_WORK);
        let Some(mut replay) = self.replay() else { return Ok(FoundRaces::default()) };
        let outcome = replay.run(checked, self.workgroups.clone(), &mut detector, &mut bound);
        self.is_partial.set(outcome != Outcome::Done);
        let (interrupted, cut) = replay.ending(outcome);
        drop(bound);
        if let Some(interrupted) = interrupted {
            return Err(interrupted);
        }
        let mut words = 0;
        let has_room = |kind: &&Candidates| {
            words += kind.examples.len();
            words <= MAX_WORDS
        };
        let kinds: Vec<_> = detector.candidates().iter().take_while(has_room).cloned().collect();
        let mut found = FoundRaces { races: Vec::new(), is_cut: cut.is_some() };
        if kinds.is_empty() {
            return Ok(found);
        }
        let wanted = Wanted::of_candidates(kinds.iter().flat_map(|kind| &kind.examples));
        let Some(Record { mut log, interrupted, .. }) = self.record(&wanted) else { return Ok(found) };
        if let Some(interrupted) = interrupted {
            return Err(interrupted);
        }
        // Notes are about what the profile accepts.
        log.accepts = false;
        found.is_cut |= log.stopped.is_some();
        let mut budget = VerdictBudget::default();
        let mut race = |example| match confirm_within(&log, &candidate(example), &mut budget) {
            Verdict::Confirmed(race) => Some(*race),
            _ => None,
        };
        found.races = kinds.iter().filter_map(|kind| kind.examples.iter().find_map(&mut race)).collect();
        Ok(found)
    }
}

/// What the search of races under profile `spec` found.
#[derive(Default)]
struct FoundRaces {
    races: Vec<Confirmed>,
    /// Whether it ended before the dispatch did.
    is_cut: bool,
}

fn bit(kind: NoteKind) -> u32 {
    1 << kind as u32
}

/// The kinds of notes that a race of profile `spec` proves.
fn kinds_of(slice: &Slice) -> u32 {
    let names = Numbers(&slice.trace);
    let explained = explain::of_trace(&slice.trace, &slice.choice, slice.pair, Model::SPEC, &names);
    let conjuncts = explained.map(|explanation| explanation.conjuncts).unwrap_or_default();
    conjuncts.iter().filter(|conjunct| !conjunct.holds).fold(0, |kinds, conjunct| {
        kinds
            | match (conjunct.condition, &conjunct.reason) {
                (LocationOrderCondition::NonPrivate, _) => bit(NoteKind::Private),
                // A barrier that lacks something: a race without any proves nothing.
                (LocationOrderCondition::Ordered, Reason::ControlBarriers { .. }) => {
                    bit(NoteKind::AcquireBeforeBarrier)
                }
                _ => 0,
            }
    })
}

//! Notes: code that the memory model calls a race, and that profile `common` accepts because compilers emit it.
//!
//! The detector notes an idiom where it meets it, also if nothing depends on it: a fence after the barrier may order
//! all that the fence before it leaves open. So the dispatch runs again under profile `spec`, and a note is reported if
//! the axioms find a race there, of the kind that the idiom is about.

use std::sync::atomic::{AtomicU32, Ordering};

use spelter_memory_model::Model;
use spelter_memory_model::explain::{self, Condition, Reason};
use spelter_memory_model::names::Numbers;
use spelter_shaders::abi::Outcome;
use spelter_shaders::check::{Candidates, Detector, Limits, Note, NoteKind, Profile};

use super::checker::EXAMPLES;
use super::confirm::Verdict;
use super::dispatch::{DispatchRun, decide};
use super::finding::{Rule, Severity};
use super::slice::Slice;

/// Dispatches of a kernel that run again for a note in vain, at most: each doubles the time of one.
const MAX_ATTEMPTS: u32 = 16;

/// Suspicions of which races are sought, at most.
const MAX_KINDS: usize = 64;

/// Words that are recorded, at most.
const MAX_WORDS: usize = 64;

/// Notes that are proven, and dispatches that proved none.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// A bit for each kind.
    proven: AtomicU32,
    attempts: AtomicU32,
}

fn bit(kind: NoteKind) -> u32 {
    1 << kind as u32
}

impl DispatchRun<'_> {
    /// Reports the notes of the detector that races of profile `spec` prove.
    pub(super) fn note(&self, notes: &[Note]) {
        // Relaxed: one thread runs dispatches.
        let Noted { proven, attempts } = &self.code.noted;
        let is_proven = |note: &&Note| proven.load(Ordering::Relaxed) & bit(note.kind) != 0;
        if !notes.iter().all(|note| is_proven(&note)) && attempts.load(Ordering::Relaxed) < MAX_ATTEMPTS {
            match self.races_of_spec() {
                0 => _ = attempts.fetch_add(1, Ordering::Relaxed),
                kinds => _ = proven.fetch_or(kinds, Ordering::Relaxed),
            }
        }
        for note in notes.iter().filter(is_proven) {
            let text = match note.kind {
                NoteKind::Private => {
                    "invocations of a workgroup exchange values through memory that is not coherent; the barrier \
                     between them orders such accesses on all known devices, but not by the memory model"
                }
                NoteKind::AcquireBeforeBarrier => {
                    "the memory barrier precedes the control barrier, whose own semantics do not acquire; together \
                     they order memory on all known devices, but not by the memory model"
                }
            };
            let second = self.access(note.second.site, note.second.invocation);
            self.add(Rule::Note, Severity::Note, None, (None, second), (vec![text.to_owned()], Vec::new()), 1);
        }
    }

    /// The kinds of notes that races of the dispatch under profile `spec` prove, as bits.
    fn races_of_spec(&self) -> u32 {
        let options = &self.code.checker.options;
        let limits = Limits { bytes: options.memory, kinds: MAX_KINDS, examples: EXAMPLES };
        let sites = &self.code.all().kernel.sites;
        let mut detector = Detector::new(sites, self.code.launch(), Profile::Spec, limits);
        if self.replay(&mut detector) != Some(Outcome::Done) {
            return 0;
        }
        let mut words = 0;
        let has_room = |kind: &&Candidates| {
            words += kind.examples.len();
            words <= MAX_WORDS
        };
        let kinds: Vec<_> = detector.candidates().iter().take_while(has_room).cloned().collect();
        if kinds.is_empty() {
            return 0;
        }
        let Some(log) = self.record(&kinds, false) else { return 0 };
        kinds.iter().fold(0, |proven, kind| match decide(&log, kind) {
            Verdict::Confirmed(race) => proven | kinds_of(&race.slice),
            _ => proven,
        })
    }
}

/// The kinds of notes that a race of profile `spec` proves.
fn kinds_of(slice: &Slice) -> u32 {
    let names = Numbers(&slice.trace);
    let explained = explain::of_trace(&slice.trace, &slice.choice, slice.pair, Model::SPEC, &names);
    let conjuncts = explained.map(|explanation| explanation.conjuncts).unwrap_or_default();
    conjuncts.iter().filter(|conjunct| !conjunct.holds).fold(0, |kinds, conjunct| {
        kinds
            | match (conjunct.condition, &conjunct.reason) {
                (Condition::NonPrivate, _) => bit(NoteKind::Private),
                // A barrier that lacks something: a race without any proves nothing.
                (Condition::Ordered, Reason::Meet { .. }) => bit(NoteKind::AcquireBeforeBarrier),
                _ => 0,
            }
    })
}

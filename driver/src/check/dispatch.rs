//! A dispatch that ran under the detector: it runs again for what the detector suspects, and what the axioms confirm is
//! reported.

use std::cell::Cell;
use std::sync::Arc;

use spelter_shaders::abi::{self, DispatchArgs};
use spelter_shaders::back::Workgroups;
use spelter_shaders::check::observer::{Invocation, Memory};
use spelter_shaders::check::{self, Cause, Detector};
use spelter_shaders::compile::Checked;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{AtomicOp, MemoryModel, Site, SiteAction};

use super::code::CheckedCode;
use super::confirm::{Confirmed, Update};
use super::explanation::{self, SliceNames};
use super::finding::{Finding, FoundAccess, FoundMemory, FoundPlace, Hazard, Repair, Rule, Severity};
use super::log::{self, Accessed, Dispatch, Word};
use super::names::WorkgroupGrid;
use super::record::Interrupted;
use super::recorder::Recorder;
use super::repair::{self, Flag, Repairs, TrialRuns};
use super::second_pass::SecondPass;
use super::slice::Slice;
use super::snapshot::Snapshot;
use super::update;

/// A dispatch that ran under the detector.
pub(super) struct DispatchRun<'a> {
    pub(super) code: &'a CheckedCode,
    pub(super) args: &'a DispatchArgs<'a>,
    pub(super) workgroups: Workgroups,
    /// The memory before it; `None` if the dispatch cannot run again.
    pub(super) snapshot: Option<&'a Snapshot>,
    /// Whether it came to its end, or was stopped.
    pub(super) ended: bool,
    /// The bound of all that follows.
    pub(super) pass: SecondPass<'a>,
    /// What was observed when it ran again: all accesses and barriers; 0 before, and if not all were observed.
    pub(super) observed: Cell<u64>,
    /// Whether it is too large to be observed as a whole.
    pub(super) is_large: Cell<bool>,
    /// Whether the memory is not that after the dispatch, since the latest replay did not come to its end.
    pub(super) is_partial: Cell<bool>,
    /// Whether it is not, since a changed kernel ran. Later replays do not restore it: they write what the kernel does.
    pub(super) is_changed: Cell<bool>,
    /// Whether that memory was copied.
    pub(super) is_kept: bool,
    pub(super) trial_runs: TrialRuns,
}

impl DispatchRun<'_> {
    /// Reports what the detector found, and what the axioms say to it. Says where the kernel was if the device stopped
    /// it when it ran again.
    pub(super) fn report(&self, detector: &Detector) -> Option<Interrupted> {
        for barrier in detector.barriers() {
            let (other, site) = barrier.other;
            let first = site.map(|site| self.access(site, other));
            let second = self.access(barrier.site, barrier.waits);
            let early = self.code.early_return(barrier.site).filter(|_| first.is_none());
            let reason = match &first {
                Some(_) => "invocations of its scope wait at another barrier at the same time".to_owned(),
                None => {
                    let ended = self.access(barrier.site, other).invocation.map(|invocation| invocation.local);
                    let [x, y, z] = ended.unwrap_or([other.local, 0, 0]);
                    let early = early.map(|line| format!("; a return before the barrier is at {line}"));
                    format!("invocation ({x}, {y}, {z}) of its scope had ended{}", early.unwrap_or_default())
                }
            };
            let found = self.found(Rule::Barrier, Severity::Error, None, (first, second), vec![reason], 1);
            if self.code.checker.knows(&found) {
                self.code.checker.report_again(found);
                continue;
            }
            let seeks = self.code.checker.options.repairs;
            let moved = seeks.then(|| self.moved_barrier(barrier)).flatten();
            let repair =
                moved.unwrap_or_else(|| explanation::of_divergence(found.first.as_ref(), &found.second, early));
            self.code.checker.report(Finding { repairs: vec![repair], ..found });
        }
        let kinds = detector.candidates();
        let given_up = detector.given_up();
        self.code.checker.count(|counts| {
            counts.suspicions += kinds.len() as u64;
            counts.accesses_not_checked += given_up.accesses;
            counts.findings_dropped += given_up.candidates + given_up.barriers;
            counts.epochs_used_up += given_up.eras;
        });
        let mut interrupted = None;
        if !kinds.is_empty() {
            self.code.checker.progress.confirm(kinds.len());
            if !self.code.settled.has_all(kinds, &self.code.checker) {
                self.code.checker.count(|counts| counts.dispatches_repeated += 1);
                let before = self.code.checker.open_ends();
                interrupted = self.decide_all(kinds);
                self.code.settled.examined(before == self.code.checker.open_ends());
            }
        }
        if self.ended && interrupted.is_none() {
            interrupted = self.note(detector.notes());
        }
        interrupted
    }

    /// A recorder of the words of candidates, for a kernel that runs with the dispatch's arguments.
    pub(super) fn recorder(
        &self,
        checked: &Checked,
        words: impl IntoIterator<Item = Word>,
        all_atomics: bool,
    ) -> Recorder {
        let budget = usize::try_from(self.code.checker.options.replay_memory).unwrap_or(usize::MAX);
        let mut recorder = Recorder::new(words, budget).accepting(self.code.accepts_idioms());
        if all_atomics {
            recorder = recorder.with_all_atomics();
        }
        recorder.begin(Dispatch {
            sites: Arc::new(checked.kernel.sites.clone()),
            subgroup_size: abi::SUBGROUP_SIZE,
            references: (0..self.args.buffers.len() as u32).collect(),
        });
        recorder
    }

    /// Reports a race that the axioms confirmed. Returns the error, without repairs.
    pub(super) fn race<'r>(
        &self,
        confirmed: &Confirmed,
        (cause, count): (Cause, u64),
        flags: &dyn Fn() -> Option<(Vec<Flag>, Option<&'r Confirmed>)>,
    ) -> Finding {
        let slice = &confirmed.slice;
        let writes = |accessed: usize| slice.trace.operation(accessed).writes();
        let hazard = match (writes(slice.pair.0), writes(slice.pair.1)) {
            (true, true) => Hazard::WriteAfterWrite,
            (true, false) => Hazard::ReadAfterWrite,
            (false, _) => Hazard::WriteAfterRead,
        };
        let memory = self.common(confirmed);
        let described = self.describe(slice, &memory);
        let names = described.names();
        let pair = (&described.accesses[slice.pair.0], &described.accesses[slice.pair.1]);
        let (rule, severity) = (Rule::Race(hazard), Severity::Error);
        let race = Finding {
            rule,
            severity,
            memory: Some(memory),
            first: Some(pair.0.clone()),
            second: pair.1.clone(),
            dispatch: None,
            between: Vec::new(),
            reasons: vec![names.reason(slice).unwrap_or_else(|| explanation::of_cause(cause).to_owned())],
            repairs: Vec::new(),
            count,
            schedule: self.workgroups.schedule(),
            replay: names.replay(slice),
        };
        if self.code.checker.knows(&race) || !self.code.checker.options.repairs {
            self.code.checker.report_again(race.clone());
            return race;
        }
        let may_be = names.may_be_atomic(slice);
        let update = confirmed.updates.filter(|_| may_be);
        let update = update.and_then(|updates| self.update(updates, confirmed.second.by));
        let update = update.or_else(|| self.conditional(slice, pair).filter(|_| may_be));
        let found = match (update, explanation::between_workgroups(described.language, pair)) {
            // With a lock, say, that does not order what it protects.
            (Some(repair), advice) if names.has_atomics(slice) && described.language != Language::Wgsl => {
                let mut found = self.repairs(slice, &described, [pair.0, pair.1], flags);
                found.repairs.extend(advice);
                found.repairs.push(repair);
                found
            }
            (Some(repair), _) => Repairs { repairs: vec![repair], ..Repairs::default() },
            (None, Some(repair)) if described.language == Language::Wgsl => {
                Repairs { repairs: vec![repair], ..Repairs::default() }
            }
            (None, advice) => {
                let mut found = self.repairs(slice, &described, [pair.0, pair.1], flags);
                found.repairs.extend(advice);
                found
            }
        };
        let reasons = race.reasons.iter().cloned().chain(found.reasons).collect();
        self.code.checker.report(Finding { reasons, repairs: found.repairs, ..race.clone() });
        race
    }

    /// The memory that two accesses have in common, through the descriptor of the later one of them.
    pub(super) fn common(&self, confirmed: &Confirmed) -> FoundMemory {
        let Confirmed { first, second, slice, .. } = confirmed;
        let (from, bytes) = common_bytes(first, second);
        let (names, kernel) = (&self.code.names.names, &self.code.all().kernel);
        let through = || names.through(kernel, descriptor(slice, slice.pair.1)?, from, bytes, self.args.buffers);
        let later = if start(first) > start(second) { first } else { second };
        let memory = through().unwrap_or_else(|| names.memory(kernel, later.memory, bytes, self.args.buffers));
        match later.memory {
            Memory::Device(_) => memory.of(self.code.checker.resources().find(&(from..from + bytes))),
            Memory::Workgroup(_) => memory,
        }
    }

    /// The names of a slice's events.
    pub(super) fn describe(&self, slice: &Slice, memory: &FoundMemory) -> Described {
        let (names, kernel) = (&self.code.names.names, &self.code.all().kernel);
        let accesses: Vec<_> = slice.events.iter().map(|event| self.access(event.site, event.by)).collect();
        // An instruction that other invocations execute, too: that of its first event.
        let event_of = |&(_, site): &(u32, Site)| slice.events.iter().position(|event| event.site == site);
        let sites = slice.sites.iter().filter_map(event_of).map(|event| accesses[event].clone()).collect();
        let place = |event: usize| {
            let through = descriptor(slice, event).and_then(|number| names.place(kernel, number));
            through.unwrap_or_else(|| memory.place.clone())
        };
        let places = (0..slice.events.len()).map(place).collect();
        let (language, with_flags) = (names.language(), kernel.memory_model == MemoryModel::Vulkan);
        let is_compare = |&(_, site): &(u32, Site)| {
            matches!(kernel.sites[site].action, SiteAction::Atomic { op: AtomicOp::CompareExchange, .. })
        };
        let compare = slice.sites.iter().map(is_compare).collect();
        Described { accesses, sites, places, language, with_flags, compare }
    }

    /// The repair of an update in one statement, or by a condition, that races with another invocation's.
    fn update(&self, updates: [Update; 2], later: Invocation) -> Option<Repair> {
        let kernel = &self.code.needed.kernel;
        let language = self.code.names.names.language();
        let line = |site: Site| kernel.line_of_word(kernel.sites[site].word).map(|line| (&line.file, line.line));
        let Update { read, write } = updates[0];
        let lines = (line(read), line(write));
        if updates.iter().any(|update| (line(update.read), line(update.write)) != lines) {
            return None;
        }
        let updated = repair::updated(self.code.kernel(), &kernel.sites[write]);
        let access = self.access(write, later);
        let words = updates.map(|update| [update.read, update.write].map(|site| kernel.sites[site].word));
        let is_stored_back = || {
            words[0] == words[1]
                && repair::is_stored_back(self.code.kernel(), [read, write].map(|site| &kernel.sites[site]))
        };
        match lines {
            (Some(reads), Some(writes)) if reads == writes => Some(update::repair(language, &access, updated)),
            (Some(_), Some(_)) => update::conditional(language, &access, &self.access(read, later), updated),
            // Without lines the instructions tell.
            (None, None) if is_stored_back() => Some(update::repair(language, &access, updated)),
            _ => None,
        }
    }

    /// The repair of a race of the read of a condition with the write that it decides about, which not each invocation
    /// executes.
    fn conditional(&self, slice: &Slice, (first, second): (&FoundAccess, &FoundAccess)) -> Option<Repair> {
        let writes = |event: usize| slice.trace.operation(event).writes();
        let (read, write, event) = match (writes(slice.pair.0), writes(slice.pair.1)) {
            (true, false) => (second, first, slice.pair.0),
            (false, true) => (first, second, slice.pair.1),
            _ => return None,
        };
        let updated = repair::updated(self.code.kernel(), &self.code.all().kernel.sites[slice.events[event].site]);
        update::conditional(self.code.names.names.language(), write, read, updated)
    }

    pub(super) fn access(&self, site: Site, by: Invocation) -> FoundAccess {
        let grid = WorkgroupGrid { groups: self.args.num_workgroups, base: self.workgroups.base() };
        self.code.names.names.access_by(&self.code.needed.kernel, site, by, grid)
    }

    /// A finding of this run, without repairs.
    pub(super) fn found(
        &self,
        rule: Rule,
        severity: Severity,
        memory: Option<FoundMemory>,
        (first, second): (Option<FoundAccess>, FoundAccess),
        reasons: Vec<String>,
        count: u64,
    ) -> Finding {
        let (schedule, replay) = (self.workgroups.schedule(), None);
        let (dispatch, between, repairs) = Default::default();
        Finding { rule, severity, memory, first, second, dispatch, between, reasons, repairs, count, schedule, replay }
    }
}

/// The descriptor through which an event accesses memory, by its index in the dispatch.
fn descriptor(slice: &Slice, event: usize) -> Option<u32> {
    log::descriptor(slice.trace.operation(event).access()?.reference)
}

/// Where an access begins in its memory.
fn start(accessed: &Accessed) -> u64 {
    match accessed.memory {
        Memory::Device(address) => address,
        Memory::Workgroup(offset) => offset.into(),
    }
}

/// The first byte that two accesses have in common, and how many there are.
pub(super) fn common_bytes(first: &Accessed, second: &Accessed) -> (u64, u64) {
    let end = |accessed: &Accessed| start(accessed) + u64::from(accessed.bytes);
    let from = start(first).max(start(second));
    (from, end(first).min(end(second)).saturating_sub(from))
}

/// The names of a slice.
pub(super) struct Described {
    accesses: Vec<FoundAccess>,
    sites: Vec<FoundAccess>,
    places: Vec<FoundPlace>,
    language: Language,
    with_flags: bool,
    compare: Vec<bool>,
}

impl Described {
    pub(super) fn names(&self) -> SliceNames<'_> {
        let Self { accesses, sites, places, language, with_flags, compare } = self;
        SliceNames { accesses, sites, places, language: *language, with_flags: *with_flags, compare }
    }
}

/// The word of a candidate.
pub(super) fn word(candidate: &check::Candidate) -> Word {
    match candidate.memory {
        Memory::Device(address) => Word::Device(address & !3),
        Memory::Workgroup(offset) => {
            Word::Workgroup { dispatch: 0, workgroup: candidate.second.invocation.workgroup, offset: offset & !3 }
        }
    }
}

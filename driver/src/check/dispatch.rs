//! A dispatch that ran under the detector: it runs again for what the detector suspects, and what the axioms confirm is
//! reported.

use std::sync::Arc;

use spelter_shaders::abi::{self, DispatchArgs, Outcome};
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check::observer::{Invocation, Memory, Observer};
use spelter_shaders::check::{self, Candidates, Detector, Relation};
use spelter_shaders::compile::Checked;
use spelter_shaders::front::Language;
use spelter_shaders::host::Host;
use spelter_shaders::ir::{AtomicOp, MemoryModel, Site, SiteAction};

use super::checker::EXAMPLES;
use super::code::CheckedCode;
use super::confirm::{Candidate, Confirmed, Filter, Update, Verdict, confirm};
use super::explanation::{self, SliceNames};
use super::finding::{Finding, FoundAccess, FoundMemory, FoundPlace, Hazard, Repair, Rule, Severity};
use super::log::{self, Accessed, Dispatch, Log, Word};
use super::names::Grid;
use super::recorder::Recorder;
use super::repair::{self, Flag, Repairs};
use super::slice::Slice;
use super::snapshot::Snapshot;
use super::update;

/// Words that one replay records.
const MAX_WORDS: usize = 64;

/// Replays of a dispatch: what they leave undecided is a warning.
const MAX_REPLAYS: usize = 16;

/// A dispatch that ran under the detector.
pub(super) struct DispatchRun<'a> {
    pub(super) code: &'a CheckedCode,
    pub(super) args: &'a DispatchArgs<'a>,
    pub(super) workgroups: Workgroups,
    /// The memory before it; `None` if the dispatch cannot run again.
    pub(super) snapshot: Option<&'a Snapshot>,
}

impl DispatchRun<'_> {
    /// Reports what the detector found, and what the axioms say to it.
    pub(super) fn report(&self, detector: &Detector) {
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
            let moved = self.moved_barrier(barrier, detector.candidates());
            let repair = moved.unwrap_or_else(|| explanation::of_divergence(first.as_ref(), &second, early));
            self.add(Rule::Barrier, Severity::Error, None, (first, second), (vec![reason], vec![repair]), 1);
        }
        self.note(detector.notes());
        let kinds = detector.candidates();
        let given_up = detector.given_up();
        self.code.checker.count(|counts| {
            counts.suspicions += kinds.len() as u64;
            counts.accesses_not_checked += given_up.accesses;
            counts.findings_dropped += given_up.candidates + given_up.barriers;
        });
        if kinds.is_empty() {
            return;
        }
        self.code.checker.progress.confirm(kinds.len());
        let mut left = kinds;
        for _ in 0..MAX_REPLAYS {
            // As many kinds as have examples for one replay.
            let mut words = 0;
            let count = left.iter().take_while(|kind| {
                words += kind.examples.len();
                words <= MAX_WORDS.max(EXAMPLES)
            });
            let (now, later) = left.split_at(count.count());
            if now.is_empty() {
                return;
            }
            self.decide(now);
            left = later;
        }
        for kind in left {
            self.suspect(kind, "there were too many suspicions to confirm each");
        }
    }

    /// Runs the dispatch again, and asks the axioms about the candidates.
    fn decide(&self, kinds: &[Candidates]) {
        if self.snapshot.is_none() {
            let why = "the dispatch could not run again: the copy of the memory that it may write exceeds the limit, \
                or it was stopped";
            return kinds.iter().for_each(|kind| self.suspect(kind, why));
        }
        let Some(log) = self.record(kinds, false) else {
            return kinds.iter().for_each(|kind| self.suspect(kind, "the dispatch was stopped when it ran again"));
        };
        let decided: Vec<_> = kinds.iter().map(|kind| decide(&log, kind)).collect();
        // Atomics that order nothing are not needed for a verdict, but a repair may make them order something.
        let is_confirmed = decided.iter().any(|decided| matches!(decided, Verdict::Confirmed(_)));
        let with_atomics = if is_confirmed && !log.has_all_atomics() { self.record(kinds, true) } else { None };
        let again = |kind: &Candidates, confirmed| match with_atomics.as_ref().map(|log| decide(log, kind)) {
            Some(Verdict::Confirmed(with_atomics)) => with_atomics,
            _ => confirmed,
        };
        let mut races = Vec::new();
        for (kind, decided) in kinds.iter().zip(decided) {
            match decided {
                Verdict::Confirmed(confirmed) => races.push((kind, again(kind, confirmed))),
                Verdict::Undecided(why) => self.suspect(kind, &why.to_string()),
                Verdict::Refuted => self.code.checker.count(|counts| counts.refuted += 1),
            }
        }
        let log = with_atomics.as_ref().unwrap_or(&log);
        for (kind, confirmed) in &races {
            let others = races.iter().map(|(_, race)| &**race);
            self.race(kind, confirmed, &|| self.flag(log, confirmed, others.clone()));
        }
    }

    /// The flag that guards the memory of a race, or that the race is about, and a race of what it guards.
    fn flag<'r>(
        &self,
        log: &Log,
        race: &'r Confirmed,
        mut others: impl Iterator<Item = &'r Confirmed>,
    ) -> Option<(Flag, Option<&'r Confirmed>)> {
        let kernel = self.code.kernel();
        if let Some(flag) = repair::guarding(log, race, kernel) {
            return Some((flag, Some(race)));
        }
        let guards = |other: &'r Confirmed| {
            let flag = repair::guarding(log, other, kernel)?;
            flag.is_of([race.first.site, race.second.site]).then_some((flag, Some(other)))
        };
        let own = || {
            let writes = race.slice.trace.operation(race.slice.pair.0).writes();
            let (write, read) = if writes { (&race.first, &race.second) } else { (&race.second, &race.first) };
            let flag = Flag { write: (write.site, write.by), read: (read.site, read.by) };
            let is_write = race.slice.trace.operation(race.slice.pair.1).writes() == writes;
            let is_flag = repair::is_flag(kernel, &self.code.all().kernel.sites[read.site]);
            (is_flag && !is_write).then_some((flag, None))
        };
        others.find_map(guards).or_else(own)
    }

    /// Runs the dispatch again with another observer; `None` if it cannot.
    pub(super) fn replay(&self, observer: &mut dyn Observer) -> Option<Outcome> {
        self.snapshot?.restore();
        // Messages were printed by the first run.
        let mut scratch = Scratch { host: Host { printer: None, ..Host::default() }, ..Scratch::default() };
        Some(self.code.all().code.run_observed(self.args, self.workgroups.clone(), &mut scratch, observer))
    }

    /// The log of the words of candidates; `None` if the dispatch was stopped.
    pub(super) fn record(&self, kinds: &[Candidates], all_atomics: bool) -> Option<Log> {
        let mut recorder = self.recorder(self.code.all(), kinds, all_atomics);
        (self.replay(&mut recorder)? == Outcome::Done).then(|| recorder.finish())
    }

    /// A recorder of the words of candidates, for a kernel that runs with the dispatch's arguments.
    pub(super) fn recorder(&self, checked: &Checked, kinds: &[Candidates], all_atomics: bool) -> Recorder {
        let words = kinds.iter().flat_map(|kind| &kind.examples).map(word);
        let budget = usize::try_from(self.code.checker.options.replay_memory).unwrap_or(usize::MAX);
        let mut recorder = Recorder::new(words, budget);
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

    /// Reports a race that the axioms confirmed.
    fn race<'r>(
        &self,
        kind: &Candidates,
        confirmed: &Confirmed,
        flag: &dyn Fn() -> Option<(Flag, Option<&'r Confirmed>)>,
    ) {
        self.code.checker.count(|counts| counts.confirmed += 1);
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
        let (rule, severity, count) = (Rule::Race(hazard), Severity::Error, kind.count);
        let race = Finding {
            rule,
            severity,
            memory: Some(memory),
            first: Some(pair.0.clone()),
            second: pair.1.clone(),
            between: Vec::new(),
            reasons: vec![names.reason(slice).unwrap_or_else(|| explanation::of_cause(kind.kind.cause).to_owned())],
            repairs: Vec::new(),
            count,
            schedule: self.workgroups.schedule(),
            replay: names.replay(slice),
        };
        if self.code.checker.knows(&race) {
            // Only its count changes.
            return self.code.checker.report(race);
        }
        let may_be = names.may_be_atomic(slice);
        let update = confirmed.updates.filter(|_| may_be);
        let update = update.and_then(|updates| self.update(updates, confirmed.second.by));
        let update = update.or_else(|| self.conditional(slice, pair).filter(|_| may_be));
        let found = match (update, explanation::between_workgroups(described.language, pair)) {
            // With a lock, say, that does not order what it protects.
            (Some(repair), advice) if names.has_atomics(slice) && described.language != Language::Wgsl => {
                let mut found = self.repairs(slice, &described, [pair.0, pair.1], flag());
                found.repairs.extend(advice);
                found.repairs.push(repair);
                found
            }
            (Some(repair), _) => Repairs { repairs: vec![repair], ..Repairs::default() },
            (None, Some(repair)) if described.language == Language::Wgsl => {
                Repairs { repairs: vec![repair], ..Repairs::default() }
            }
            (None, advice) => {
                let mut found = self.repairs(slice, &described, [pair.0, pair.1], flag());
                found.repairs.extend(advice);
                found
            }
        };
        let reasons = race.reasons.iter().cloned().chain(found.reasons).collect();
        self.code.checker.report(Finding { reasons, repairs: found.repairs, ..race });
    }

    /// The memory that two accesses have in common, through the descriptor of the later one of them.
    pub(super) fn common(&self, confirmed: &Confirmed) -> FoundMemory {
        let Confirmed { first, second, slice, .. } = confirmed;
        let start = |accessed: &Accessed| match accessed.memory {
            Memory::Device(address) => address,
            Memory::Workgroup(offset) => offset.into(),
        };
        let end = |accessed: &Accessed| start(accessed) + u64::from(accessed.bytes);
        let from = start(first).max(start(second));
        let bytes = end(first).min(end(second)) - from;
        let (names, kernel) = (&self.code.names.names, &self.code.all().kernel);
        let through = || names.through(kernel, descriptor(slice, slice.pair.1)?, from, bytes, self.args.buffers);
        let later = if start(first) > start(second) { first } else { second };
        through().unwrap_or_else(|| names.memory(kernel, later.memory, bytes, self.args.buffers))
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
        let (reads, writes) = (line(read)?, line(write)?);
        if updates.iter().any(|update| (line(update.read), line(update.write)) != (Some(reads), Some(writes))) {
            return None;
        }
        let updated = repair::updated(self.code.kernel(), &kernel.sites[write]);
        let access = self.access(write, later);
        if reads == writes {
            return Some(update::repair(language, &access, updated));
        }
        update::conditional(language, &access, &self.access(read, later), updated)
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

    /// Reports a suspicion that was not decided.
    fn suspect(&self, kind: &Candidates, why: &str) {
        self.code.checker.count(|counts| counts.undecided += 1);
        let Some(example) = kind.examples.first() else { return };
        let hazard = match kind.kind.relation {
            Relation::Raw => Hazard::ReadAfterWrite,
            Relation::War => Hazard::WriteAfterRead,
            Relation::Waw => Hazard::WriteAfterWrite,
        };
        let memory = self.code.names.names.memory(&self.code.needed.kernel, example.memory, 1, self.args.buffers);
        let second = self.access(example.second.site, example.second.invocation);
        let reasons = vec![explanation::of_cause(kind.kind.cause).to_owned(), format!("not confirmed: {why}")];
        self.add(
            Rule::Race(hazard),
            Severity::Warning,
            Some(memory),
            (None, second),
            (reasons, Vec::new()),
            kind.count,
        );
    }

    pub(super) fn access(&self, site: Site, by: Invocation) -> FoundAccess {
        let grid = Grid { groups: self.args.num_workgroups, base: self.workgroups.base() };
        self.code.names.names.access_by(&self.code.needed.kernel, site, by, grid)
    }

    pub(super) fn add(
        &self,
        rule: Rule,
        severity: Severity,
        memory: Option<FoundMemory>,
        (first, second): (Option<FoundAccess>, FoundAccess),
        (reasons, repairs): (Vec<String>, Vec<Repair>),
        count: u64,
    ) {
        let (schedule, replay) = (self.workgroups.schedule(), None);
        let between = Vec::new();
        let found =
            Finding { rule, severity, memory, first, second, between, reasons, repairs, count, schedule, replay };
        self.code.checker.report(found);
    }
}

/// The descriptor through which an event accesses memory, by its index in the dispatch.
fn descriptor(slice: &Slice, event: usize) -> Option<u32> {
    log::descriptor(slice.trace.operation(event).access()?.reference)
}

/// The verdict on the examples of a kind: the first that is a race.
pub(super) fn decide(log: &Log, kind: &Candidates) -> Verdict {
    let mut found = Verdict::Refuted;
    for example in &kind.examples {
        let by = Some(example.second.invocation);
        let second = Filter { by, ..Filter::default() };
        let candidate = Candidate { word: word(example), first: Filter::default(), second };
        match confirm(log, &candidate) {
            Verdict::Refuted => {}
            Verdict::Undecided(why) => found = Verdict::Undecided(why),
            confirmed @ Verdict::Confirmed(_) => return confirmed,
        }
    }
    found
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

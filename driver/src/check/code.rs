//! A kernel in checked mode: runs a dispatch under the detector, and again for what the detector suspects.

use std::fmt;
use std::sync::{Arc, OnceLock};

use cranelift_entity::EntitySet;
use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::check::observer::{Invocation, Memory};
use spelter_shaders::check::{self, Candidates, Detector, Launch, Note, NoteKind, Relation};
use spelter_shaders::compile::{self, Backend, Checked, Checks, Compiled};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::host::Host;
use spelter_shaders::ir::{Binding, Kernel, MemoryModel, Site};

use super::checker::EXAMPLES;
use super::commands::{Both, Touched};
use super::confirm::{Candidate, Confirmed, Filter, Verdict, confirm};
use super::explanation::SliceNames;
use super::finding::{Finding, FoundAccess, FoundMemory, Hazard, Repair, Rule, Severity};
use super::log::{Accessed, Dispatch, Word};
use super::names::{Grid, KernelNames, Names};
use super::progress::Counted;
use super::recorder::Recorder;
use super::snapshot::Snapshot;
use super::{Checker, explanation};
use crate::pipeline::ShaderSource;

/// Invocations of a subgroup.
const SUBGROUP_SIZE: u32 = spelter_shaders::abi::SUBGROUP_SIZE;

/// Words that one replay records.
const MAX_WORDS: usize = 64;

/// Replays of a dispatch: what they leave undecided is a warning.
const MAX_REPLAYS: usize = 16;

/// A kernel in checked mode.
pub(crate) struct CheckedCode {
    checker: Arc<Checker>,
    names: Arc<KernelNames>,
    /// The kernel as it was read.
    kernel: Kernel,
    /// The bindings through which it writes.
    written: EntitySet<Binding>,
    /// The bindings from whose memory it reads.
    read: EntitySet<Binding>,
    /// For the detector, where others may have the memory of those.
    needed: Checked,
    /// For the detector, where no other has: for dispatches of a device, and for others.
    apart: [OnceLock<Checked>; 2],
    /// For replays.
    all: OnceLock<Checked>,
    /// For dispatches that are not checked.
    unchecked: OnceLock<Compiled>,
}

impl CheckedCode {
    pub(crate) fn new(kernel: &Kernel, backend: Backend, checker: &Arc<Checker>, source: &Arc<ShaderSource>) -> Self {
        let needed = compile::compile_checked(kernel, backend, Checks::Needed);
        let names = KernelNames { names: Names::new(kernel, source), kernel: needed.kernel.clone() };
        Self {
            checker: Arc::clone(checker),
            names: Arc::new(names),
            kernel: kernel.clone(),
            written: check::written_bindings(kernel),
            read: check::read_bindings(kernel),
            needed,
            apart: Default::default(),
            all: OnceLock::new(),
            unchecked: OnceLock::new(),
        }
    }

    /// The back end that runs the kernel.
    pub(crate) fn backend(&self) -> Backend {
        self.needed.backend
    }

    /// Why that is not the device's back end, if it is not.
    pub(crate) fn fallback(&self) -> Option<&str> {
        self.needed.fallback.as_deref()
    }

    /// By the engine that found the candidates: another one interleaves invocations in another way.
    fn all(&self) -> &Checked {
        self.all.get_or_init(|| compile::compile_checked(&self.kernel, self.backend(), Checks::All))
    }

    fn launch(&self) -> Launch {
        Launch {
            workgroup_size: self.kernel.invocations(),
            subgroup_size: SUBGROUP_SIZE,
            vulkan_model: self.kernel.memory_model == MemoryModel::Vulkan,
        }
    }

    /// Each range of memory that the kernel may access, and whether it may write it.
    fn ranges<'a>(&'a self, args: &'a DispatchArgs<'_>) -> impl Iterator<Item = (GuestSlice, bool)> + 'a {
        let of_bindings = self.kernel.bindings.iter().flat_map(|(binding, data)| {
            let written = self.written.contains(binding);
            (0..data.count).map(move |_| written)
        });
        // After the descriptors come the ranges of device addresses.
        let all = of_bindings.chain(std::iter::repeat(true));
        args.buffers.iter().copied().zip(all)
    }

    /// The ranges that must have their contents again before the kernel runs again: those that it may write, and that
    /// share memory with one that it may read. It writes the others again, whatever they hold.
    fn needed_again<'a>(&'a self, args: &'a DispatchArgs<'_>) -> impl Iterator<Item = GuestSlice> + 'a {
        let of_bindings = self.kernel.bindings.iter();
        let read = of_bindings
            .flat_map(|(binding, data)| (0..data.count).map(move |_| self.read.contains(binding)))
            .chain(std::iter::repeat(true));
        let bounds = |range: &GuestSlice| (range.address() as u64, range.address() as u64 + range.len());
        let inputs: Vec<_> =
            args.buffers.iter().zip(read).filter(|(_, read)| *read).map(|(range, _)| bounds(range)).collect();
        let is_read = move |range: &GuestSlice| {
            let (start, end) = bounds(range);
            inputs.iter().any(|input| input.0 < end && start < input.1)
        };
        self.ranges(args).filter(|(_, written)| *written).map(|(range, _)| range).filter(is_read)
    }

    /// The code for the detector. What a command of a device reads is of interest to later commands, too.
    fn detected(&self, args: &DispatchArgs<'_>) -> &Checked {
        if are_apart(self.ranges(args)) {
            let [marked, unread] = &self.apart;
            let (apart, checks) = match self.checker.commands().are_running() {
                true => (marked, Checks::NeededMarked),
                false => (unread, Checks::NeededApart),
            };
            let apart = apart.get_or_init(|| compile::compile_checked(&self.kernel, self.backend(), checks));
            // The engine of the replays.
            if apart.backend == self.backend() {
                return apart;
            }
        }
        &self.needed
    }
}

/// Whether no range that is written shares memory with one that is not.
fn are_apart(ranges: impl Iterator<Item = (GuestSlice, bool)>) -> bool {
    let bounds = |range: GuestSlice| (range.address() as u64, range.address() as u64 + range.len());
    let (written, read): (Vec<_>, Vec<_>) = ranges.filter(|(range, _)| !range.is_empty()).partition(|range| range.1);
    let mut written: Vec<(u64, u64)> = written.into_iter().map(|(range, _)| bounds(range)).collect();
    written.sort_unstable();
    // The end of all that begin no later.
    let mut last = 0;
    written.iter_mut().for_each(|range| {
        last = last.max(range.1);
        range.1 = last;
    });
    read.into_iter().map(|(range, _)| bounds(range)).all(|(start, end)| {
        let before = written.partition_point(|range| range.0 < end);
        before.checked_sub(1).is_none_or(|at| written[at].1 <= start)
    })
}

impl Code for CheckedCode {
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        if self.checker.begin().is_none() {
            let compile = || compile::compile(&self.kernel, self.backend());
            return self.unchecked.get_or_init(compile).code.run_all(args, workgroups, scratch);
        }
        let options = &self.checker.options;
        let mut kept = self.checker.kept();
        let copied = kept.snapshot.take(self.needed_again(args), options.replay_memory);
        let detected = self.detected(args);
        let sites = &detected.kernel.sites;
        let mut detector = self.checker.detector(&mut kept, sites, self.launch());
        self.checker.progress.begin(args.num_workgroups.iter().map(|&count| u64::from(count)).product());
        let mut counted = Counted::new(&mut detector, &self.checker.progress);
        let actions = sites.values().map(|site| &site.action);
        let mut touched = Touched::new(actions, kept.planes(), options.memory / 4);
        let mut both = Both { observer: &mut counted, touched: &mut touched };
        let outcome = detected.code.run_observed(args, workgroups.clone(), scratch, &mut both);
        let grid = Grid { groups: args.num_workgroups, base: workgroups.base() };
        self.checker.commands().touched(&self.checker, &self.names, (args.buffers, grid), &mut touched);
        let snapshot = (copied && outcome == Outcome::Done).then_some(&kept.snapshot);
        DispatchRun { code: self, args, workgroups, snapshot }.report(&detector);
        kept.put(detector);
        self.checker.keep(kept);
        outcome
    }
}

impl fmt::Debug for CheckedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedCode").field("kernel", &self.kernel.name).finish_non_exhaustive()
    }
}

/// A dispatch that ran under the detector.
struct DispatchRun<'a> {
    code: &'a CheckedCode,
    args: &'a DispatchArgs<'a>,
    workgroups: Workgroups,
    /// The memory before it; `None` if the dispatch cannot run again.
    snapshot: Option<&'a Snapshot>,
}

impl DispatchRun<'_> {
    /// Reports what the detector found, and what the axioms say to it.
    fn report(&self, detector: &Detector) {
        for barrier in detector.barriers() {
            let (other, site) = barrier.other;
            let first = site.map(|site| self.access(site, other));
            let reasons = match &first {
                Some(_) => vec!["invocations of its scope wait at another barrier at the same time".to_owned()],
                None => vec![format!("invocation {} of its scope had ended", other.local)],
            };
            let second = self.access(barrier.site, barrier.waits);
            self.add(Rule::Barrier, Severity::Error, None, (first, second), (reasons, Vec::new()), 1);
        }
        detector.notes().iter().for_each(|note| self.note(note));
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
        let Some(snapshot) = self.snapshot else {
            let why = "the dispatch could not run again: the copy of the memory that it may write exceeds the limit, or \
                it was stopped";
            return kinds.iter().for_each(|kind| self.suspect(kind, why));
        };
        let words = kinds.iter().flat_map(|kind| &kind.examples).map(word);
        let budget = usize::try_from(self.code.checker.options.replay_memory).unwrap_or(usize::MAX);
        let mut recorder = Recorder::new(words, budget);
        let all = self.code.all();
        recorder.begin(Dispatch {
            sites: Arc::new(all.kernel.sites.clone()),
            subgroup_size: SUBGROUP_SIZE,
            references: (0..self.args.buffers.len() as u32).collect(),
        });
        snapshot.restore();
        // Messages were printed by the first run.
        let mut scratch = Scratch { host: Host { printer: None, ..Host::default() }, ..Scratch::default() };
        let outcome = all.code.run_observed(self.args, self.workgroups.clone(), &mut scratch, &mut recorder);
        let log = recorder.finish();
        for kind in kinds {
            if outcome != Outcome::Done {
                self.suspect(kind, "the dispatch was stopped when it ran again");
                continue;
            }
            let mut open = None;
            let confirmed = kind.examples.iter().find_map(|example| {
                let by = Some(example.second.invocation);
                let second = Filter { by, ..Filter::default() };
                let candidate = Candidate { word: word(example), first: Filter::default(), second };
                match confirm(&log, &candidate) {
                    Verdict::Confirmed(confirmed) => Some(confirmed),
                    Verdict::Refuted => None,
                    Verdict::Undecided(why) => {
                        open = Some(why);
                        None
                    }
                }
            });
            match (confirmed, open) {
                (Some(confirmed), _) => self.race(kind, &confirmed),
                (None, Some(why)) => self.suspect(kind, &why.to_string()),
                (None, None) => self.code.checker.count(|counts| counts.refuted += 1),
            }
        }
    }

    /// Reports a race that the axioms confirmed.
    fn race(&self, kind: &Candidates, confirmed: &Confirmed) {
        self.code.checker.count(|counts| counts.confirmed += 1);
        let Confirmed { first, second, slice } = confirmed;
        let kernel = &self.code.all().kernel;
        let start = |accessed: &Accessed| match accessed.memory {
            Memory::Device(address) => address,
            Memory::Workgroup(offset) => offset.into(),
        };
        let end = |accessed: &Accessed| start(accessed) + u64::from(accessed.bytes);
        let later = if start(first) > start(second) { first } else { second };
        let common = end(first).min(end(second)) - start(later);
        let memory = self.code.names.names.memory(kernel, later.memory, common, self.args.buffers);
        let writes = |accessed: usize| slice.trace.operation(accessed).writes();
        let hazard = match (writes(slice.pair.0), writes(slice.pair.1)) {
            (true, true) => Hazard::WriteAfterWrite,
            (true, false) => Hazard::ReadAfterWrite,
            (false, _) => Hazard::WriteAfterRead,
        };
        let accesses: Vec<_> = slice.events.iter().map(|event| self.access(event.site, event.by)).collect();
        // An instruction that other invocations execute, too: that of its first event.
        let event_of = |&(_, site): &(u32, Site)| slice.events.iter().position(|event| event.site == site);
        let sites: Vec<_> = slice.sites.iter().filter_map(event_of).map(|event| accesses[event].clone()).collect();
        let language = kernel.memory_model;
        let names = SliceNames { accesses: &accesses, sites: &sites, place: &memory.place, language };
        let pair = (&accesses[slice.pair.0], &accesses[slice.pair.1]);
        let reasons = vec![names.reason(slice).unwrap_or_else(|| explanation::of_cause(kind.kind.cause).to_owned())];
        let repairs = match explanation::between_workgroups(language, pair) {
            Some(repair) => vec![repair],
            None => names.repairs(slice),
        };
        let replay = names.replay(slice);
        let (first, second) = (Some(pair.0.clone()), pair.1.clone());
        let (rule, severity, memory, count) = (Rule::Race(hazard), Severity::Error, Some(memory), kind.count);
        let (schedule, between) = (self.workgroups.schedule(), Vec::new());
        let race =
            Finding { rule, severity, memory, first, second, between, reasons, repairs, count, schedule, replay };
        self.code.checker.report(race);
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

    fn note(&self, note: &Note) {
        let text = match note.kind {
            NoteKind::Private => {
                "invocations of a workgroup exchange values through memory that is not coherent; the barrier between \
                 them orders such accesses on all known devices, but not by the memory model"
            }
            NoteKind::AcquireBeforeBarrier => {
                "the memory barrier precedes the control barrier, whose own semantics do not acquire; together they \
                 order memory on all known devices, but not by the memory model"
            }
        };
        let second = self.access(note.second.site, note.second.invocation);
        self.add(Rule::Note, Severity::Note, None, (None, second), (vec![text.to_owned()], Vec::new()), 1);
    }

    fn access(&self, site: Site, by: Invocation) -> FoundAccess {
        let grid = Grid { groups: self.args.num_workgroups, base: self.workgroups.base() };
        self.code.names.names.access_by(&self.code.needed.kernel, site, by, grid)
    }

    fn add(
        &self,
        rule: Rule,
        severity: Severity,
        memory: Option<FoundMemory>,
        (first, second): (Option<FoundAccess>, FoundAccess),
        (reasons, repairs): (Vec<String>, Vec<Repair>),
        count: u64,
    ) {
        let (schedule, between, replay) = (self.workgroups.schedule(), Vec::new(), None);
        let found =
            Finding { rule, severity, memory, first, second, between, reasons, repairs, count, schedule, replay };
        self.code.checker.report(found);
    }
}

/// The word of a candidate.
fn word(candidate: &check::Candidate) -> Word {
    match candidate.memory {
        Memory::Device(address) => Word::Device(address & !3),
        Memory::Workgroup(offset) => {
            Word::Workgroup { dispatch: 0, workgroup: candidate.second.invocation.workgroup, offset: offset & !3 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_apart_unless_an_output_overlaps_them() {
        let memory = GuestSlice::leak(256);
        let range = |start: u64, len: u64| memory.slice(start, len);
        let apart = |ranges: &[(GuestSlice, bool)]| are_apart(ranges.iter().copied());
        assert!(apart(&[(range(0, 64), true), (range(64, 64), false), (range(128, 64), true)]));
        assert!(apart(&[(range(0, 64), true), (range(32, 64), true), (range(96, 8), false)]));
        assert!(apart(&[(range(0, 64), false), (range(32, 64), false), (GuestSlice::EMPTY, true)]));
        assert!(!apart(&[(range(0, 64), true), (range(60, 64), false)]));
        assert!(!apart(&[(range(0, 200), true), (range(8, 8), true), (range(100, 8), false)]));
        assert!(!apart(&[(range(100, 8), true), (range(0, 200), false)]));
    }
}

//! The findings of a device, and what they are collected with.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cranelift_entity::PrimaryMap;
use spelter_locks::Mutex;
use spelter_shaders::check::{Detector, Launch, Limits, Planes};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Site, SiteData};
use spelter_shaders::schedule::Schedule;

use super::commands::{Commands, Trap};
use super::progress::ProgressCounts;
use super::resources::Resources;
use super::second_pass::Examining;
use super::snapshot::Snapshot;
use super::{CheckOptions, Finding, FindingIdentity, Repair, Rule, Severity};
use crate::exec::{CommandId, Observer};
use crate::memory::{Closed, HostObserver, HostView};

/// Kinds of candidates that the detector keeps of a dispatch, and examples of each.
const MAX_KINDS: usize = 4096;
pub(super) const EXAMPLES: usize = 8;

/// Findings that are kept until the program takes them, at most; later ones are counted only.
const MAX_FINDINGS: usize = 10_000;

/// The checked mode of a device.
#[derive(Debug)]
pub(crate) struct Checker {
    pub(super) options: CheckOptions,
    /// Dispatches that were started.
    dispatches: AtomicU64,
    schedule: Schedule,
    commands: Commands,
    resources: Resources,
    found: Mutex<Findings>,
    /// Addresses of device memory.
    memory: Range<u64>,
    /// What dispatches use one after another: its memory is not made anew for each.
    kept: Mutex<Kept>,
    pub(super) progress: ProgressCounts,
    /// The host's view of the heap, if its accesses are trapped.
    pub(super) trap: Option<Trap>,
    /// Whether a dispatch has ended, and is being examined.
    pub(super) examining: Examining,
    /// The executor has it; it may have the checker.
    observer: Option<Weak<dyn Observer>>,
}

#[derive(Debug, Default)]
struct Findings {
    list: Vec<Finding>,
    /// Index in the list of each finding.
    same: HashMap<FindingIdentity, usize>,
    /// Findings that the program has taken: what is observed again needs no other confirmation, and no other repairs.
    taken: HashMap<FindingIdentity, Taken>,
    /// The number of findings that were unlike all before them.
    new: u64,
    counts: CheckStats,
}

/// What stays known of a finding that the program has taken.
#[derive(Clone, Debug)]
struct Taken {
    severity: Severity,
    reasons: Vec<String>,
    repairs: Vec<Repair>,
}

impl Taken {
    fn of(finding: &Finding) -> Self {
        let Finding { severity, reasons, repairs, .. } = finding;
        Self { severity: *severity, reasons: reasons.clone(), repairs: repairs.clone() }
    }
}

impl Findings {
    /// How severe the finding of the same instructions is that is kept, or that the program has taken.
    fn severity(&self, identity: &FindingIdentity) -> Option<Severity> {
        let listed = self.same.get(identity).map(|&index| self.list[index].severity);
        listed.max(self.taken.get(identity).map(|taken| taken.severity))
    }

    fn take(&mut self) -> Vec<Finding> {
        for (identity, index) in self.same.drain() {
            let finding = &self.list[index];
            let is_known = self.taken.get(&identity).map(|taken| taken.severity >= finding.severity);
            if is_known == Some(false) || (is_known.is_none() && self.taken.len() < MAX_FINDINGS) {
                self.taken.insert(identity, Taken::of(finding));
            }
        }
        std::mem::take(&mut self.list)
    }
}

impl HostObserver for Checker {
    fn accessed(&self, offset: u64, writes: bool, instruction: usize) -> Closed {
        let Some(trap) = &self.trap else { return Closed::Open };
        self.commands.host_touches(self, trap.base.saturating_add(offset), writes, instruction)
    }
}

/// The memory of a checked dispatch, for the next one.
#[derive(Debug, Default)]
pub(super) struct Kept {
    detector: Option<Detector>,
    /// The marks of instructions, beside the detector's shadow.
    planes: Option<Arc<Planes>>,
    /// Contents from before the dispatch, and from after it.
    pub(super) snapshot: Snapshot,
    pub(super) after: Snapshot,
}

/// What checked mode did, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStats {
    /// Dispatches that were checked.
    pub dispatches: u64,
    /// Dispatches outside of [`CheckOptions::shard`], which ran unchecked.
    pub skipped: u64,
    /// Copies, fills and other commands that are no dispatches and access memory: their accesses were compared.
    pub transfers: u64,
    /// Dispatches that ran again to confirm what was suspected. Those whose suspicions were all known are not among
    /// them.
    pub dispatches_repeated: u64,
    /// Kinds of suspicions: pairs of an instruction and what is known of an earlier access.
    pub suspicions: u64,
    /// Those that the axioms confirmed.
    pub confirmed: u64,
    /// Those that the axioms refuted.
    pub refuted: u64,
    /// Those of them that were refuted wherever they were compared, and were suspected more often: an instruction is
    /// compared 512 times, at most, for what is known of an earlier access.
    pub refuted_in_part: u64,
    /// Those that stayed undecided; each is a warning.
    pub undecided: u64,
    /// Pairs of lines that access a word with a race, and of which it is not known whether they race, too: the accesses
    /// to the word were too many to compare all. The first ones are warnings, unless those that were compared are
    /// ordered.
    pub lines_not_compared: u64,
    /// Dispatches in which the search for notes ended before they did: it would have taken too long.
    pub notes_not_searched: u64,
    /// Accesses that were not checked, because the shadow had no memory for them ([`CheckOptions::memory`]).
    pub accesses_not_checked: u64,
    /// Accesses of commands that were forgotten although later commands may race with them, because there were too many
    /// or their memory exceeded [`CheckOptions::memory`].
    pub commands_forgotten: u64,
    /// Waits for signals that were forgotten, because too many of the semaphore or the queue came later. A later signal
    /// stands for each, so that accesses between the two count as ordered.
    pub signals_forgotten: u64,
    /// Findings that were not kept, because there were too many.
    pub findings_dropped: u64,
    /// Times that a dispatch used up the numbers of the detector's epochs: of accesses before such a moment it knows
    /// less, so that more is suspected, and warnings name fewer invocations.
    pub epochs_used_up: u64,
    /// Times that the detector forgot what orders the accesses so far, because it had no memory for it: more is
    /// suspected then.
    pub records_forgotten: u64,
    /// Bytes that were copied before a dispatch, so that it can run again: the most of one dispatch. Pages of zeros are
    /// not copied.
    pub largest_copy: u64,
}

impl CheckStats {
    /// Whether some accesses were not compared with all others, or some suspicions not decided: then that no error was
    /// found does not say that the execution has none.
    pub fn is_partial(&self) -> bool {
        let undecided = self.undecided + self.refuted_in_part + self.lines_not_compared;
        let forgotten = self.commands_forgotten + self.signals_forgotten;
        undecided + self.accesses_not_checked + forgotten + self.findings_dropped > 0
    }
}

impl Kept {
    /// The planes with the marks of instructions.
    pub(super) fn planes(&self) -> Option<Arc<Planes>> {
        self.planes.clone()
    }

    /// Takes back the detector.
    pub(super) fn put(&mut self, detector: Detector) {
        self.detector = Some(detector);
    }
}

impl Checker {
    /// For a device with this memory, whose host accesses may be trapped.
    pub(crate) fn new(
        options: CheckOptions,
        schedule: Schedule,
        memory: Range<u64>,
        view: Option<(&Arc<HostView>, u64)>,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Self {
        Self {
            options,
            dispatches: AtomicU64::new(0),
            schedule,
            commands: Commands::default(),
            resources: Resources::default(),
            found: Mutex::default(),
            memory,
            kept: Mutex::default(),
            progress: ProgressCounts::default(),
            trap: view.map(|(view, base)| Trap { view: Arc::clone(view), base }),
            examining: Examining::default(),
            observer: observer.map(Arc::downgrade),
        }
    }

    /// Addresses of device memory.
    pub(super) fn memory(&self) -> Range<u64> {
        self.memory.clone()
    }

    /// What is known of the commands of the device.
    pub(crate) fn commands(&self) -> &Commands {
        &self.commands
    }

    /// The program has no dependency between two commands, of which the second one runs now.
    pub(super) fn misses(&self, earlier: CommandId, later: CommandId, rule: Rule) {
        if let Some(observer) = self.observer.as_ref().and_then(Weak::upgrade) {
            observer.misses(earlier, later, &rule.to_string());
        }
    }

    /// The buffers and images of the device.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The order of workgroups, subgroups and lanes.
    pub(super) fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The host maps memory of the device, or ends the mapping.
    pub(crate) fn maps(&self, memory: GuestSlice, range: Range<u64>, mapped: bool) {
        let start = memory.address() as u64;
        let range = start.saturating_add(range.start)..start.saturating_add(range.end);
        self.commands.maps(self, range, mapped);
    }

    /// The host reads or writes memory of the device.
    pub(crate) fn host_accesses(&self, memory: GuestSlice, offset: u64, bytes: u64, writes: bool) {
        let start = (memory.address() as u64).saturating_add(offset);
        self.commands.host_accesses(self, start..start.saturating_add(bytes), writes);
    }

    /// The number of the dispatch that starts now, if it is to be checked.
    pub(super) fn begin(&self) -> Option<u64> {
        // Relaxed: one thread runs dispatches.
        let dispatch = self.dispatches.fetch_add(1, Ordering::Relaxed);
        let has = self.options.shard.has(dispatch);
        self.count(|counts| if has { counts.dispatches += 1 } else { counts.skipped += 1 });
        has.then_some(dispatch)
    }

    /// What the last dispatch left.
    pub(super) fn kept(&self) -> Kept {
        std::mem::take(&mut *self.kept.lock())
    }

    /// Keeps the memory of a dispatch that has ended.
    pub(super) fn keep(&self, kept: Kept) {
        *self.kept.lock() = kept;
    }

    /// A detector for a dispatch.
    pub(super) fn detector(&self, kept: &mut Kept, sites: &PrimaryMap<Site, SiteData>, launch: Launch) -> Detector {
        if let Some(mut detector) = kept.detector.take() {
            detector.restart(sites, launch);
            return detector;
        }
        let limits = Limits { bytes: self.options.memory, kinds: MAX_KINDS, examples: EXAMPLES, ..Limits::default() };
        let mut detector = Detector::new(sites, launch, self.options.profile, limits);
        kept.planes = if self.memory.is_empty() { None } else { detector.reserve(self.memory.clone()) };
        detector
    }

    /// Changes the counts.
    pub(super) fn count(&self, change: impl FnOnce(&mut CheckStats)) {
        change(&mut self.found.lock().counts);
    }

    /// The counts so far.
    pub(crate) fn stats(&self) -> CheckStats {
        self.found.lock().counts
    }

    /// What changes if a dispatch shows anything new: the number of findings, and what stayed open or was refuted.
    pub(super) fn open_ends(&self) -> [u64; 4] {
        let found = self.found.lock();
        let CheckStats { refuted, undecided, lines_not_compared, .. } = found.counts;
        [found.new, refuted, undecided, lines_not_compared]
    }

    /// Whether a finding about the same instructions was reported that is as severe, or more.
    pub(super) fn knows(&self, finding: &Finding) -> bool {
        let found = self.found.lock();
        found.severity(&finding.identity()) >= Some(finding.severity)
    }

    /// Whether an error may be counted as observed again without a confirmation.
    pub(super) fn counts(&self, error: &Finding) -> bool {
        if self.options.count_known {
            return self.knows(error);
        }
        let found = self.found.lock();
        let kept = found.same.get(&error.identity()).map(|&index| found.list[index].severity);
        kept >= Some(error.severity)
    }

    /// Adds a finding that is known ([`Self::knows`]), and of which nothing else was sought: it has the repairs that
    /// were found first, and the reasons that came with them.
    pub(super) fn report_again(&self, finding: Finding) {
        // One that is kept has all that is known of it.
        let taken = self.found.lock().taken.get(&finding.identity()).cloned();
        self.report(match taken.filter(|taken| taken.severity >= finding.severity) {
            Some(Taken { reasons, repairs, .. }) => Finding { reasons, repairs, ..finding },
            None => finding,
        });
    }

    /// Adds a finding, or counts it if there is one of the same instructions.
    pub(super) fn report(&self, mut finding: Finding) {
        if !finding.is_about_commands() {
            finding.dispatch = self.commands.running();
        }
        let identity = finding.identity();
        let mut guard = self.found.lock();
        let found = &mut *guard;
        if let Some(&index) = found.same.get(&identity) {
            let known = &mut found.list[index];
            let count = known.count.saturating_add(finding.count);
            // A confirmed one says more than a suspicion.
            if finding.severity > known.severity {
                *known = finding;
                found.new += 1;
            }
            known.count = count;
        } else if found.list.len() < MAX_FINDINGS {
            let is_known = found.taken.get(&identity).is_some_and(|taken| taken.severity >= finding.severity);
            found.new += u64::from(!is_known);
            found.same.insert(identity, found.list.len());
            found.list.push(finding);
        } else {
            found.counts.findings_dropped += 1;
        }
    }

    /// Changes what is reported of a finding that the program has not taken.
    pub(super) fn amend(&self, identity: &FindingIdentity, change: impl FnOnce(&mut Finding)) {
        let mut guard = self.found.lock();
        let found = &mut *guard;
        if let Some(&index) = found.same.get(identity) {
            change(&mut found.list[index]);
        }
    }

    /// Takes the findings since the last call.
    pub(crate) fn take(&self) -> Vec<Finding> {
        self.found.lock().take()
    }
}

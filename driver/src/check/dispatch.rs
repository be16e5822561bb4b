//! A dispatch that ran under the detector: what it ran with, and how its memory and its accesses are named. It runs
//! again for what the detector suspects (`replays.rs`), and what the axioms confirm is reported (`errors.rs`).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use spelter_shaders::abi::{self, DispatchArgs};
use spelter_shaders::back::Workgroups;
use spelter_shaders::check::observer::{Invocation, Memory};
use spelter_shaders::compile::Checked;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{AtomicOp, MemoryModel, Site, SiteAction};

use super::code::CheckedCode;
use super::confirm::Confirmed;
use super::explanation::SliceNames;
use super::finding::{Finding, FoundAccess, Rule, Severity};
use super::found_memory::{FoundMemory, FoundPlace};
use super::log::{self, Accessed, Dispatch, Word};
use super::names::WorkgroupGrid;
use super::recorder::Recorder;
use super::repair::combined::RepairedRace;
use super::repair::kept::TrialRuns;
use super::second_pass::SecondPass;
use super::slice::Slice;
use super::snapshot::Snapshot;

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
    /// The races with repairs that trials verified.
    pub(super) repaired: RefCell<Vec<RepairedRace>>,
}

impl DispatchRun<'_> {
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

    /// The memory that two accesses have in common, through the descriptor of the later one of them.
    pub(super) fn common(&self, confirmed: &Confirmed) -> FoundMemory {
        let Confirmed { first, second, slice, .. } = confirmed;
        let (from, bytes) = common_bytes(first, second);
        let (names, kernel) = (&self.code.names.names, &self.code.all().kernel);
        let through = || names.through(kernel, descriptor(slice, slice.pair.1)?, from, bytes, self.args.buffers);
        let later = if start(first) > start(second) { first } else { second };
        let memory = through().unwrap_or_else(|| names.memory(kernel, later.memory, bytes, self.args.buffers));
        match later.memory {
            Memory::Device(_) => memory.of_named(self.code.checker.resources().find(&(from..from + bytes))),
            Memory::Workgroup(_) => names.as_accessed(memory, kernel, later.site),
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
        let (dispatch, between, repairs, group) = Default::default();
        Finding {
            rule,
            severity,
            memory,
            first,
            second,
            dispatch,
            between,
            reasons,
            repairs,
            count,
            schedule,
            group,
            replay,
        }
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
    pub(super) accesses: Vec<FoundAccess>,
    sites: Vec<FoundAccess>,
    places: Vec<FoundPlace>,
    pub(super) language: Language,
    with_flags: bool,
    compare: Vec<bool>,
}

impl Described {
    pub(super) fn names(&self) -> SliceNames<'_> {
        let Self { accesses, sites, places, language, with_flags, compare } = self;
        SliceNames { accesses, sites, places, language: *language, with_flags: *with_flags, compare }
    }
}

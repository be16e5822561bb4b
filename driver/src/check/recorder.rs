//! Records a replay: the accesses of candidate words, and all events that may order them.
//!
//! Workgroups follow each other, so the events of a workgroup are one piece of the log. When a workgroup is done, its
//! piece is dropped if it has neither an access of a candidate word nor an atomic write that another workgroup might
//! read: a kernel without atomics leaves a log of only the workgroups concerned.

mod atomics;

use std::collections::{BTreeMap, BTreeSet};

use spelter_memory_model::event::{Class, Classes};
use spelter_shaders::check::observer::{Invocation, Memory, Observer, Target};
use spelter_shaders::ir::{Scope, Site, SiteAction, SiteData, StorageClass};

use super::barrier_order::BarrierOrder;
use super::log::{Atomics, Dispatch, Entry, Index, Instance, Log, MaybeIndex, Thread, Word, reference};
use super::operation::operation;
use super::slice::Undecided;
use atomics::Atomic;

/// The memory of an access, as the log has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct AccessedMemory {
    object: u32,
    /// The first byte.
    start: u64,
    bytes: u32,
    reference: u32,
}

/// Where the workgroup that runs began in the log.
#[derive(Clone, Copy, Debug)]
struct Start {
    workgroup: u64,
    entries: usize,
    threads: usize,
    instances: usize,
    /// Whether its events are needed after it is done.
    kept: bool,
}

/// A hash of what `hash` stands for, and a number: a round of SplitMix64's mixing.
fn mixed(hash: u64, number: u64) -> u64 {
    let mixed = (hash ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(27)
}

/// An observer that logs.
#[derive(Debug)]
pub struct Recorder {
    log: Log,
    /// Bytes that the log may have.
    budget: usize,
    /// The classes of atomics that may order anything: those in the semantics of a release or acquire, and those of
    /// atomics that release or acquire.
    ordered: Classes,
    running: Option<Start>,
    /// The threads of the workgroup that runs, by local index.
    threads: BTreeMap<u32, u32>,
    /// The barrier at which an invocation waits.
    waiting: BTreeMap<u32, Index>,
    /// Number of workgroups so far, and of subgroups.
    groups: u32,
    subgroups: u32,
    /// The numbers of the subgroups of the workgroup that runs, by `SubgroupId`.
    numbers: BTreeMap<u32, u32>,
    /// The last atomic write of each of [`Log::atomics`].
    last_writes: Vec<MaybeIndex>,
    device: Atomic,
    /// Those of the memory of the workgroup that runs.
    shared: Atomic,
    /// Number of members of all instances.
    members: usize,
}

impl Recorder {
    /// A recorder for these words, whose log may need about `budget` bytes.
    pub fn new(words: impl IntoIterator<Item = Word>, budget: usize) -> Self {
        let log = Log { words: words.into_iter().map(|word| (word, Vec::new())).collect(), ..Log::default() };
        Self {
            log,
            budget,
            ordered: Classes::NONE,
            running: None,
            threads: BTreeMap::new(),
            waiting: BTreeMap::new(),
            groups: 0,
            subgroups: 0,
            numbers: BTreeMap::new(),
            last_writes: Vec::new(),
            device: Atomic::default(),
            shared: Atomic::default(),
            members: 0,
        }
    }

    /// Logs all atomics, also those that order nothing as the kernel is: a repair may change that.
    pub fn with_all_atomics(self) -> Self {
        Self { ordered: Classes::ALL, ..self }
    }

    /// Decides as the profile `common` does: it accepts idioms of compilers inside a workgroup.
    pub(super) fn accepting(mut self, accepts: bool) -> Self {
        self.log.accepts = accepts;
        self
    }

    /// An access that is not logged comes after the fences of its invocation.
    fn passed(&mut self, by: Invocation) {
        if let Some(&thread) = self.threads.get(&by.local) {
            self.log.threads[thread as usize].fenced = false;
        }
    }

    /// The next dispatch of the window begins. Calls before the first one, and of unknown sites, are not logged.
    pub fn begin(&mut self, dispatch: Dispatch) {
        self.finish_workgroup();
        let outcomes = |site: &SiteData| [true, false].map(|wrote| operation(&site.action, wrote, None));
        // What an earlier dispatch of the window orders stays ordered.
        for operation in dispatch.sites.values().flat_map(outcomes) {
            let is_bare =
                operation.release && !operation.make_available || operation.acquire && !operation.make_visible;
            self.log.has_bare_barriers |= is_bare && operation.access().is_none();
            if operation.acquire || operation.release {
                let own = operation.access().map(|access| access.class);
                self.ordered = operation.semantics.iter().chain(own).fold(self.ordered, Classes::with);
            }
        }
        self.log.dispatches.push(dispatch);
    }

    /// The log.
    pub fn finish(mut self) -> Log {
        self.finish_workgroup();
        self.log
    }

    /// The log of a dispatch that was stopped: the events until then.
    pub(super) fn finish_stopped(mut self, why: Undecided) -> Log {
        self.log.stopped = Some(why);
        self.finish()
    }

    /// Whether it takes no more events.
    pub(super) fn is_cut(&self) -> bool {
        self.log.cut
    }

    /// Whether workgroups that touch no candidate word may be needed, too: others read their atomics.
    pub(super) fn needs_all_workgroups(&self) -> bool {
        self.atomics_of_device().any(|class| self.ordered.contains(class))
    }

    /// Workgroups were not observed.
    pub(super) fn skipped_workgroups(&mut self) {
        let has_atomics = self.atomics_of_device().next().is_some();
        self.log.lacks_atomics |= has_atomics;
    }

    /// The classes of the atomics on device memory.
    fn atomics_of_device(&self) -> impl Iterator<Item = Class> {
        let sites = self.log.dispatches.iter().flat_map(|dispatch| dispatch.sites.values());
        sites.filter_map(|site| match site.action {
            SiteAction::Atomic { class, .. } if class != StorageClass::Workgroup => {
                operation(&site.action, true, None).access().map(|access| access.class)
            }
            _ => None,
        })
    }

    /// Forgets the workgroup that ran, unless its events are needed.
    fn finish_workgroup(&mut self) {
        self.threads.clear();
        self.waiting.clear();
        self.numbers.clear();
        self.shared = Atomic::default();
        let Some(start) = self.running.take() else { return };
        self.groups += 1;
        if !start.kept {
            self.log.entries.truncate(start.entries);
            self.log.threads.truncate(start.threads);
            let gone = self.log.instances.drain(start.instances..);
            self.members -= gone.map(|instance| instance.members.len()).sum::<usize>();
            return;
        }
        let mut seen = BTreeSet::new();
        for thread in &mut self.log.threads[start.threads..] {
            thread.redundant = !thread.active && !seen.insert((thread.subgroup, thread.waits));
        }
    }

    fn enter(&mut self, workgroup: u64) {
        if self.running.is_none_or(|start| start.workgroup != workgroup) {
            self.finish_workgroup();
            self.running = Some(Start {
                workgroup,
                entries: self.log.entries.len(),
                threads: self.log.threads.len(),
                instances: self.log.instances.len(),
                kept: false,
            });
        }
    }

    fn keep(&mut self) {
        if let Some(start) = &mut self.running {
            start.kept = true;
        }
    }

    /// The bytes that the log needs, and what is derived from it.
    fn used(&self) -> usize {
        self.log.entries.len() * size_of::<Entry>()
            + self.log.threads.len() * size_of::<Thread>()
            + self.log.instances.len() * size_of::<Instance>()
            + self.members * (4 + BarrierOrder::BYTES * if self.log.has_bare_barriers { 2 } else { 1 })
            + self.log.atomics.len() * size_of::<Atomics>()
            + self.device.used()
            + self.shared.used()
    }

    /// The thread of an invocation.
    fn thread(&mut self, by: Invocation) -> u32 {
        let (dispatch, group) = (self.log.dispatches.len().saturating_sub(1) as u32, self.groups);
        let size = self.log.dispatches.last().map_or(1, |dispatch| dispatch.subgroup_size).max(1);
        if let Some(&thread) = self.threads.get(&by.local) {
            return thread;
        }
        let thread = self.log.threads.len() as u32;
        let next = &mut self.subgroups;
        let subgroup = *self.numbers.entry(by.local / size).or_insert_with(|| {
            *next += 1;
            *next
        });
        self.log.threads.push(Thread {
            dispatch,
            by,
            group,
            subgroup,
            last: MaybeIndex::NONE,
            fenced: false,
            active: false,
            waits: 0,
            redundant: false,
        });
        self.threads.insert(by.local, thread);
        thread
    }

    /// The place that an access has in the log.
    fn place(&self, target: Target) -> AccessedMemory {
        let dispatch = self.log.dispatches.len().saturating_sub(1);
        match target.memory {
            Memory::Device(address) => {
                let numbers = self.log.dispatches.last().map_or(&[] as &[u32], |dispatch| &dispatch.references[..]);
                // Known references have even numbers; others, and variables, have odd ones.
                let reference = match numbers.get(target.reference as usize) {
                    Some(&known) => reference(known),
                    None => (dispatch as u32).wrapping_mul(1 << 20).wrapping_add(target.reference).wrapping_mul(2) | 1,
                };
                AccessedMemory { object: 0, start: address, bytes: target.bytes, reference }
            }
            Memory::Workgroup(offset) => AccessedMemory {
                object: self.groups + 1,
                start: offset.into(),
                bytes: target.bytes,
                reference: target.reference.wrapping_mul(2) | 1,
            },
        }
    }

    /// The candidate words that an access touches.
    fn candidates(&self, by: Invocation, target: Target) -> impl Iterator<Item = Word> {
        let dispatch = self.log.dispatches.len().saturating_sub(1) as u32;
        let length = u64::from(target.bytes.max(1));
        let words = |start: u64| (start & !3..start.saturating_add(length)).step_by(4);
        let (device, group) = match target.memory {
            Memory::Device(address) => (Some(words(address)), None),
            Memory::Workgroup(offset) => (None, Some(words(offset.into()))),
        };
        let device = device.into_iter().flatten().map(Word::Device);
        let group = group.into_iter().flatten();
        let group =
            group.map(move |offset| Word::Workgroup { dispatch, workgroup: by.workgroup, offset: offset as u32 });
        device.chain(group).filter(|word| self.log.words.contains_key(word))
    }

    /// Logs an event, unless the budget is used up.
    fn push(&mut self, by: Invocation, site: Site, place: Option<AccessedMemory>, wrote: bool) -> Option<Index> {
        let action = self.site(site)?;
        if self.log.cut || self.used() > self.budget || self.log.entries.len() >= u32::MAX as usize {
            self.log.cut = true;
            return None;
        }
        let thread = self.thread(by);
        let index = Index(self.log.entries.len() as u32);
        let state = &mut self.log.threads[thread as usize];
        match action {
            SiteAction::Read(of) | SiteAction::Write(of) => {
                state.active |= of.scope.is_some();
                state.fenced = false;
            }
            SiteAction::Atomic { .. } => (state.active, state.fenced) = (true, false),
            SiteAction::Fence { .. } => {
                // An odd number; those of instances are even.
                state.waits = mixed(state.waits, u64::from(site.as_u32()) << 1 | 1);
                state.fenced |= operation(&action, false, None).release;
            }
            SiteAction::Barrier { .. } => {}
        }
        let after_fence = matches!(action, SiteAction::Barrier { .. }) && state.fenced;
        let before = std::mem::replace(&mut state.last, index.into());
        let AccessedMemory { object, start, bytes, reference } = place.unwrap_or_default();
        self.log.entries.push(Entry {
            thread,
            site,
            object,
            start,
            bytes,
            reference,
            before,
            source: MaybeIndex::NONE,
            overwrites: MaybeIndex::NONE,
            follows: MaybeIndex::NONE,
            which: u32::MAX,
            wrote,
            after_fence,
        });
        Some(index)
    }

    /// Logs an access of the words.
    fn touch(&mut self, words: &[Word], index: Index) {
        for word in words {
            self.log.words.entry(*word).or_default().push(index);
        }
        if !words.is_empty() {
            self.keep();
        }
    }

    fn site(&self, site: Site) -> Option<SiteAction> {
        Some(self.log.dispatches.last()?.sites.get(site)?.action)
    }
}

impl Observer for Recorder {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.enter(by.workgroup);
        let place = self.place(target);
        if matches!(self.site(site), Some(SiteAction::Write(_))) {
            self.overwrite(place);
        }
        let words: Vec<_> = self.candidates(by, target).collect();
        if words.is_empty() {
            self.passed(by);
        } else if let Some(index) = self.push(by, site, Some(place), false) {
            self.touch(&words, index);
        }
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.enter(by.workgroup);
        let words: Vec<_> = self.candidates(by, target).collect();
        let Some(action) = self.site(site) else { return };
        let class = operation(&action, wrote, None).access().map(|access| access.class);
        let place = self.place(target);
        if words.is_empty() && !class.is_some_and(|class| self.ordered.contains(class)) {
            self.log.lacks_atomics = true;
            self.passed(by);
            if wrote {
                self.overwrite(place);
            }
            return;
        }
        if let Some(index) = self.push(by, site, Some(place), wrote) {
            self.touch(&words, index);
            self.order(index, action);
        }
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.enter(by.workgroup);
        self.push(by, site, None, false);
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.enter(by.workgroup);
        if let Some(index) = self.push(by, site, None, false) {
            self.waiting.insert(by.local, index);
        }
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        self.enter(workgroup);
        let size = self.log.dispatches.last().map_or(1, |dispatch| dispatch.subgroup_size).max(1);
        let locals = match subgroup {
            Some(subgroup) => subgroup.saturating_mul(size)..subgroup.saturating_add(1).saturating_mul(size),
            None => 0..u32::MAX,
        };
        let waits = |index: Index| {
            let action = self.log.data(index).action;
            matches!(action, SiteAction::Barrier { execution: e, .. } if e == execution)
        };
        let released: Vec<_> = self
            .waiting
            .range(locals)
            .filter(|(_, index)| waits(**index))
            .map(|(&local, &index)| (local, index))
            .collect();
        // Invocations that wait at different sites do not meet: an error of its own, which the detector reports.
        let mut met: BTreeMap<Site, u32> = BTreeMap::new();
        for (local, index) in released {
            self.waiting.remove(&local);
            let time = self.log.entries.len() as u32;
            let instances = &mut self.log.instances;
            let which = *met.entry(self.log.entries[index.0 as usize].site).or_insert_with(|| {
                instances.push(Instance { members: Vec::new(), released: time });
                instances.len() as u32 - 1
            });
            self.log.instances[which as usize].members.push(index);
            let entry = &mut self.log.entries[index.0 as usize];
            entry.which = which;
            let state = &mut self.log.threads[entry.thread as usize];
            state.waits = mixed(state.waits, u64::from(which) << 1);
            self.members += 1;
        }
    }

    fn end(&mut self, _: Invocation) {}
}

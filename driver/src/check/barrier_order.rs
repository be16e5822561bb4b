//! Pairs of accesses that a barrier of their workgroup orders, found without a slice: in a loop of thousands of
//! barriers nearly all pairs of accesses are such ones.
//!
//! A release barrier of one invocation and an acquire barrier of another one synchronize through an instance of a
//! control barrier between them. If both have the class of the memory, make it available and visible, and reach the
//! workgroup, non-private accesses through one reference before the former are location-ordered before those after the
//! latter: a chain of one full link (`docs/checked-mode-internals.md`). Of each access it is enough to know the first
//! instance through which it is released, and the last one that the invocation has acquired: it takes part in all
//! between them that the other one does, and what acquires the last one acquires each earlier one.
//!
//! Accesses that make their values available and visible themselves, to the workgroup at least, need no more of a
//! barrier than that it releases and acquires their class.

use std::ops::Range;

use spelter_memory_model::event::{Access, Action, Class, Scope};
use spelter_shaders::ir::SiteAction;

use super::log::{Index, Log};

/// A fence or a control barrier of an invocation.
#[derive(Clone, Copy, Debug)]
struct Step {
    index: Index,
    /// The first instance through which what comes before it is released.
    released: Option<u32>,
    /// The last instance that is acquired up to it.
    acquired: Option<u32>,
}

/// The barriers of a log, for accesses to memory of one class.
#[derive(Clone, Debug)]
pub(super) struct BarrierOrder {
    /// The steps of each thread, one thread after the other, and where those of each begin.
    steps: Vec<Step>,
    starts: Vec<usize>,
    /// Whether each invocation of the workgroup takes part in an instance that does anything after it.
    whole: Vec<bool>,
}

impl BarrierOrder {
    /// Bytes for each barrier of an invocation.
    pub(super) const BYTES: usize = size_of::<Step>();

    /// Those of accesses that make their values available and visible themselves, or not.
    pub(super) fn new(log: &Log, class: Class, themselves: bool) -> Self {
        let is_step =
            |index: &Index| matches!(log.data(*index).action, SiteAction::Fence { .. } | SiteAction::Barrier { .. });
        let all = || (0..log.len() as u32).map(Index).filter(is_step);
        let mut starts = vec![0; log.threads.len() + 1];
        all().for_each(|index| starts[log.entry(index).thread as usize + 1] += 1);
        (1..starts.len()).for_each(|thread| starts[thread] += starts[thread - 1]);
        let none = Step { index: Index(0), released: None, acquired: None };
        let mut steps = vec![none; starts[log.threads.len()]];
        let mut next = starts.clone();
        for index in all() {
            let next = &mut next[log.entry(index).thread as usize];
            steps[*next].index = index;
            *next += 1;
        }
        for thread in starts.windows(2) {
            link(log, (class, themselves), &mut steps[thread[0]..thread[1]]);
        }
        Self { steps, starts, whole: whole(log) }
    }

    fn of(&self, log: &Log, access: Index) -> (&[Step], usize) {
        let thread = log.entry(access).thread as usize;
        let steps = &self.steps[self.starts[thread]..self.starts[thread + 1]];
        (steps, steps.partition_point(|step| step.index < access))
    }

    /// The first instance through which an access is released.
    fn released(&self, log: &Log, access: Index) -> Option<u32> {
        let (steps, at) = self.of(log, access);
        steps.get(at)?.released
    }

    /// The last instance that is acquired before an access.
    fn acquired(&self, log: &Log, access: Index) -> Option<u32> {
        let (steps, at) = self.of(log, access);
        steps[..at].last()?.acquired
    }
}

/// Finds what the steps of an invocation release and acquire.
fn link(log: &Log, (class, themselves): (Class, bool), steps: &mut [Step]) {
    // The instance of a barrier of the workgroup, and whether the step acquires and releases the class there.
    let what = |index: Index| {
        let operation = log.operation(index);
        let wide = matches!(operation.action, Action::ControlBarrier { execution } if execution >= Scope::Workgroup);
        let instance = log.instance(index).filter(|_| wide).map(|(which, _)| which);
        let reaches = operation.semantics.contains(class) && operation.scope >= Some(Scope::Workgroup);
        let acquires = reaches && operation.acquire && (themselves || operation.make_visible);
        (instance, acquires, reaches && operation.release && (themselves || operation.make_available))
    };
    let (mut met, mut acquired) = (None, None);
    for step in steps.iter_mut() {
        let (instance, acquires, _) = what(step.index);
        met = instance.or(met);
        acquired = if acquires { met } else { acquired };
        step.acquired = acquired;
    }
    let (mut meets, mut released) = (None, None);
    for step in steps.iter_mut().rev() {
        let (instance, _, releases) = what(step.index);
        meets = instance.or(meets);
        released = if releases { meets } else { released };
        step.released = released;
    }
}

/// For each instance of a barrier, whether no invocation of the workgroup that does anything after it is missing.
fn whole(log: &Log) -> Vec<bool> {
    let last = |thread: usize| log.threads[thread].last.get().map_or(0, |last| last.0);
    // The last events of the invocations of each workgroup, whose threads follow each other.
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    for (thread, data) in log.threads.iter().enumerate() {
        match groups.last_mut().filter(|(group, _)| *group == data.group) {
            Some((_, lasts)) => lasts.push(last(thread)),
            None => groups.push((data.group, vec![last(thread)])),
        }
    }
    groups.iter_mut().for_each(|(_, lasts)| lasts.sort_unstable());
    let is_whole = |instance: &super::log::Instance| {
        let Some(&member) = instance.members.first() else { return false };
        let group = log.thread(member).group;
        let Ok(at) = groups.binary_search_by_key(&group, |(number, _)| *number) else { return false };
        let lasts = &groups[at].1;
        let later = lasts.len() - lasts.partition_point(|&last| last < instance.released);
        let is_later = |member: &&Index| last(log.entry(**member).thread as usize) >= instance.released;
        instance.members.iter().filter(is_later).count() == later
    };
    log.instances.iter().map(is_whole).collect()
}

/// The accesses of a word that barriers may order: all are non-private, through one reference and of one class, or the
/// profile takes them for such ones. The profile has its own view of the barriers, too: all that is found to be ordered
/// here is in one workgroup.
pub(super) struct WordOrder<'a> {
    log: &'a Log,
    accesses: &'a [Index],
    /// For each access, the first instance through which it is released, and the last one that was acquired before it.
    released: Vec<Option<u32>>,
    acquired: Vec<Option<u32>>,
    /// For each access, where those of its workgroup begin; and the last of the instances through which those up to it
    /// are released, if all are by whole instances.
    begins: Vec<usize>,
    latest: Vec<Option<u32>>,
}

/// Whether an access makes what it writes available to its workgroup, and what it reads visible from there.
fn makes_values_known(log: &Log, index: Index) -> bool {
    let operation = log.operation(index);
    let reaches = operation.scope >= Some(Scope::Workgroup);
    let known = |access: &Access| (access.available || !access.writes) && (access.visible || !access.reads);
    reaches && operation.access().is_some_and(known)
}

impl<'a> WordOrder<'a> {
    /// `None` if the accesses are not alike.
    pub(super) fn new(log: &'a Log, accesses: &'a [Index]) -> Option<Self> {
        log.by_profile(|| Self::of(log, accesses))
    }

    fn of(log: &'a Log, accesses: &'a [Index]) -> Option<Self> {
        let kind = |index: Index| {
            let operation = log.operation(index);
            let access = operation.access().filter(|access| access.non_private)?;
            Some((access.class, access.reference))
        };
        let (class, reference) = kind(*accesses.first()?)?;
        if accesses.iter().any(|&index| kind(index) != Some((class, reference))) {
            return None;
        }
        // Without a bare barrier it makes no difference.
        let themselves = log.has_bare_barriers && accesses.iter().all(|&index| makes_values_known(log, index));
        let order = log.barriers(class, themselves);
        let released: Vec<_> = accesses.iter().map(|&index| order.released(log, index)).collect();
        let acquired = accesses.iter().map(|&index| order.acquired(log, index)).collect();
        let group = |at: usize| log.thread(accesses[at]).group;
        let (mut begins, mut latest) = (Vec::new(), Vec::new());
        for at in 0..accesses.len() {
            let own = released[at].filter(|&which| order.whole[which as usize]);
            if at > 0 && group(at - 1) == group(at) {
                let before: Option<u32> = latest[at - 1];
                latest.push(before.zip(own).map(|(before, own)| before.max(own)));
                begins.push(begins[at - 1]);
            } else {
                latest.push(own);
                begins.push(at);
            }
        }
        Some(Self { log, accesses, released, acquired, begins, latest })
    }

    /// Accesses before one, all of which are ordered before it.
    pub(super) fn ordered_before(&self, second: usize) -> Range<usize> {
        let begin = self.begins[second];
        let Some(acquired) = self.acquired[second] else { return begin..begin };
        let is_before = |latest: &Option<u32>| latest.is_some_and(|latest| latest <= acquired);
        begin..begin + self.latest[begin..second].partition_point(is_before)
    }

    /// Whether one access is ordered before a later one by a barrier, or by program order.
    pub(super) fn orders(&self, first: usize, second: usize) -> bool {
        let log = self.log;
        let [x, y] = [first, second].map(|at| log.entry(self.accesses[at]).thread);
        if x == y {
            return true;
        }
        let (Some(released), Some(acquired)) = (self.released[first], self.acquired[second]) else { return false };
        let by = log.threads[y as usize].by;
        // Members are in the order of their numbers in the workgroup.
        let members = &log.instances[released as usize].members;
        self.begins[first] == self.begins[second]
            && released <= acquired
            && members.binary_search_by_key(&by.local, |&member| log.thread(member).by.local).is_ok()
    }
}

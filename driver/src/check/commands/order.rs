//! Dependency chains of an access, as far as barriers, semaphores, fences and events have carried it.
//!
//! Dependencies are kept in a log, and an access follows the log only when its memory is accessed again: most accesses
//! are never asked, and most dependencies concern memory that is not touched any more. Vulkan, "Synchronization and
//! Cache Control": an execution dependency chain leads from the access to later stages; a write must also be made
//! available on that chain, and then visible to the later access.

use std::ops::Range;

use smallvec::SmallVec;

use super::chain::{ChainState, Part, QueueStages, Reach, Reaches, add_stages, reach, reach_mut, stages};
use super::events::{Barrier, SetEvent, SyncEvent, SyncLog};
use super::host::HostDependencies;
use super::scope::{Accesses, Side, Stage, Stages};
use super::signalled::{Signal, SignalSet, SignalUnion};

/// What a later access needs to know of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Point {
    /// The queue; `None` is the host.
    pub(super) queue: Option<u32>,
    /// Number of the event that submitted its batch; of the next event, for the host.
    pub(super) submitted: u64,
    pub(super) stage: Stage,
    /// One access type.
    pub(super) access: Accesses,
}

/// The first condition that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Lack {
    /// No execution dependency.
    Order,
    /// The write is not made available.
    Availability,
    /// The write is available, but not visible to the later access.
    Visibility,
    /// The host waited for the command, and the write is not made visible to the host.
    HostDomain,
}

/// The order of what comes after an access of a command, or of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Order {
    /// Where the access is.
    pub(super) at: Point,
    /// Number of the next event when it happened.
    born: u64,
    /// Number of the next event to follow.
    next: u64,
    progress: ChainState,
    /// The signals whose first scope has the access, and that may still be waited for.
    signals: SignalSet,
    /// The same for events that are set.
    set: Vec<SetEvent<ChainState>>,
    /// The event at which the host knew that the command was done.
    host: Option<u64>,
    /// The barriers to the host after it: of a write, those that made it visible.
    to_host: HostDependencies,
}

impl Order {
    /// An access that happens now: before event `next`.
    pub(super) fn new(at: Point, next: u64) -> Self {
        Self {
            at,
            born: next,
            next,
            progress: ChainState::default(),
            signals: SignalSet::default(),
            set: Vec::new(),
            host: None,
            to_host: HostDependencies::default(),
        }
    }

    /// Everything in the second scope of event `number` comes after it and sees it: for layout transitions.
    pub(super) fn comes_before_all_of(&mut self, number: u64, queue: u32, dst: &Side) {
        add_stages(&mut self.progress.after, queue, dst.stages);
        let reach = reach_mut(&mut self.progress.memory, queue);
        reach.available = dst.stages;
        if is_to_host(dst) {
            reach.to_host = Some(number);
            self.to_host.add(number, queue, dst);
        }
        dst.named.iter().for_each(|stage| reach.visible[stage as usize] = dst.accesses);
    }

    /// Whether everything that is submitted from now on comes after it, and sees what it wrote.
    pub(super) fn is_settled(&self) -> bool {
        self.host.is_some() || self.at.queue.is_none()
    }

    /// Whether nothing that was submitted by event `oldest` or later, and nothing that the host does, can race with it.
    pub(super) fn is_over(&self, oldest: u64) -> bool {
        let is_seen = || self.progress.all().all(|reaches| self.is_seen_by_host(reaches));
        self.precedes_submission(oldest) && (!self.may_host_lack() || is_seen())
    }

    /// Whether the host may read a value of it that is not visible to the host.
    fn may_host_lack(&self) -> bool {
        self.at.queue.is_some() && self.at.access.writes()
    }

    /// Whether it is the order of another access that happens now, before event `next`.
    pub(super) fn is_of(&self, point: &Point, next: u64) -> bool {
        self.born == next && self.at == *point && *self == Self::new(*point, next)
    }

    /// Forgets what decides nothing for what was submitted by event `oldest` or later, once the log has no events that
    /// it has followed: orders of which the same is left are equal then.
    pub(super) fn forget(&mut self, oldest: u64) {
        self.born = self.next;
        if !self.precedes_submission(oldest) {
            return;
        }
        // Before a barrier or a signal counts, all is visible to the queue's commands: what is left is a chain of
        // barriers through the host's stage, and what the host sees.
        self.at.submitted = 0;
        self.host = self.host.map(|_| 0);
        self.signals = SignalSet::default();
        let host = Stages::of(Stage::Host);
        let keep = |of: &mut QueueStages| {
            of.iter_mut().for_each(|(_, stages)| *stages = stages.and(host));
            of.retain(|(_, stages)| !stages.is_empty());
        };
        keep(&mut self.progress.after);
        keep(&mut self.progress.seen);
        for reaches in self.progress.all_mut() {
            let of = |known: Reach| Reach {
                available: known.available.and(host),
                to_host: known.to_host,
                ..Reach::default()
            };
            reaches.iter_mut().for_each(|(_, reach)| *reach = of(*reach));
            reaches.retain(|(_, reach)| *reach != Reach::default());
        }
        self.progress.join(&(0..u64::MAX));
    }

    /// Bytes of host memory that it occupies, about.
    pub(super) fn bytes(&self) -> u64 {
        let parts = self.set.iter().map(|set| &set.then).chain([&self.progress]).map(|state| state.ranged.len()).sum();
        let others = [(parts, size_of::<(u64, Part)>()), (self.set.len(), size_of::<SetEvent<ChainState>>())];
        let others = others.into_iter().map(|(count, size): (usize, usize)| (count * size) as u64);
        size_of::<Self>() as u64 + others.sum::<u64>() + self.to_host.bytes()
    }

    /// Adds the signals that it comes before and that something may still wait for.
    pub(super) fn add_signals(&self, to: &mut SignalUnion) {
        to.add(&self.signals);
        self.set.iter().for_each(|set| to.add_event(set.number));
        self.to_host.add_signals(to);
    }

    /// The number of the first event after it.
    pub(super) fn born(&self) -> u64 {
        self.born
    }

    /// Whether it comes before this signal of a semaphore or fence.
    pub(super) fn has_signal(&self, signal: &Signal) -> bool {
        self.signals.has(signal)
    }

    /// Number of the next event that the access has not followed.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether this access, which happened before one that comes now, was submitted after that, or is the host's, and
    /// no dependency of the program, in whatever stages, let it come first: then the two ran in the other order by
    /// chance.
    pub(super) fn overtook(&self, now: &Point, events: &SyncLog) -> bool {
        now.submitted < self.at.submitted && !events.lead(self.born, self.at.queue, now.queue)
    }

    fn stages_after(&self, queue: u32) -> Stages {
        stages(&self.progress.after, queue)
    }

    /// Whether the host knew of it before that submission, or it is the host's and came before.
    pub(super) fn precedes_submission(&self, submitted: u64) -> bool {
        match self.at.queue {
            None => self.at.submitted <= submitted,
            Some(_) => self.host.is_some_and(|host| host < submitted),
        }
    }

    /// Follows the log up to its end. Ranges that do not meet `extent`, which contains all that the access touched, are
    /// skipped.
    pub(super) fn follow(&mut self, events: &SyncLog, extent: &Range<u64>) {
        for (number, event) in events.from(self.next) {
            match event {
                SyncEvent::Submission { .. } => {}
                SyncEvent::Barrier { queue, submitted, barriers } => {
                    barriers.iter().for_each(|Barrier { src, dst, .. }| self.to_host.pass(*queue, src, dst));
                    if self.precedes_submission(*submitted) {
                        // A submission, too, makes visible to all of it what the host knows to be done. So it comes
                        // before whatever the queue does from now on, and only the host may lack something.
                        let is_to_host = |barrier: &Barrier| barrier.dst.stages.has(Stage::Host);
                        if !self.may_host_lack() || !barriers.iter().any(is_to_host) {
                            continue;
                        }
                        self.see_all(*queue, Stages::COMMANDS);
                    }
                    self.barriers(number, (*queue, barriers), extent, None);
                }
                SyncEvent::Signal { queue, submitted, stages } => {
                    if self.is_in_scope(*queue, *submitted, *stages) {
                        // What was submitted when the host knew of it comes after it, and so do later submissions.
                        let later = self.precedes_submission(*submitted);
                        self.signals.add(Signal::new(number, *queue, *stages), later);
                    }
                    queue.inspect(|queue| self.to_host.signal(number, *queue, *stages));
                }
                SyncEvent::Set { queue: None, object, .. } => {
                    self.forget_set(None, *object);
                    if self.is_settled() {
                        let (queue, object, then) = (None, *object, ChainState::default());
                        self.set.push(SetEvent { number, queue, object, then });
                    }
                }
                SyncEvent::Set { queue: Some(queue), object, submitted, stages } => {
                    self.forget_set(Some(*queue), *object);
                    // The wait is on the same queue, so what the host knew is ordered before it and visible to it: only
                    // the host may lack something.
                    let is_known = self.precedes_submission(*submitted);
                    if is_known && self.may_host_lack() {
                        self.see_all(*queue, Stages::COMMANDS);
                    }
                    if (!is_known || self.may_host_lack()) && self.is_in_scope(Some(*queue), *submitted, *stages) {
                        let (queue, object, then) = (Some(*queue), *object, self.progress.clone());
                        self.set.push(SetEvent { number, queue, object, then });
                    }
                    self.to_host.set((number, *object), *queue, *stages);
                }
                SyncEvent::Wait { queue, stages, signals } => {
                    let is_after = self.signals.has_any(signals);
                    // What comes before a barrier to the host is done when the host knows of the barrier.
                    let is_seen = self.to_host.wait(*queue, *stages, signals);
                    match queue {
                        None if is_after || is_seen => self.host = self.host.or(Some(number)),
                        Some(queue) if is_after => self.see_all(*queue, *stages),
                        _ => {}
                    }
                }
                SyncEvent::WaitEvents { queue, signals, barriers } => {
                    for Barrier { src, dst, .. } in &**barriers {
                        self.to_host.pass_from(signals, *queue, src, dst);
                    }
                    let is_awaited = |set: &SetEvent<_>| signals.iter().any(|signal| signal.event == set.number);
                    let by_queue = |set: &SetEvent<_>| set.queue.is_some() && is_awaited(set);
                    if let Some(at) = self.set.iter().rposition(by_queue) {
                        let then = std::mem::take(&mut self.set[at].then);
                        self.barriers(number, (*queue, barriers), extent, Some(&then));
                        self.set[at].then = then;
                    }
                    if self.set.iter().any(|set| set.queue.is_none() && is_awaited(set)) {
                        // Only a first scope with the stage HOST has signals of the host.
                        let has_host = |barrier: &&Barrier| barrier.src.stages.has(Stage::Host);
                        let barriers: Vec<_> = barriers.iter().filter(has_host).cloned().collect();
                        let then = ChainState::known_to_host(*queue, self.at.queue.is_some());
                        self.barriers(number, (*queue, &barriers), extent, Some(&then));
                    }
                }
            }
        }
        self.next = events.next();
    }

    /// Waits are for the last time that their queue, or the host (`None`), set the object.
    fn forget_set(&mut self, queue: Option<u32>, object: usize) {
        self.set.retain(|set| (set.queue, set.object) != (queue, object));
    }

    /// Whether it is in the first scope of a signal.
    fn is_in_scope(&self, queue: Option<u32>, submitted: u64, stages: Stages) -> bool {
        let Some(queue) = queue else { return self.is_settled() };
        let direct = self.at.queue == Some(queue) && stages.has(self.at.stage);
        direct || !self.stages_after(queue).and(stages).is_empty() || self.precedes_submission(submitted)
    }

    /// A semaphore: everything is visible to all accesses of the device that come after the wait. It is available
    /// there, so a barrier after the wait can make it visible to the host.
    fn see_all(&mut self, queue: u32, stages: Stages) {
        add_stages(&mut self.progress.after, queue, stages);
        add_stages(&mut self.progress.seen, queue, stages);
        for reaches in self.progress.all_mut() {
            let reach = reach_mut(reaches, queue);
            reach.available = reach.available.or(stages);
        }
    }

    /// The barriers of event `number`, which extend what was reached by `then`, when an event was set; without it, by
    /// now. None of them sees what another one of the command made.
    fn barriers(
        &mut self,
        number: u64,
        (queue, barriers): (u32, &[Barrier]),
        extent: &Range<u64>,
        then: Option<&ChainState>,
    ) {
        let from = then.unwrap_or(&self.progress);
        let (after, seen) = (stages(&from.after, queue), stages(&from.seen, queue));
        let is_direct = |src: &Side| self.at.queue == Some(queue) && src.stages.has(self.at.stage);
        // Those in whose first scope it is, or where a chain leads.
        let follows = |barrier: &&Barrier| is_direct(&barrier.src) || !after.and(barrier.src.stages).is_empty();
        let mut following: SmallVec<[&Barrier; 2]> = barriers.iter().filter(follows).collect();
        for Barrier { src, dst, .. } in &following {
            if !dst.stages.is_empty() {
                add_stages(&mut self.progress.after, queue, dst.stages);
            }
            if !seen.and(src.stages).is_empty() {
                add_stages(&mut self.progress.seen, queue, dst.stages);
            }
        }
        following.retain(|barrier| !barrier.dst.stages.is_empty());
        if following.is_empty() {
            return;
        }
        if self.at.access.writes() {
            self.carry(number, (queue, &following), extent, then);
        } else {
            // It is done when the host knows of a barrier to the host that comes after it, whatever memory that names.
            let to_host = following.iter().filter(|barrier| is_to_host(&barrier.dst));
            to_host.for_each(|barrier| self.to_host.add_new(number, queue, &barrier.dst));
        }
    }

    /// What barriers make available and visible of a write, as far as the write had come before.
    fn carry(
        &mut self,
        number: u64,
        (queue, barriers): (u32, &[&Barrier]),
        extent: &Range<u64>,
        then: Option<&ChainState>,
    ) {
        // The parts that are distinguished from now on.
        for (&start, Part { end, .. }) in then.iter().flat_map(|then| &then.ranged) {
            self.progress.split(&(start..*end));
        }
        let clip = |range: &Range<u64>| range.start.max(extent.start)..range.end.min(extent.end);
        let named = barriers.iter().filter_map(|barrier| barrier.memory.as_ref());
        let named: Vec<_> = named.flat_map(|ranges| ranges.iter()).map(clip).collect();
        named.iter().for_each(|range| self.progress.split(range));
        // How far it had come is what is available; that changes at the end.
        let available = |place: Option<u64>, now: &Reaches| {
            let from = then.map_or(now, |then| place.map_or(&then.memory, |start| then.at(start)));
            reach(from, queue).available
        };
        // An access of the host is in a first scope of a queue if a chain leads there.
        let direct = self.at.queue.is_none_or(|at| at == queue);
        let mut released = Vec::new();
        for barrier in barriers {
            let Barrier { src, dst, memory: ranges, .. } = barrier;
            let releases = direct
                && match self.at.stage {
                    // A layout transition makes what it writes available by itself.
                    Stage::LayoutTransition => src.stages.has(Stage::LayoutTransition),
                    stage => src.named.has(stage) && src.accesses.has(self.at.access),
                };
            let mut is_to_host_now = false;
            let mut pass = |place: Option<u64>, reaches: &mut Reaches| {
                let is_chained = !available(place, reaches).and(src.stages).is_empty();
                if !is_chained && !releases {
                    return;
                }
                if !is_chained {
                    released.push((place, dst.stages));
                }
                let reach = reach_mut(reaches, queue);
                for stage in dst.named.iter() {
                    let visible = &mut reach.visible[stage as usize];
                    *visible = visible.or(dst.accesses);
                }
                // Whatever follows a later barrier of the queue follows the first one, too.
                if is_to_host(dst) && reach.to_host.is_none() {
                    reach.to_host = Some(number);
                    is_to_host_now = true;
                }
            };
            let ChainState { memory, ranged, .. } = &mut self.progress;
            match ranges {
                None => {
                    pass(None, memory);
                    ranged.iter_mut().for_each(|(&start, part)| pass(Some(start), &mut part.reaches));
                }
                Some(ranges) => {
                    for range in ranges.iter().map(clip).filter(|range| range.start < range.end) {
                        ranged.range_mut(range).for_each(|(&start, part)| pass(Some(start), &mut part.reaches));
                    }
                }
            }
            if is_to_host_now {
                self.to_host.add(number, queue, dst);
            }
        }
        // What is available stays so along a chain, for all memory; the access scopes are those of the barrier's
        // memory.
        let ChainState { memory, ranged, .. } = &mut self.progress;
        let mut all_changed = barriers.iter().any(|barrier| barrier.memory.is_none()) || then.is_some();
        let parts = ranged.iter_mut().map(|(&start, part)| (Some(start), &mut part.reaches));
        for (place, reaches) in std::iter::once((None, &mut *memory)).chain(parts) {
            let from = available(place, reaches);
            let chained = barriers.iter().filter(|barrier| !from.and(barrier.src.stages).is_empty());
            let more = chained.fold(Stages::NONE, |more, barrier| more.or(barrier.dst.stages));
            let known = reach(reaches, queue).available;
            if known.or(more) != known {
                reach_mut(reaches, queue).available = known.or(more);
                all_changed = true;
            }
        }
        for (place, stages) in released {
            let reaches = match place {
                Some(start) => ranged.get_mut(&start).map(|part| &mut part.reaches),
                None => Some(&mut *memory),
            };
            if let Some(reach) = reaches.map(|reaches| reach_mut(reaches, queue)) {
                reach.available = reach.available.or(stages);
            }
        }
        if all_changed {
            self.progress.join(&(0..u64::MAX));
        } else {
            named.iter().filter(|range| range.start < range.end).for_each(|range| self.progress.join(range));
        }
    }

    /// Whether an access to `range` that comes now is ordered after this one and sees what it wrote. If not, the first
    /// condition that fails, and the part of the range for which it does.
    pub(super) fn precedes(&self, to: &Point, range: &Range<u64>) -> Result<(), (Lack, Range<u64>)> {
        let Some(queue) = to.queue else {
            return self.precedes_host(to, range);
        };
        if self.precedes_submission(to.submitted) {
            return Ok(());
        }
        if !self.stages_after(queue).has(to.stage) {
            return Err((Lack::Order, range.clone()));
        }
        if !self.at.access.writes() || stages(&self.progress.seen, queue).has(to.stage) {
            return Ok(());
        }
        self.progress.for_parts(range, |reaches| {
            let reach = reach(reaches, queue);
            match () {
                () if reach.visible[to.stage as usize].has(to.access) => Ok(()),
                () if reach.available.has(to.stage) => Err(Lack::Visibility),
                () => Err(Lack::Availability),
            }
        })
    }

    /// The same for an access of the host.
    fn precedes_host(&self, to: &Point, range: &Range<u64>) -> Result<(), (Lack, Range<u64>)> {
        if self.at.queue.is_none() {
            return Ok(());
        }
        if self.host.is_none() {
            return Err((Lack::Order, range.clone()));
        }
        if !self.at.access.writes() || to.access.writes() {
            return Ok(());
        }
        self.progress.for_parts(
            range,
            |reaches| {
                if self.is_seen_by_host(reaches) { Ok(()) } else { Err(Lack::HostDomain) }
            },
        )
    }

    /// The queue of a barrier that made all of a range visible to the host.
    pub(super) fn made_visible_to_host(&self, range: &Range<u64>) -> Option<u32> {
        let of = |reaches: &Reaches| reaches.iter().find(|(_, reach)| reach.to_host.is_some()).map(|(queue, _)| *queue);
        let all = self.progress.for_parts(range, |reaches| of(reaches).map(drop).ok_or(()));
        all.ok().and_then(|()| of(self.progress.at(range.start)))
    }

    /// Whether a barrier made it visible to the host, and the host knows.
    fn is_seen_by_host(&self, reaches: &Reaches) -> bool {
        reaches.iter().any(|(_, reach)| reach.to_host.is_some_and(|event| self.to_host.is_known(event)))
    }
}

/// Whether a second scope has reads of the host.
fn is_to_host(dst: &Side) -> bool {
    dst.named.has(Stage::Host) && dst.accesses.has(Accesses::HOST_READ)
}

#[cfg(test)]
mod tests;

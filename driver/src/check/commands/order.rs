//! What is ordered after an access, as far as barriers, semaphores, fences and events have come.
//!
//! Dependencies are kept in a log, and an access follows the log only when its memory is accessed again: most accesses
//! are never asked, and most dependencies concern memory that is not touched any more. Vulkan, "Synchronization and
//! Cache Control": an execution dependency chain leads from the access to later stages; a write must also be made
//! available on that chain, and then visible to the later access.

use std::ops::Range;

use smallvec::SmallVec;

use super::events::{Barrier, Event, Events};
use super::progress::{Progress, Reach, Reaches, add_stages, reach, reach_mut, stages};
use super::scope::{Accesses, Side, Stage, Stages};

/// What a later access needs to know of its place.
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// Where the access is.
    pub(super) at: Point,
    /// Number of the next event when it happened.
    born: u64,
    /// Number of the next event to follow.
    next: u64,
    progress: Progress,
    /// The signals whose first scope has the access, and that may still be waited for.
    signals: SmallVec<[u64; 2]>,
    /// The same for events, each with the progress when it was set: what came between does not count.
    set: Vec<(u64, Progress)>,
    /// The event at which the host knew that the command was done.
    host: Option<u64>,
    /// The last of its signals that the host waited for. A barrier to the host before it counts, also one of another
    /// queue.
    waited: Option<u64>,
}

impl Order {
    /// An access that happens now: before event `next`.
    pub(super) fn new(at: Point, next: u64) -> Self {
        Self {
            at,
            born: next,
            next,
            progress: Progress::default(),
            signals: SmallVec::new(),
            set: Vec::new(),
            host: None,
            waited: None,
        }
    }

    /// Everything in this second scope comes after it and sees it: for layout transitions.
    pub(super) fn comes_before_all_of(&mut self, queue: u32, dst: &Side) {
        add_stages(&mut self.progress.after, queue, dst.stages);
        let reach = reach_mut(&mut self.progress.memory, queue);
        reach.available = dst.stages;
        dst.named.iter().for_each(|stage| reach.visible[stage as usize] = dst.accesses);
    }

    /// Whether everything that is submitted from now on comes after it, and sees what it wrote.
    pub(super) fn is_settled(&self) -> bool {
        self.host.is_some() || self.at.queue.is_none()
    }

    /// The number of the first event after it.
    pub(super) fn born(&self) -> u64 {
        self.born
    }

    /// Whether it comes before this signal of a semaphore or fence.
    pub(super) fn has_signal(&self, signal: u64) -> bool {
        self.signals.contains(&signal)
    }

    /// Number of the next event that the access has not followed.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    fn stages_after(&self, queue: u32) -> Stages {
        stages(&self.progress.after, queue)
    }

    /// Whether the host knew of it before that submission, or it is the host's and came before.
    fn precedes_submission(&self, submitted: u64) -> bool {
        match self.at.queue {
            None => self.at.submitted <= submitted,
            Some(_) => self.host.is_some_and(|host| host < submitted),
        }
    }

    /// Follows the log up to its end. Ranges that do not meet `extent`, which contains all that the access touched, are
    /// skipped.
    pub(super) fn follow(&mut self, events: &Events, extent: &Range<u64>) {
        for (number, event) in events.from(self.next) {
            match event {
                Event::Submission => {}
                Event::Barrier { queue, submitted, barriers } => {
                    if self.precedes_submission(*submitted) {
                        // A submission, too, makes visible to all of it what the host knows to be done.
                        self.see_all(*queue, Stages::COMMANDS);
                    }
                    let follows = self.at.queue == Some(*queue) || !self.stages_after(*queue).is_empty();
                    if follows && self.concerns(*queue, barriers, &self.progress) {
                        let so_far = self.progress.clone();
                        self.barriers(number, (*queue, barriers), extent, &so_far);
                    }
                }
                Event::Signal { queue, submitted, stages } => {
                    if self.is_in_scope(*queue, *submitted, *stages) {
                        self.signals.push(number);
                    }
                }
                Event::Set { queue, submitted, stages } => {
                    if self.is_in_scope(Some(*queue), *submitted, *stages) {
                        self.set.push((number, self.progress.clone()));
                    }
                }
                Event::Wait { queue, stages, signals } => {
                    let waited = signals.iter().filter(|signal| self.signals.contains(signal)).max();
                    match (waited, queue) {
                        (None, _) => {}
                        (waited, None) => {
                            self.host = self.host.or(Some(number));
                            self.waited = self.waited.max(waited.copied());
                        }
                        (_, Some(queue)) => self.see_all(*queue, *stages),
                    }
                }
                Event::WaitEvents { queue, signals, barriers } => {
                    if let Some(at) = self.set.iter().rposition(|(number, _)| signals.contains(number)) {
                        let then = std::mem::take(&mut self.set[at].1);
                        self.barriers(number, (*queue, barriers), extent, &then);
                        self.set[at].1 = then;
                    }
                }
            }
        }
        self.next = events.next();
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
        let Progress { after, seen, memory, ranged, .. } = &mut self.progress;
        add_stages(after, queue, stages);
        add_stages(seen, queue, stages);
        for reaches in std::iter::once(memory).chain(ranged.iter_mut().map(|(_, reaches)| reaches)) {
            let reach = reach_mut(reaches, queue);
            reach.available = reach.available.or(stages);
        }
    }

    /// Whether it is in the first scope of a barrier, or a chain leads there.
    fn follows(&self, queue: u32, barrier: &Barrier, then: &Progress) -> bool {
        let direct = self.at.queue == Some(queue) && barrier.src.stages.has(self.at.stage);
        direct || !stages(&then.after, queue).and(barrier.src.stages).is_empty()
    }

    fn concerns(&self, queue: u32, barriers: &[Barrier], then: &Progress) -> bool {
        barriers.iter().any(|barrier| self.follows(queue, barrier, then))
    }

    /// The barriers of event `number`, which extend what was reached by `then`: now, or when an event was set. None of
    /// them sees what another one of the command made.
    fn barriers(&mut self, number: u64, (queue, barriers): (u32, &[Barrier]), extent: &Range<u64>, then: &Progress) {
        let seen = stages(&then.seen, queue);
        for barrier in barriers {
            if !self.follows(queue, barrier, then) {
                continue;
            }
            if !barrier.dst.stages.is_empty() {
                add_stages(&mut self.progress.after, queue, barrier.dst.stages);
            }
            if !seen.and(barrier.src.stages).is_empty() {
                add_stages(&mut self.progress.seen, queue, barrier.dst.stages);
            }
            if self.at.access.writes() && !barrier.dst.named.is_empty() {
                self.carry(number, (queue, barrier), extent, (&then.memory, &then.ranged));
            }
        }
    }

    /// What a barrier makes available and visible of a write, as far as the write had come before.
    fn carry(
        &mut self,
        number: u64,
        (queue, barrier): (u32, &Barrier),
        extent: &Range<u64>,
        (memory, ranged): (&Reaches, &[(Range<u64>, Reaches)]),
    ) {
        let Barrier { src, dst, memory: ranges } = barrier;
        let direct = self.at.queue == Some(queue);
        // A layout transition makes what it writes available by itself.
        let accessed = self.at.stage == Stage::LayoutTransition || src.accesses.has(self.at.access);
        let released = direct && src.named.has(self.at.stage) && accessed;
        // What is available stays so along a chain, for all memory; the access scopes are those of the barrier's
        // memory.
        let pass = |from: &Reaches, to: &mut Reaches, covered: bool| {
            let chained = !reach(from, queue).available.and(src.stages).is_empty();
            let begins = covered && released;
            if !chained && !begins {
                return;
            }
            let reach = reach_mut(to, queue);
            reach.available = reach.available.or(dst.stages);
            if !covered {
                return;
            }
            for stage in dst.named.iter() {
                let visible = &mut reach.visible[stage as usize];
                *visible = visible.or(dst.accesses);
            }
            if dst.named.has(Stage::Host) && dst.accesses.has(Accesses::HOST_READ) {
                reach.to_host = reach.to_host.or(Some(number));
            }
        };
        for range in ranges.iter().flat_map(|ranges| ranges.iter()) {
            self.progress.split(&(range.start.max(extent.start)..range.end.min(extent.end)));
        }
        pass(memory, &mut self.progress.memory, ranges.is_none());
        for (part, reaches) in &mut self.progress.ranged {
            let from = ranged.iter().find(|(old, _)| old.start <= part.start && part.start < old.end);
            pass(from.map_or(memory, |(_, from)| from), reaches, barrier.covers(part));
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
        self.progress.for_parts(range, |reaches| {
            let seen = |reach: &Reach| reach.to_host.is_some_and(|number| Some(number) < self.waited);
            let seen = reaches.iter().any(|(_, reach)| seen(reach));
            if seen { Ok(()) } else { Err(Lack::HostDomain) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Range<u64> = 0..1 << 20;

    fn point(stage: Stage, access: Accesses) -> Point {
        Point { queue: Some(0), submitted: 0, stage, access }
    }

    fn written() -> Order {
        Order::new(point(Stage::ComputeShader, Accesses::STORAGE_WRITE), 0)
    }

    fn side(stage: Stage, accesses: Accesses) -> Side {
        Side { stages: Stages::of(stage), named: Stages::of(stage), accesses }
    }

    fn barrier(src: Side, dst: Side, memory: Option<Range<u64>>) -> Event {
        let barriers = [Barrier { src, dst, memory: memory.map(|range| [range].into()) }];
        Event::Barrier { queue: 0, submitted: 0, barriers: barriers.into() }
    }

    fn after(mut order: Order, list: &[Event], to: Point, range: Range<u64>) -> Result<(), (Lack, Range<u64>)> {
        let mut events = Events::default();
        list.iter().for_each(|event| _ = events.push(event.clone()));
        order.follow(&events, &EXTENT);
        order.precedes(&to, &range)
    }

    const READ: (Stage, Accesses) = (Stage::ComputeShader, Accesses::STORAGE_READ);
    const WRITE: (Stage, Accesses) = (Stage::ComputeShader, Accesses::STORAGE_WRITE);
    const COPY: (Stage, Accesses) = (Stage::Copy, Accesses::TRANSFER_READ);

    fn of((stage, access): (Stage, Accesses)) -> Side {
        side(stage, access)
    }

    fn at((stage, access): (Stage, Accesses)) -> Point {
        point(stage, access)
    }

    #[test]
    fn a_write_needs_order_availability_and_visibility() {
        let none = side(Stage::ComputeShader, Accesses::NONE);
        let lack = |list: &[Event]| after(written(), list, at(READ), 0..4).map_err(|(lack, _)| lack);
        assert_eq!(lack(&[]), Err(Lack::Order));
        assert_eq!(lack(&[barrier(of(COPY), of(READ), None)]), Err(Lack::Order));
        assert_eq!(lack(&[barrier(none, of(READ), None)]), Err(Lack::Availability));
        assert_eq!(lack(&[barrier(of(WRITE), of(WRITE), None)]), Err(Lack::Visibility));
        assert_eq!(lack(&[barrier(of(WRITE), of(READ), None)]), Ok(()));
    }

    #[test]
    fn a_chain_passes_availability_on() {
        let to_copy = barrier(of(WRITE), side(Stage::Copy, Accesses::NONE), None);
        let to_read = barrier(side(Stage::Copy, Accesses::NONE), of(READ), None);
        assert_eq!(after(written(), &[to_copy.clone(), to_read.clone()], at(READ), 0..4), Ok(()));
        let lack = after(written(), &[to_read, to_copy], at(READ), 0..4).unwrap_err().0;
        assert_eq!(lack, Lack::Order, "a chain has an order");
    }

    #[test]
    fn a_read_needs_order_only() {
        let none = |stage| side(stage, Accesses::NONE);
        let read = Order::new(at(READ), 0);
        let ordered = [barrier(none(Stage::ComputeShader), none(Stage::Clear), None)];
        let clear = point(Stage::Clear, Accesses::TRANSFER_WRITE);
        assert_eq!(after(read, &ordered, clear, 0..4), Ok(()));
    }

    #[test]
    fn ranges_limit_availability_and_not_order() {
        let list = [barrier(of(WRITE), of(READ), Some(16..32))];
        assert_eq!(after(written(), &list, at(READ), 16..32), Ok(()));
        assert_eq!(after(written(), &list, at(READ), 8..24), Err((Lack::Availability, 8..16)));
        assert_eq!(after(written(), &list, at(READ), 24..40), Err((Lack::Availability, 32..40)));
        let two = [barrier(of(WRITE), of(COPY), Some(0..32)), barrier(of(WRITE), of(READ), Some(16..48))];
        assert_eq!(after(written(), &two, at(READ), 16..48), Ok(()));
        assert_eq!(after(written(), &two, at(COPY), 0..48), Err((Lack::Availability, 32..48)));
    }

    #[test]
    fn a_chain_through_a_barrier_for_other_memory_keeps_what_is_available() {
        let none = |stage| side(stage, Accesses::NONE);
        let available = barrier(of(WRITE), none(Stage::Copy), None);
        let other = barrier(none(Stage::Copy), none(Stage::Clear), Some(64..128));
        let visible = |memory| barrier(none(Stage::Clear), of(READ), memory);
        let through = |last| after(written(), &[available.clone(), other.clone(), last], at(READ), 0..4);
        assert_eq!(through(visible(None)), Ok(()));
        assert_eq!(through(visible(Some(0..4))), Ok(()));
        assert_eq!(through(visible(Some(4..8))).unwrap_err().0, Lack::Visibility);
    }

    #[test]
    fn the_host_waits_and_submits_again() {
        let mut events = Events::default();
        let signal = events.push(Event::Signal { queue: Some(0), submitted: 0, stages: Stages::COMMANDS });
        let mut order = written();
        order.follow(&events, &EXTENT);
        let host = Point { queue: None, submitted: 1, stage: Stage::Host, access: Accesses::HOST_READ };
        assert_eq!(order.precedes(&host, &(0..4)).unwrap_err().0, Lack::Order);
        let known = events.push(Event::Wait { queue: None, stages: Stages::NONE, signals: [signal].as_slice().into() });
        order.follow(&events, &EXTENT);
        assert_eq!(order.precedes(&host, &(0..4)).unwrap_err().0, Lack::HostDomain);
        let next = Point { submitted: known + 1, ..at(READ) };
        assert_eq!(order.precedes(&next, &(0..4)), Ok(()));
        assert_eq!(order.precedes(&at(READ), &(0..4)).unwrap_err().0, Lack::Order, "submitted before the wait");
    }

    #[test]
    fn another_queue_makes_visible_to_the_host_what_it_waited_for() {
        let barriers = [Barrier {
            src: side(Stage::ComputeShader, Accesses::NONE),
            dst: side(Stage::Host, Accesses::HOST_READ),
            memory: None,
        }];
        let run = |waits: bool| {
            let mut events = Events::default();
            let all = Stages::COMMANDS;
            let signal = events.push(Event::Signal { queue: Some(0), submitted: 0, stages: all });
            if waits {
                events.push(Event::Wait { queue: Some(1), stages: all, signals: [signal].as_slice().into() });
            }
            events.push(Event::Barrier { queue: 1, submitted: 0, barriers: barriers.clone().into() });
            // Done on its own queue, too: only what the host sees is in question.
            let done = [
                events.push(Event::Signal { queue: Some(0), submitted: 0, stages: all }),
                events.push(Event::Signal { queue: Some(1), submitted: 0, stages: all }),
            ];
            events.push(Event::Wait { queue: None, stages: Stages::NONE, signals: done.as_slice().into() });
            let mut order = written();
            order.follow(&events, &EXTENT);
            let host = Point { queue: None, submitted: 9, stage: Stage::Host, access: Accesses::HOST_READ };
            order.precedes(&host, &(0..4)).map_err(|(lack, _)| lack)
        };
        assert_eq!(run(true), Ok(()));
        assert_eq!(run(false), Err(Lack::HostDomain));
    }

    #[test]
    fn an_event_orders_what_had_come_so_far_when_it_was_set() {
        let set = |stage| Event::Set { queue: 0, submitted: 0, stages: Stages::of(stage) };
        let wait = |signal: u64| {
            let barriers = [Barrier { src: side(Stage::Clear, Accesses::NONE), dst: of(COPY), memory: None }];
            Event::WaitEvents { queue: 0, signals: [signal].as_slice().into(), barriers: barriers.into() }
        };
        let to_clear = barrier(of(WRITE), side(Stage::Clear, Accesses::NONE), None);
        let before = [to_clear.clone(), set(Stage::Clear), wait(1)];
        assert_eq!(after(written(), &before, at(COPY), 0..4), Ok(()));
        let between = [set(Stage::Clear), to_clear.clone(), wait(0)];
        assert_eq!(after(written(), &between, at(COPY), 0..4).unwrap_err().0, Lack::Order);
        // It is in the scope of the event, by another stage of it: what made it available came later.
        let both = Stages::of(Stage::Clear).or(Stages::of(Stage::ComputeShader));
        let event = Event::Set { queue: 0, submitted: 0, stages: both };
        assert_eq!(after(written(), &[event, to_clear, wait(0)], at(COPY), 0..4).unwrap_err().0, Lack::Order);
    }

    #[test]
    fn the_host_sees_what_was_made_visible_before_the_signal_that_it_waited_for() {
        let signal = Event::Signal { queue: Some(0), submitted: 0, stages: Stages::COMMANDS };
        let wait = |signal: u64| {
            let signals = [signal].as_slice().into();
            Event::Wait { queue: None, stages: Stages::NONE, signals }
        };
        let visible = barrier(of(WRITE), side(Stage::Host, Accesses::HOST_READ), None);
        let host = Point { queue: None, submitted: 9, stage: Stage::Host, access: Accesses::HOST_READ };
        let early = [signal.clone(), visible.clone(), signal.clone(), wait(0)];
        assert_eq!(after(written(), &early, host, 0..4).unwrap_err().0, Lack::HostDomain);
        let late = [signal.clone(), visible, signal, wait(2)];
        assert_eq!(after(written(), &late, host, 0..4), Ok(()));
    }

    #[test]
    fn a_semaphore_orders_queues_from_its_stages_on() {
        let mut events = Events::default();
        let signal = events.push(Event::Signal { queue: Some(0), submitted: 0, stages: Stages::COMMANDS });
        let stages = Stages::of(Stage::ComputeShader);
        events.push(Event::Wait { queue: Some(1), stages, signals: [signal].as_slice().into() });
        let mut order = written();
        order.follow(&events, &EXTENT);
        let there = |(stage, access)| Point { queue: Some(1), ..point(stage, access) };
        assert_eq!(order.precedes(&there(READ), &(0..4)), Ok(()));
        assert_eq!(order.precedes(&there(COPY), &(0..4)).unwrap_err().0, Lack::Order);
        assert_eq!(order.precedes(&at(READ), &(0..4)).unwrap_err().0, Lack::Order);
    }
}

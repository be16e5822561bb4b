//! What is ordered after an access, as far as barriers, semaphores, fences and events have come.
//!
//! Dependencies are kept in a log, and an access follows the log only when its memory is accessed again: most accesses
//! are never asked, and most dependencies concern memory that is not touched any more. Vulkan, "Synchronization and
//! Cache Control": an execution dependency chain leads from the access to later stages; a write must also be made
//! available on that chain, and then visible to the later access.

use std::ops::Range;

use smallvec::SmallVec;

use super::events::{Barrier, Event, Events};
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

/// How far a write has come towards a queue's later commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach {
    /// Stages whose accesses are ordered after an availability operation for the write.
    available: Stages,
    /// The accesses of each stage to which it is visible.
    visible: [Accesses; Stage::ALL.len()],
}

/// By queue.
type Reaches = SmallVec<[(u32, Reach); 1]>;

fn reach(of: &Reaches, queue: u32) -> Reach {
    of.iter().find(|(number, _)| *number == queue).map(|(_, reach)| *reach).unwrap_or_default()
}

fn reach_mut(of: &mut Reaches, queue: u32) -> &mut Reach {
    let place = of.iter().position(|(number, _)| *number == queue).unwrap_or_else(|| {
        of.push((queue, Reach::default()));
        of.len() - 1
    });
    &mut of[place].1
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
    /// Stages of queues that an execution dependency chain leads to.
    after: SmallVec<[(u32, Stages); 1]>,
    /// Of a write, how far it has come, for memory that is not in `ranged`.
    memory: Reaches,
    /// The same for memory that barriers with ranges name: disjoint ranges, ascending.
    ranged: Vec<(Range<u64>, Reaches)>,
    /// The signals whose first scope has the access, and that may still be waited for.
    signals: SmallVec<[u64; 2]>,
    /// The event at which the host knew that the command was done.
    host: Option<u64>,
}

impl Order {
    /// An access that happens now: before event `next`.
    pub(super) fn new(at: Point, next: u64) -> Self {
        Self {
            at,
            born: next,
            next,
            after: SmallVec::new(),
            memory: Reaches::new(),
            ranged: Vec::new(),
            signals: SmallVec::new(),
            host: None,
        }
    }

    /// Everything in this second scope comes after it and sees it: for layout transitions.
    pub(super) fn comes_before_all_of(&mut self, queue: u32, dst: &Side) {
        self.add_after(queue, dst.stages);
        let reach = reach_mut(&mut self.memory, queue);
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

    /// Number of the next event that the access has not followed.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    fn stages_after(&self, queue: u32) -> Stages {
        self.after.iter().find(|(number, _)| *number == queue).map(|(_, stages)| *stages).unwrap_or_default()
    }

    fn add_after(&mut self, queue: u32, stages: Stages) {
        match self.after.iter_mut().find(|(number, _)| *number == queue) {
            Some((_, known)) => *known = known.or(stages),
            None => self.after.push((queue, stages)),
        }
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
                    if self.at.queue == Some(*queue)
                        || !self.stages_after(*queue).is_empty()
                        || self.precedes_submission(*submitted)
                    {
                        self.barriers(*queue, barriers, extent, false);
                    }
                }
                Event::Signal { queue, submitted, stages } => {
                    if self.is_in_scope(*queue, *submitted, *stages) {
                        self.signals.push(number);
                    }
                }
                Event::Wait { queue, stages, signals } => {
                    if signals.iter().any(|signal| self.signals.contains(signal)) {
                        match queue {
                            None => self.host = self.host.or(Some(number)),
                            Some(queue) => self.see_all(*queue, *stages),
                        }
                    }
                }
                Event::WaitEvents { queue, signals, barriers } => {
                    if signals.iter().any(|signal| self.signals.contains(signal)) {
                        self.barriers(*queue, barriers, extent, true);
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

    /// A semaphore: everything is visible to these stages.
    fn see_all(&mut self, queue: u32, stages: Stages) {
        self.add_after(queue, stages);
        for reaches in std::iter::once(&mut self.memory).chain(self.ranged.iter_mut().map(|(_, reaches)| reaches)) {
            let reach = reach_mut(reaches, queue);
            reach.available = reach.available.or(stages);
            stages.iter().for_each(|stage| reach.visible[stage as usize] = Accesses::ALL);
        }
    }

    /// The barriers of one command; `signalled` if the access is known to be in the first scope of its queue's part.
    fn barriers(&mut self, queue: u32, barriers: &[Barrier], extent: &Range<u64>, signalled: bool) {
        let before = self.stages_after(queue);
        let own = self.at.queue == Some(queue) || signalled;
        let is_direct = |barrier: &Barrier| own && barrier.src.stages.has(self.at.stage);
        let applies = |barrier: &&Barrier| is_direct(barrier) || !before.and(barrier.src.stages).is_empty();
        let applied: SmallVec<[(&Barrier, bool); 2]> =
            barriers.iter().filter(applies).map(|barrier| (barrier, is_direct(barrier))).collect();
        let after = applied.iter().fold(Stages::NONE, |all, (barrier, _)| all.or(barrier.dst.stages));
        if self.at.access.writes() && !applied.is_empty() {
            // None of them sees what another one of the command made.
            let (memory, ranged) = (self.memory.clone(), self.ranged.clone());
            for (barrier, direct) in applied.into_iter().filter(|(barrier, _)| !barrier.dst.named.is_empty()) {
                self.carry(queue, barrier, direct, extent, (&memory, &ranged));
            }
        }
        if !after.is_empty() {
            self.add_after(queue, after);
        }
    }

    /// What a barrier makes available and visible of a write, as far as the write had come before.
    fn carry(
        &mut self,
        queue: u32,
        barrier: &Barrier,
        direct: bool,
        extent: &Range<u64>,
        (memory, ranged): (&Reaches, &[(Range<u64>, Reaches)]),
    ) {
        let Barrier { src, dst, memory: ranges } = barrier;
        let released = direct && src.named.has(self.at.stage) && src.accesses.has(self.at.access);
        let pass = |from: &Reaches, to: &mut Reaches| {
            if released || !reach(from, queue).available.and(src.stages).is_empty() {
                let reach = reach_mut(to, queue);
                reach.available = reach.available.or(dst.stages);
                for stage in dst.named.iter() {
                    let visible = &mut reach.visible[stage as usize];
                    *visible = visible.or(dst.accesses);
                }
            }
        };
        match ranges {
            None => pass(memory, &mut self.memory),
            Some(ranges) => {
                for range in ranges.iter() {
                    self.split(&(range.start.max(extent.start)..range.end.min(extent.end)));
                }
            }
        }
        for (part, reaches) in &mut self.ranged {
            if barrier.covers(part) {
                let from = ranged.iter().find(|(old, _)| old.start <= part.start && part.start < old.end);
                pass(from.map_or(memory, |(_, from)| from), reaches);
            }
        }
    }

    /// Makes `range` a union of parts of `ranged`, unless it is empty.
    fn split(&mut self, range: &Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let mut parts = Vec::with_capacity(self.ranged.len() + 2);
        let mut at = range.start;
        for (part, reaches) in self.ranged.drain(..) {
            if part.end <= range.start || range.end <= part.start {
                parts.push((part, reaches));
                continue;
            }
            if at < part.start {
                parts.push((at..part.start, self.memory.clone()));
            }
            let cuts = [part.start, part.start.max(range.start), part.end.min(range.end), part.end];
            for cut in cuts.windows(2).filter(|cut| cut[0] < cut[1]) {
                parts.push((cut[0]..cut[1], reaches.clone()));
            }
            at = part.end.max(at);
        }
        if at < range.end {
            parts.push((at..range.end, self.memory.clone()));
        }
        parts.sort_by_key(|(part, _)| part.start);
        self.ranged = parts;
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
        if !self.at.access.writes() {
            return Ok(());
        }
        self.for_parts(range, |reaches| {
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
        let host = Stage::Host as usize;
        self.for_parts(range, |reaches| {
            let seen = reaches.iter().any(|(_, reach)| reach.visible[host].has(Accesses::HOST_READ));
            if seen { Ok(()) } else { Err(Lack::HostDomain) }
        })
    }

    /// Asks for each part of a range with its own reach.
    fn for_parts(
        &self,
        range: &Range<u64>,
        ask: impl Fn(&Reaches) -> Result<(), Lack>,
    ) -> Result<(), (Lack, Range<u64>)> {
        let mut at = range.start;
        for (part, reaches) in &self.ranged {
            if part.end <= at || range.end <= part.start {
                continue;
            }
            if at < part.start {
                ask(&self.memory).map_err(|lack| (lack, at..part.start))?;
            }
            let end = part.end.min(range.end);
            ask(reaches).map_err(|lack| (lack, at.max(part.start)..end))?;
            at = end;
        }
        if at < range.end { ask(&self.memory).map_err(|lack| (lack, at..range.end)) } else { Ok(()) }
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

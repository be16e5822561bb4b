//! Whether a dependency repairs a race: it is added to those of the observed execution, after all that followed the
//! earlier access there, and the later access comes then.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::events::{Barrier, SyncEvent, SyncLog};
use super::order::{Lack, Order, Point};
use super::scope::{Side, Stages};
use super::signalled::Signal;

/// The observed execution after an access, with more dependencies.
pub(super) struct RepairTrial {
    order: Order,
    events: SyncLog,
}

impl RepairTrial {
    /// What is ordered after an access, by all dependencies so far.
    pub(super) fn new(order: &Order) -> Self {
        Self { order: order.clone(), events: SyncLog::starting_at(order.next()) }
    }

    /// The same, where an event gets set directly after the access, in place of the set of event `old` of the log: the
    /// waits of its queue for that are for this one. `None` if dependencies since then are not kept, or if something
    /// waited for the event before the access, since that would wait for ever.
    pub(super) fn set_after(order: &Order, log: &SyncLog, end: u64, old: u64) -> Option<Self> {
        let (queue, number) = (order.at.queue?, order.born().checked_sub(1)?);
        let SyncEvent::Set { stages, object, .. } = log.get(old)? else { return None };
        let is_old = |signal: &Signal| signal.event == old;
        let mut before = log.from(old).take_while(|(known, _)| *known < order.born());
        let is_early =
            |event: &SyncEvent| matches!(event, SyncEvent::WaitEvents { signals, .. } if signals.iter().any(is_old));
        if before.any(|(_, event)| is_early(event)) {
            return None;
        }
        let new = Signal::new(number, Some(queue), *stages);
        let set =
            SyncEvent::Set { queue: Some(queue), object: *object, submitted: order.at.submitted, stages: *stages };
        Self::replayed(order, log, end, set, |event| {
            if let SyncEvent::WaitEvents { signals, .. } = event {
                let waits = signals.iter().any(is_old);
                // The other ones that were set before the access have numbers of their own no more.
                signals.retain(|signal| signal.event > number);
                signals.extend(waits.then_some(new));
            }
        })
    }

    /// The same, where a barrier of the access's queue comes directly after it. `None` if dependencies since then are
    /// not kept.
    pub(super) fn barrier_after(order: &Order, log: &SyncLog, end: u64, barrier: Barrier) -> Option<Self> {
        let (queue, submitted) = (order.at.queue?, order.at.submitted);
        Self::replayed(order, log, end, SyncEvent::Barrier { queue, submitted, barriers: [barrier].into() }, |_| ())
    }

    /// The dependencies since the access, changed, after a new one directly after it.
    fn replayed(
        order: &Order,
        log: &SyncLog,
        end: u64,
        first: SyncEvent,
        change: impl Fn(&mut SyncEvent),
    ) -> Option<Self> {
        let born = order.born();
        // What follows keeps its numbers.
        let number = born.checked_sub(1)?;
        let mut events = SyncLog::starting_at(number);
        events.push(first);
        for (known, event) in log.from(born).take_while(|(known, _)| *known < end) {
            let mut event = event.clone();
            change(&mut event);
            if events.push(event) != known {
                return None;
            }
        }
        Some(Self { order: Order::new(order.at, number), events })
    }

    /// The access is a layout transition of a queue, and its barrier has this second scope, too.
    pub(super) fn transition(mut self, queue: u32, dst: &Side) -> Self {
        let barriers = [].into();
        let number = self.events.push(SyncEvent::Barrier { queue, submitted: self.order.at.submitted, barriers });
        self.order.comes_before_all_of(number, queue, dst);
        self
    }

    /// A wait of a queue for events that were set: its barrier.
    pub(super) fn wait_for_events(mut self, queue: u32, signals: SmallVec<[Signal; 2]>, barrier: Barrier) -> Self {
        self.events.push(SyncEvent::WaitEvents { queue, signals, barriers: [barrier].into() });
        self
    }

    /// A barrier on a queue, in this submission.
    pub(super) fn barrier(mut self, queue: u32, submitted: u64, barrier: Barrier) -> Self {
        self.events.push(SyncEvent::Barrier { queue, submitted, barriers: [barrier].into() });
        self
    }

    /// A signal after all commands of the access's submission, for which a queue's commands wait in some stages, or the
    /// host.
    pub(super) fn wait(self, queue: Option<u32>, stages: Stages) -> Self {
        let from = self.order.at.queue;
        self.wait_for(from, queue, stages)
    }

    /// The host waits for all that a queue has done.
    pub(super) fn wait_for_queue(self, queue: u32) -> Self {
        self.wait_for(Some(queue), None, Stages::NONE)
    }

    fn wait_for(mut self, from: Option<u32>, queue: Option<u32>, stages: Stages) -> Self {
        let (scope, submitted) = (Stages::COMMANDS, self.order.at.submitted);
        let number = self.events.push(SyncEvent::Signal { queue: from, submitted, stages: scope });
        self.events.push(SyncEvent::Wait { queue, stages, signals: smallvec![Signal::new(number, from, scope)] });
        self
    }

    /// What is missing before another access to a range all the same.
    pub(super) fn lack(mut self, now: &Point, range: &Range<u64>) -> Option<Lack> {
        self.order.follow(&self.events, range);
        self.order.precedes(now, range).err().map(|(lack, _)| lack)
    }
}

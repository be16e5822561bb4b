//! Whether a dependency repairs a race: it is added to those of the observed execution, after all that followed the
//! earlier access there, and the later access comes then.

use std::ops::Range;

use smallvec::smallvec;

use super::events::{Barrier, SyncEvent, SyncLog};
use super::order::{Lack, Order, Point};
use super::scope::{Side, Stage, Stages};
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
    /// waits of its queue for that are for this one. `None` if dependencies since then are not kept.
    pub(super) fn set_after(order: &Order, log: &SyncLog, end: u64, (old, stage): (u64, Stage)) -> Option<Self> {
        let (at, born) = (order.at, order.born());
        let number = born.checked_sub(1)?;
        let queue = at.queue?;
        let known = log.from(old).next().and_then(|(found, event)| match event {
            SyncEvent::Set { stages, .. } if found == old => Some(*stages),
            _ => None,
        });
        let stages = known.unwrap_or(Stages::of(stage));
        let new = Signal::new(number, Some(queue), stages);
        let mut events = SyncLog::starting_at(number);
        events.push(SyncEvent::Set { queue: Some(queue), object: usize::MAX, submitted: at.submitted, stages });
        for (known, event) in log.from(born).take_while(|(known, _)| *known < end) {
            let mut event = event.clone();
            if let SyncEvent::WaitEvents { signals, .. } = &mut event
                && signals.iter().any(|signal| signal.event == old)
            {
                signals.push(new);
            }
            if events.push(event) != known {
                return None;
            }
        }
        Some(Self { order: Order::new(at, number), events })
    }

    /// The access is a layout transition of a queue, and its barrier has this second scope, too.
    pub(super) fn transition(mut self, queue: u32, dst: &Side) -> Self {
        let barriers = [].into();
        let number = self.events.push(SyncEvent::Barrier { queue, submitted: self.order.at.submitted, barriers });
        self.order.comes_before_all_of(number, queue, dst);
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

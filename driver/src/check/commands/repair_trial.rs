//! Whether a dependency repairs a race: it is added to those of the observed execution, after all that followed the
//! earlier access there, and the later access comes then.

use std::ops::Range;

use smallvec::smallvec;

use super::events::{Barrier, SyncEvent, SyncLog};
use super::order::{Lack, Order, Point};
use super::scope::Stages;
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

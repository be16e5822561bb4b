//! What semaphores, fences and events were signalled by: a wait orders what comes before those signals.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::exec::SubmissionId;
use crate::sync::{Counter, FenceState};

/// A signal: the value, the queue, the event in the log.
type Signal = (u64, u32, u64);

/// Signals that are kept of one semaphore.
const MAX_SIGNALS: usize = 256;

/// The signals so far. Objects are kept alive, so that an address means one object.
#[derive(Debug, Default)]
pub(super) struct Signals {
    counters: HashMap<usize, (Arc<Counter>, Vec<Signal>), FixedState>,
    fences: HashMap<usize, (Arc<FenceState>, u64), FixedState>,
    /// The ends of the last batches of each queue, by serial.
    queues: HashMap<u32, VecDeque<(u64, u64)>, FixedState>,
}

impl Signals {
    /// A semaphore or an event gets a value.
    pub(super) fn counter_signalled(&mut self, counter: &Arc<Counter>, value: u64, queue: u32, event: u64) {
        let entry = self.counters.entry(Arc::as_ptr(counter).addr());
        let (_, signals) = entry.or_insert_with(|| (Arc::clone(counter), Vec::new()));
        if signals.len() >= MAX_SIGNALS {
            signals.drain(..MAX_SIGNALS / 2);
        }
        signals.push((value, queue, event));
    }

    /// A batch is done, and its fence signalled.
    pub(super) fn batch_ended(&mut self, id: SubmissionId, event: u64, fence: Option<&Arc<FenceState>>) {
        let batches = self.queues.entry(id.queue as u32).or_default();
        if batches.len() >= MAX_SIGNALS {
            batches.pop_front();
        }
        batches.push_back((id.serial, event));
        if let Some(fence) = fence {
            self.fences.insert(Arc::as_ptr(fence).addr(), (Arc::clone(fence), event));
        }
    }

    /// The signals that a wait for a value depends on: those that reached it first (Vulkan, "Semaphore Waiting": one
    /// signal operation). Nothing signalled the first value of a timeline.
    pub(super) fn of_counter(&self, counter: &Arc<Counter>, value: u64) -> SmallVec<[u64; 2]> {
        let Some((_, signals)) = self.counters.get(&Arc::as_ptr(counter).addr()) else { return SmallVec::new() };
        let reached = signals.iter().map(|(reached, ..)| *reached).filter(|reached| *reached >= value);
        let Some(first) = reached.min().filter(|_| value > counter.initial()) else { return SmallVec::new() };
        signals.iter().filter(|(reached, ..)| *reached == first).map(|(.., event)| *event).collect()
    }

    /// The last signal of an event by a queue: those of other queues are not in the first scope of its waits.
    pub(super) fn of_event(&self, event: &Arc<Counter>, queue: u32) -> Option<u64> {
        let (_, signals) = self.counters.get(&Arc::as_ptr(event).addr())?;
        signals.iter().rev().find(|(_, of, _)| *of == queue).map(|(.., event)| *event)
    }

    /// The signal of a fence.
    pub(super) fn of_fence(&self, fence: &Arc<FenceState>) -> SmallVec<[u64; 2]> {
        self.fences.get(&Arc::as_ptr(fence).addr()).map(|(_, event)| *event).into_iter().collect()
    }

    /// The end of the last batch of a queue.
    pub(super) fn of_queue(&self, queue: u32) -> SmallVec<[u64; 2]> {
        self.of_submission(queue, u64::MAX)
    }

    /// The end of the last batch of a queue up to a serial.
    pub(super) fn of_submission(&self, queue: u32, serial: u64) -> SmallVec<[u64; 2]> {
        let batches = self.queues.get(&queue).into_iter().flatten().rev();
        batches.filter(|(of, _)| *of <= serial).map(|(_, event)| *event).take(1).collect()
    }

    /// Forgets objects without another owner, and signals before this event, which no access follows any more.
    pub(super) fn clean(&mut self, first: u64) {
        self.fences.retain(|_, (fence, event)| Arc::strong_count(fence) > 1 && *event >= first);
        self.counters.retain(|_, (counter, signals)| {
            signals.retain(|(.., event)| *event >= first);
            Arc::strong_count(counter) > 1 && !signals.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_depends_on_the_signals_that_reach_its_value_first() {
        let (mut signals, counter) = (Signals::default(), Counter::new(0));
        for (value, queue, event) in [(1, 0, 10), (2, 1, 11), (3, 0, 12), (5, 1, 13)] {
            signals.counter_signalled(&counter, value, queue, event);
        }
        let of = |value| signals.of_counter(&counter, value).into_vec();
        assert_eq!(of(0), [0; 0], "nothing signalled the first value");
        assert_eq!((of(1), of(3), of(4), of(6)), (vec![10], vec![12], vec![13], vec![]));
        assert_eq!(signals.of_counter(&Counter::new(0), 1).into_vec(), [0; 0]);
    }

    #[test]
    fn a_queue_waits_for_its_own_signal_of_an_event() {
        let (mut signals, event) = (Signals::default(), Counter::new(0));
        for (queue, number) in [(0, 10), (0, 11), (1, 12)] {
            signals.counter_signalled(&event, 1, queue, number);
        }
        assert_eq!([0, 1, 2].map(|queue| signals.of_event(&event, queue)), [Some(11), Some(12), None]);
    }
}

//! Signal operations of semaphores, fences and events: a wait orders what comes before the signals.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::Checker;
use super::signalled::{Signal, SignalUnion};
use crate::exec::SubmissionId;
use crate::sync::{Counter, FenceState};

/// Signals that are kept of one semaphore or queue. A thread may wait for an early one while others submit thousands.
const MAX_SIGNALS: usize = 8192;

/// The signals of a semaphore or an event, each with its value.
#[derive(Debug)]
struct CounterSignals {
    counter: Arc<Counter>,
    signals: Vec<(u64, Signal)>,
    /// Signals of values up to this one were dropped, since no access that is kept comes before them.
    dropped: Option<u64>,
    /// Signals of values up to this one were forgotten, since there were too many.
    forgotten: Option<u64>,
}

/// What a wait depends on.
#[derive(Debug, Default)]
pub(super) struct AwaitedSignals {
    pub(super) signals: SmallVec<[Signal; 2]>,
    /// Whether the signal that the wait is for was forgotten, so that these came later. What they order may race.
    pub(super) is_later: bool,
}

impl AwaitedSignals {
    /// The signals; that they are later ones is counted.
    pub(super) fn counted(self, checker: &Checker) -> SmallVec<[Signal; 2]> {
        if self.is_later {
            checker.count(|counts| counts.signals_forgotten += 1);
        }
        self.signals
    }
}

/// The signals so far. Objects are kept alive, so that an address means one object.
#[derive(Debug, Default)]
pub(super) struct Signals {
    counters: HashMap<usize, CounterSignals, FixedState>,
    fences: HashMap<usize, (Arc<FenceState>, Signal), FixedState>,
    /// The ends of the last batches of each queue, by serial.
    queues: HashMap<u32, VecDeque<(u64, Signal)>, FixedState>,
}

impl Signals {
    /// A semaphore or an event gets a value.
    pub(super) fn counter_signalled(&mut self, counter: &Arc<Counter>, value: u64, signal: Signal) {
        let entry = self.counters.entry(Arc::as_ptr(counter).addr());
        let new = || {
            let counter = Arc::clone(counter);
            CounterSignals { counter, signals: Vec::new(), dropped: None, forgotten: None }
        };
        let CounterSignals { signals, forgotten, .. } = entry.or_insert_with(new);
        if signals.len() >= MAX_SIGNALS {
            let mut old: Vec<_> = signals.drain(..MAX_SIGNALS / 2).collect();
            *forgotten = old.iter().map(|(value, _)| *value).max().max(*forgotten);
            // The last of each queue, for which it waits if this is an event.
            let mut queues = HashSet::<_, FixedState>::default();
            old.reverse();
            old.retain(|(_, signal)| queues.insert(signal.queue));
            old.reverse();
            signals.splice(..0, old);
        }
        signals.push((value, signal));
    }

    /// A batch is done, and its fence signalled.
    pub(super) fn batch_ended(&mut self, id: SubmissionId, signal: Signal, fence: Option<&Arc<FenceState>>) {
        let batches = self.queues.entry(id.queue as u32).or_default();
        if batches.len() >= MAX_SIGNALS {
            batches.pop_front();
        }
        batches.push_back((id.serial, signal));
        if let Some(fence) = fence {
            self.fences.insert(Arc::as_ptr(fence).addr(), (Arc::clone(fence), signal));
        }
    }

    /// The signals that a wait for a value depends on: those that reached it first (Vulkan, "Semaphore Waiting": one
    /// signal operation). Nothing signalled the first value of a timeline.
    pub(super) fn of_counter(&self, counter: &Arc<Counter>, value: u64) -> AwaitedSignals {
        let Some(CounterSignals { signals, dropped, forgotten, .. }) = self.counters.get(&Arc::as_ptr(counter).addr())
        else {
            return AwaitedSignals::default();
        };
        if dropped.is_some_and(|dropped| value <= dropped) || value <= counter.initial() {
            return AwaitedSignals::default();
        }
        let reached = signals.iter().map(|(reached, _)| *reached).filter(|reached| *reached >= value);
        let Some(first) = reached.min() else { return AwaitedSignals::default() };
        let signals = signals.iter().filter(|(reached, _)| *reached == first).map(|(_, signal)| *signal).collect();
        AwaitedSignals { signals, is_later: first != value && forgotten.is_some_and(|forgotten| value <= forgotten) }
    }

    /// The last signal of an event by a queue, and that of the host if it came later: those of other queues are not in
    /// the first scope of the queue's waits.
    pub(super) fn of_event(&self, event: &Arc<Counter>, queue: u32) -> SmallVec<[Signal; 2]> {
        let Some(CounterSignals { signals, .. }) = self.counters.get(&Arc::as_ptr(event).addr()) else {
            return SmallVec::new();
        };
        let last = |of| signals.iter().rev().map(|(_, signal)| *signal).find(|signal| signal.queue == of);
        let own = last(Some(queue));
        let host = last(None).filter(|host| own.is_none_or(|own| own.event < host.event));
        own.into_iter().chain(host).collect()
    }

    /// The signal of a fence.
    pub(super) fn of_fence(&self, fence: &Arc<FenceState>) -> SmallVec<[Signal; 2]> {
        self.fences.get(&Arc::as_ptr(fence).addr()).map(|(_, signal)| *signal).into_iter().collect()
    }

    /// The end of the last batch of a queue.
    pub(super) fn of_queue(&self, queue: u32) -> SmallVec<[Signal; 2]> {
        self.of_submission(queue, u64::MAX).signals
    }

    /// The end of the last batch of a queue up to a serial.
    pub(super) fn of_submission(&self, queue: u32, serial: u64) -> AwaitedSignals {
        let Some(batches) = self.queues.get(&queue) else { return AwaitedSignals::default() };
        let last = batches.iter().rev().find(|(of, _)| *of <= serial);
        // Serials count from 1.
        let is_later = last.is_none() && serial > 0 && batches.len() >= MAX_SIGNALS;
        let later = batches.front().filter(|_| is_later);
        AwaitedSignals { signals: last.or(later).map(|(_, signal)| *signal).into_iter().collect(), is_later }
    }

    /// Forgets objects without another owner, and those all of whose signals are dropped: before event `first`, and
    /// none of `held`, which accesses come before that something may still race with.
    pub(super) fn clean(&mut self, first: u64, held: &SignalUnion) {
        let stays = |signal: &Signal| signal.event >= first || held.has(signal);
        self.fences.retain(|_, (fence, signal)| Arc::strong_count(fence) > 1 && stays(signal));
        self.counters.retain(|_, CounterSignals { counter, signals, dropped, forgotten }| {
            // All or none: a wait depends on those that came before, too. Some stand for those that were forgotten.
            if forgotten.is_none() && !signals.iter().any(|(_, signal)| stays(signal)) {
                *dropped = signals.iter().map(|(value, _)| *value).max().max(*dropped);
                signals.clear();
            }
            Arc::strong_count(counter) > 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::scope::Stages;
    use super::*;

    fn signal(queue: u32, event: u64) -> Signal {
        Signal::new(event, Some(queue), Stages::NONE)
    }

    fn events(of: &AwaitedSignals) -> Vec<u64> {
        of.signals.iter().map(|signal| signal.event).collect()
    }

    #[test]
    fn a_wait_depends_on_the_signals_that_reach_its_value_first() {
        let (mut signals, counter) = (Signals::default(), Counter::new(0));
        for (value, queue, event) in [(1, 0, 10), (2, 1, 11), (3, 0, 12), (5, 1, 13)] {
            signals.counter_signalled(&counter, value, signal(queue, event));
        }
        let of = |value| events(&signals.of_counter(&counter, value));
        assert_eq!(of(0), [0; 0], "nothing signalled the first value");
        assert_eq!((of(1), of(3), of(4), of(6)), (vec![10], vec![12], vec![13], vec![]));
        assert_eq!(events(&signals.of_counter(&Counter::new(0), 1)), [0; 0]);
    }

    #[test]
    fn a_wait_for_a_dropped_signal_depends_on_none_that_came_later() {
        let (mut signals, counter) = (Signals::default(), Counter::new(0));
        let held = |event| {
            let mut union = SignalUnion::default();
            union.add_event(event);
            union
        };
        signals.counter_signalled(&counter, 1, signal(0, 10));
        signals.counter_signalled(&counter, 2, signal(0, 11));
        signals.clean(20, &held(11));
        assert_eq!([1, 2].map(|value| events(&signals.of_counter(&counter, value))), [[10], [11]]);
        signals.clean(20, &held(12));
        signals.counter_signalled(&counter, 3, signal(0, 21));
        let of = |value| events(&signals.of_counter(&counter, value));
        assert_eq!((of(1), of(2), of(3)), (vec![], vec![], vec![21]));
    }

    #[test]
    fn a_wait_for_a_forgotten_signal_depends_on_a_later_one() {
        let (mut signals, counter) = (Signals::default(), Counter::new(0));
        let held = SignalUnion::default();
        for value in 1..=MAX_SIGNALS as u64 + 1 {
            signals.counter_signalled(&counter, value, signal(u32::from(value == 2), value));
        }
        let half = MAX_SIGNALS as u64 / 2;
        let waits = |signals: &Signals| {
            [1, 2, half, half + 1].map(|value| {
                let of = signals.of_counter(&counter, value);
                (events(&of), of.is_later)
            })
        };
        let expected = [(vec![2], true), (vec![2], false), (vec![half], false), (vec![half + 1], false)];
        assert_eq!(waits(&signals), expected, "the last of each queue is kept");
        signals.clean(u64::MAX, &held);
        assert_eq!(waits(&signals), expected, "an access may be before a signal that was forgotten");
    }

    #[test]
    fn a_wait_for_a_forgotten_batch_depends_on_a_later_one() {
        let mut signals = Signals::default();
        let waits = |signals: &Signals, serial| {
            let of = signals.of_submission(0, serial);
            (events(&of), of.is_later)
        };
        for serial in 1..=MAX_SIGNALS as u64 + 1 {
            signals.batch_ended(SubmissionId { queue: 0, serial }, signal(0, serial), None);
        }
        let last = MAX_SIGNALS as u64 + 1;
        let expected = [(vec![], false), (vec![2], true), (vec![2], false), (vec![last], false), (vec![last], false)];
        assert_eq!([0, 1, 2, last, last + 43].map(|serial| waits(&signals, serial)), expected);
    }

    #[test]
    fn a_queue_waits_for_its_own_signal_of_an_event_and_a_later_one_of_the_host() {
        let (mut signals, event) = (Signals::default(), Counter::new(0));
        for (queue, number) in [(Some(0), 10), (Some(0), 11), (None, 12), (None, 13), (Some(1), 14)] {
            signals.counter_signalled(&event, 1, Signal::new(number, queue, Stages::NONE));
        }
        let of = |queue| signals.of_event(&event, queue).iter().map(|signal| signal.event).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(of), [vec![11, 13], vec![14], vec![13]]);
    }
}

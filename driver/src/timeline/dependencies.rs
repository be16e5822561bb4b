//! Arrows from a command to what comes after it, and why: a barrier, an event, a semaphore, the order of submissions;
//! and, in checked mode, where a dependency is missing.
//!
//! What orders is drawn, not each pair that it orders: a barrier is one arrow, from the command before it that ended
//! last to the one after it that began first. A wait for events ends a phase, as a barrier does; the arrow of an event
//! is from the command that set it to the one after the wait that began first.

use std::collections::{BTreeMap, VecDeque};

use super::TraceEvents;
use super::json::{Row, TraceEvent};
use crate::exec::{CommandId, SemaphoreSignal, SemaphoreWait, SubmissionId};

/// Commands, submissions and signals that are known; arrows from older ones are not drawn.
const MAX_KNOWN: usize = 1 << 12;

/// Missing dependencies that are drawn of a submission.
const MAX_MISSING: usize = 64;

/// A slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceSlice {
    pub(super) row: Row,
    /// Microseconds.
    pub(super) start: f64,
    pub(super) end: f64,
}

impl TraceSlice {
    /// A time near the end, so that viewers find this slice there.
    fn near_end(&self) -> f64 {
        (self.end - 0.001).max(self.start)
    }
}

/// An arrow.
#[derive(Debug)]
pub(super) struct Edge {
    category: &'static str,
    name: String,
    from: TraceSlice,
    to: TraceSlice,
    number: u64,
}

impl Edge {
    /// Adds the arrow of a device.
    pub(super) fn draw(&self, events: &mut TraceEvents, device: usize) {
        let Self { category, name, from, to, number } = self;
        let id = (device as u64) << 44 | number;
        // A submission that waits begins before what it waits for has ended.
        let begin = from.near_end();
        for (phase, row, at) in [('s', from.row, begin), ('f', to.row, to.start.max(begin))] {
            events.add(&TraceEvent::Flow { row, phase, category, name, id, at });
        }
    }
}

/// The newest entries of a map.
#[derive(Debug)]
struct BoundedMap<K, V> {
    values: BTreeMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for BoundedMap<K, V> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Copy + Ord, V> BoundedMap<K, V> {
    fn insert(&mut self, key: K, value: V) {
        if self.values.insert(key, value).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }
}

/// What signalled a semaphore.
#[derive(Clone, Copy, Debug)]
struct Signaller {
    /// The semaphore's value before.
    before: u64,
    /// `None` is the host.
    submission: Option<SubmissionId>,
}

/// What is known of the commands of a device, and the arrows that are not drawn yet.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    commands: BoundedMap<CommandId, TraceSlice>,
    submissions: BoundedMap<SubmissionId, TraceSlice>,
    /// By semaphore and value.
    signals: BoundedMap<(u64, u64), Signaller>,
    /// What the submission that ends now waited for.
    awaited: Vec<SubmissionId>,
    /// The command that set each event last; `None` is the host.
    set: BoundedMap<u64, Option<CommandId>>,
    /// The waits for events of submissions that have not ended, with the commands that set the events.
    event_waits: BTreeMap<CommandId, Vec<CommandId>>,
    missing: BTreeMap<SubmissionId, Vec<(CommandId, CommandId, String)>>,
    /// The command of the present phase that ended last.
    last: Option<(CommandId, TraceSlice)>,
    edges: Vec<Edge>,
    drawn: u64,
}

impl Dependencies {
    /// A submission that ends now waited for these semaphores, and signals others.
    pub(super) fn synchronized(&mut self, id: SubmissionId, waits: &[SemaphoreWait], signals: &[SemaphoreSignal]) {
        self.awaited = waits.iter().filter_map(|wait| self.signaller(*wait)).collect();
        signals.iter().for_each(|signal| self.signalled(*signal, Some(id)));
    }

    /// The host signals a semaphore.
    pub(super) fn host_signals(&mut self, signal: SemaphoreSignal) {
        self.signalled(signal, None);
    }

    fn signalled(&mut self, signal: SemaphoreSignal, submission: Option<SubmissionId>) {
        let SemaphoreSignal { semaphore, before, value } = signal;
        self.signals.insert((semaphore, value), Signaller { before, submission });
    }

    /// The submission whose signal ended a wait. Values only grow, so it is the first signal that reaches the value:
    /// unless the semaphore had the value before, from the start or by a signal that is not known any more.
    fn signaller(&self, SemaphoreWait { semaphore, value }: SemaphoreWait) -> Option<SubmissionId> {
        let mut reaching = self.signals.values.range((semaphore, value)..=(semaphore, u64::MAX));
        let (_, first) = reaching.next()?;
        first.submission.filter(|_| first.before < value)
    }

    /// The program has no dependency between two commands, of which the later one runs now.
    pub(super) fn misses(&mut self, earlier: CommandId, later: CommandId, rule: &str) {
        let of_submission = self.missing.entry(later.submission).or_default();
        let known = of_submission.iter().any(|(from, to, what)| (*from, *to, &what[..]) == (earlier, later, rule));
        if !known && of_submission.len() < MAX_MISSING {
            of_submission.push((earlier, later, rule.to_owned()));
        }
    }

    /// A command, or the host (`None`), sets an event that is not set.
    pub(super) fn sets_event(&mut self, command: Option<CommandId>, event: u64) {
        self.set.insert(event, command);
    }

    /// A command has waited for events. What the host has set has no arrow.
    pub(super) fn waited_for_events(&mut self, command: CommandId, events: &[u64]) {
        let set: Vec<_> = events.iter().filter_map(|event| self.set.values.get(event).copied()?).collect();
        if !set.is_empty() && self.event_waits.len() < MAX_KNOWN {
            self.event_waits.insert(command, set);
        }
    }

    /// A submission has ended; its commands come next, in the order in which they began.
    pub(super) fn submission_ran(&mut self, id: SubmissionId, place: TraceSlice) {
        self.last = None;
        let before = SubmissionId { serial: id.serial.wrapping_sub(1), ..id };
        self.arrow("dependency", "submission order", self.submissions.values.get(&before).copied(), place);
        for signaller in std::mem::take(&mut self.awaited) {
            self.arrow("dependency", "semaphore", self.submissions.values.get(&signaller).copied(), place);
        }
        self.submissions.insert(id, place);
    }

    /// A command of the submission.
    pub(super) fn command_ran(&mut self, id: CommandId, place: TraceSlice) {
        let phase = |id: CommandId| (id.recording, id.phase);
        match &mut self.last {
            Some((last, of)) if phase(*last) == phase(id) => {
                if place.end > of.end {
                    (*last, *of) = (id, place);
                }
            }
            last => {
                if let Some((before, from)) = last.replace((id, place)) {
                    let what = if before.recording == id.recording { "barrier" } else { "submission order" };
                    self.arrow("dependency", what, Some(from), place);
                }
            }
        }
        // The first command after waits for events.
        let first = CommandId { submission: id.submission, recording: 0, phase: 0, command: 0 };
        while let Some((&wait, _)) = self.event_waits.range(first..id).next() {
            for set in self.event_waits.remove(&wait).unwrap_or_default() {
                self.arrow("dependency", "event", self.commands.values.get(&set).copied(), place);
            }
        }
        self.commands.insert(id, place);
    }

    /// The arrows to a submission whose commands are all known.
    pub(super) fn take(&mut self, id: SubmissionId) -> Vec<Edge> {
        for (earlier, later, rule) in self.missing.remove(&id).unwrap_or_default() {
            let of = |id| self.commands.values.get(&id).copied();
            if let (from, Some(to)) = (of(earlier), of(later)) {
                self.arrow("missing", &format!("missing dependency: {rule}"), from, to);
            }
        }
        self.event_waits.retain(|wait, _| wait.submission != id);
        std::mem::take(&mut self.edges)
    }

    fn arrow(&mut self, category: &'static str, name: &str, from: Option<TraceSlice>, to: TraceSlice) {
        // Without a place the earlier one is older than what is known.
        let Some(from) = from.filter(|from| from.near_end() <= to.end) else { return };
        self.drawn += 1;
        self.edges.push(Edge { category, name: name.to_owned(), from, to, number: self.drawn });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_by_the_first_signal_that_reaches_its_value() {
        let mut known = Dependencies::default();
        let id = |serial| SubmissionId { queue: 0, serial };
        let signal = |before, value| SemaphoreSignal { semaphore: 1, before, value };
        let by = |known: &Dependencies, value| known.signaller(SemaphoreWait { semaphore: 1, value });
        known.synchronized(id(7), &[], &[signal(2, 5)]);
        // It happens before the signal of the submission that has ended already.
        known.host_signals(signal(2, 3));
        known.synchronized(id(8), &[], &[signal(5, 9)]);
        assert_eq!([1, 2, 3].map(|value| by(&known, value)), [None; 3], "the initial value, and the host");
        assert_eq!(
            [4, 5, 6, 9, 10].map(|value| by(&known, value)),
            [Some(id(7)), Some(id(7)), Some(id(8)), Some(id(8)), None]
        );
        assert_eq!(known.signaller(SemaphoreWait { semaphore: 2, value: 3 }), None, "another semaphore");
        // The first ones are forgotten.
        (0..MAX_KNOWN as u64).for_each(|more| known.synchronized(id(9), &[], &[signal(9 + more, 10 + more)]));
        assert_eq!([4, 5, 6, 9].map(|value| by(&known, value)), [None; 4]);
    }
}

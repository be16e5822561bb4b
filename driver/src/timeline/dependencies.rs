//! Arrows from a command to what comes after it, and why: a barrier, a semaphore, the order of submissions; and, in
//! checked mode, where a dependency is missing.
//!
//! What orders is drawn, not each pair that it orders: a barrier is one arrow, from the command before it that ended
//! last to the one after it that began first. A wait for events ends a phase, as a barrier does.

use std::collections::{BTreeMap, VecDeque};

use super::Events;
use super::json::{Event, Row};
use crate::exec::{CommandId, SubmissionId};

/// Commands, submissions and signals that are known; arrows from older ones are not drawn.
const MAX_KNOWN: usize = 1 << 12;

/// Missing dependencies that are drawn of a submission.
const MAX_MISSING: usize = 64;

/// A slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) row: Row,
    /// Microseconds.
    pub(super) start: f64,
    pub(super) end: f64,
}

impl Place {
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
    from: Place,
    to: Place,
    number: u64,
}

impl Edge {
    /// Adds the arrow of a device.
    pub(super) fn draw(&self, events: &mut Events, device: usize) {
        let Self { category, name, from, to, number } = self;
        let id = (device as u64) << 44 | number;
        // A submission that waits begins before what it waits for has ended.
        let begin = from.near_end();
        for (phase, row, at) in [('s', from.row, begin), ('f', to.row, to.start.max(begin))] {
            events.add(&Event::Flow { row, phase, category, name, id, at });
        }
    }
}

/// The newest entries of a map.
#[derive(Debug)]
struct Known<K, V> {
    values: BTreeMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Copy + Ord, V> Known<K, V> {
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

/// What is known of the commands of a device, and the arrows that are not drawn yet.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    commands: Known<CommandId, Place>,
    submissions: Known<SubmissionId, Place>,
    /// By semaphore and value, what signalled it.
    signals: Known<(usize, u64), SubmissionId>,
    /// What the submission that ends now waited for.
    awaited: Vec<SubmissionId>,
    missing: BTreeMap<SubmissionId, Vec<(CommandId, CommandId, String)>>,
    /// The command of the present phase that ended last.
    last: Option<(CommandId, Place)>,
    edges: Vec<Edge>,
    drawn: u64,
}

impl Dependencies {
    /// A submission that ends now waited for these semaphores, and signals others.
    pub(super) fn synchronized(&mut self, id: SubmissionId, waits: &[(usize, u64)], signals: &[(usize, u64)]) {
        let signal = |&(semaphore, value): &(usize, u64)| {
            let at_least = self.signals.values.range((semaphore, value)..=(semaphore, u64::MAX)).next();
            at_least.map(|(_, id)| *id)
        };
        self.awaited = waits.iter().filter_map(signal).collect();
        signals.iter().for_each(|signal| self.signals.insert(*signal, id));
    }

    /// The program has no dependency between two commands, of which the later one runs now.
    pub(super) fn misses(&mut self, earlier: CommandId, later: CommandId, rule: &str) {
        let of_submission = self.missing.entry(later.submission).or_default();
        let known = of_submission.iter().any(|(from, to, what)| (*from, *to, &what[..]) == (earlier, later, rule));
        if !known && of_submission.len() < MAX_MISSING {
            of_submission.push((earlier, later, rule.to_owned()));
        }
    }

    /// A submission has ended; its commands come next, in the order in which they began.
    pub(super) fn submission_ran(&mut self, id: SubmissionId, place: Place) {
        self.last = None;
        let before = SubmissionId { serial: id.serial.wrapping_sub(1), ..id };
        self.arrow("dependency", "submission order", self.submissions.values.get(&before).copied(), place);
        for signaller in std::mem::take(&mut self.awaited) {
            self.arrow("dependency", "semaphore", self.submissions.values.get(&signaller).copied(), place);
        }
        self.submissions.insert(id, place);
    }

    /// A command of the submission.
    pub(super) fn command_ran(&mut self, id: CommandId, place: Place) {
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
        std::mem::take(&mut self.edges)
    }

    fn arrow(&mut self, category: &'static str, name: &str, from: Option<Place>, to: Place) {
        // Without a place the earlier one is older than what is known.
        let Some(from) = from.filter(|from| from.near_end() <= to.end) else { return };
        self.drawn += 1;
        self.edges.push(Edge { category, name: name.to_owned(), from, to, number: self.drawn });
    }
}

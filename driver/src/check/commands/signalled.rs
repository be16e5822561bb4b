//! The signals that come after an access: a wait for one of them orders what comes after the wait.
//!
//! Signals of a queue come one after another, and those that wait for all commands of the queue are after whatever an
//! earlier one of them is after. So most sets are "from this one on", whatever number of submissions a program makes.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::scope::Stages;

/// A signal of a semaphore, a fence or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    /// Its event in the log.
    pub(super) event: u64,
    /// The queue; `None` is the host.
    pub(super) queue: Option<u32>,
    /// Whether it comes after all commands of the queue so far, or is the host's.
    pub(super) is_full: bool,
}

impl Signal {
    /// The signal of event `event` after these stages.
    pub(super) fn new(event: u64, queue: Option<u32>, stages: Stages) -> Self {
        Self { event, queue, is_full: queue.is_none() || stages == Stages::COMMANDS }
    }
}

/// Signals of a queue, or of the host, from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SignalsFrom {
    queue: Option<u32>,
    /// Whether signals after some stages of the queue's commands are among them.
    includes_partial: bool,
    event: u64,
}

/// A set of signals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SignalSet {
    some: SmallVec<[u64; 2]>,
    from: SmallVec<[SignalsFrom; 1]>,
}

impl SignalSet {
    /// Adds a signal. With `later`, all signals of the queue that come later are in the set, too.
    pub(super) fn add(&mut self, signal: Signal, later: bool) {
        match signal {
            known if self.has(&known) => {}
            Signal { event, queue, is_full } if later || is_full => {
                self.from.push(SignalsFrom { queue, includes_partial: later, event })
            }
            Signal { event, .. } => self.some.push(event),
        }
    }

    /// Whether it has a signal.
    pub(super) fn has(&self, signal: &Signal) -> bool {
        let is_later = |from: &SignalsFrom| {
            signal.queue == from.queue && from.event <= signal.event && (from.includes_partial || signal.is_full)
        };
        self.some.contains(&signal.event) || self.from.iter().any(is_later)
    }

    /// Whether it has one of these.
    pub(super) fn has_any(&self, signals: &[Signal]) -> bool {
        signals.iter().any(|signal| self.has(signal))
    }
}

/// A union of sets.
#[derive(Debug, Default)]
pub(super) struct SignalUnion {
    some: HashSet<u64, FixedState>,
    /// By queue and whether partial ones are in, the first.
    from: HashMap<(Option<u32>, bool), u64, FixedState>,
}

impl SignalUnion {
    /// Adds the signals of a set.
    pub(super) fn add(&mut self, set: &SignalSet) {
        self.some.extend(&set.some);
        for from in &set.from {
            let first = self.from.entry((from.queue, from.includes_partial)).or_insert(from.event);
            *first = from.event.min(*first);
        }
    }

    /// Adds the signal of an event in the log.
    pub(super) fn add_event(&mut self, event: u64) {
        self.some.insert(event);
    }

    /// Whether it has a signal.
    pub(super) fn has(&self, signal: &Signal) -> bool {
        let from = |partial| self.from.get(&(signal.queue, partial)).is_some_and(|first| *first <= signal.event);
        self.some.contains(&signal.event) || from(true) || signal.is_full && from(false)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scope::Stage;
    use super::*;

    #[test]
    fn a_full_signal_has_later_full_ones_of_its_queue_with_it() {
        let full = |event, queue| Signal::new(event, Some(queue), Stages::COMMANDS);
        let partial = |event, queue| Signal::new(event, Some(queue), Stages::of(Stage::Copy));
        let of = |add: &[(Signal, bool)]| {
            let (mut set, mut union) = (SignalSet::default(), SignalUnion::default());
            add.iter().for_each(|(signal, later)| set.add(*signal, *later));
            union.add(&set);
            let asked = [full(4, 0), full(5, 0), full(6, 0), full(6, 1), partial(5, 0), partial(6, 0)];
            let has = asked.map(|signal| set.has(&signal));
            assert_eq!(asked.map(|signal| union.has(&signal)), has);
            has
        };
        assert_eq!(of(&[]), [false; 6]);
        assert_eq!(of(&[(full(5, 0), false)]), [false, true, true, false, false, false]);
        assert_eq!(of(&[(partial(5, 0), false)]), [false, true, false, false, true, false]);
        assert_eq!(of(&[(partial(5, 0), true)]), [false, true, true, false, true, true]);
    }

    #[test]
    fn a_set_stays_small() {
        let mut set = SignalSet::default();
        (0..1000).for_each(|event| set.add(Signal::new(event, Some(0), Stages::COMMANDS), false));
        assert_eq!(set.from.len() + set.some.len(), 1);
    }
}

//! Journal of changes to resources, for the contexts that did not make them: one number shows whether there are new
//! events.
//!
//! Slots belong to a context, and a resource does not know which contexts have it bound. So a thread that replaces an
//! object enters the resource here; every context compares the count at its next dispatch, reads the events that it
//! missed and rebinds their resources.

use std::collections::VecDeque;

use crate::ids::{ObjectId, ResourceId};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Entries that are kept. A context that missed more checks all its slots.
const KEPT: usize = 1024;

/// A change of a resource: slots that hold it must be checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceChange {
    pub(crate) resource: ResourceId,
    /// The object that it lost; cached descriptor sets that name it are useless.
    pub(crate) lost: Option<ObjectId>,
}

/// The latest events, numbered.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The number of all events so far. Written under the lock of `recent`.
    count: AtomicU64,
    recent: Mutex<VecDeque<ResourceChange>>,
}

/// The events that a context missed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Exactly these.
    Events(Vec<ResourceChange>),
    /// More than is kept.
    TooMany,
}

impl Journal {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { count: AtomicU64::new(0), recent: Mutex::new(VecDeque::new()) }
    }

    /// The number of events so far.
    pub(crate) fn count(&self) -> u64 {
        // Acquire: pairs with the Release in `note`; a thread that sees the number finds the event.
        self.count.load(Ordering::Acquire)
    }

    /// Enters an event and returns its number, counted from 1 on.
    pub(crate) fn note(&self, event: ResourceChange) -> u64 {
        let mut recent = self.recent.lock();
        if recent.len() == KEPT {
            recent.pop_front();
        }
        recent.push_back(event);
        // Relaxed: written under this lock only.
        let number = self.count.load(Ordering::Relaxed) + 1;
        // Release: pairs with the Acquire in `count`.
        self.count.store(number, Ordering::Release);
        number
    }

    /// The events after number `seen`, and the number of the last one.
    pub(crate) fn since(&self, seen: u64) -> (u64, News) {
        let recent = self.recent.lock();
        // Relaxed: written under this lock only.
        let count = self.count.load(Ordering::Relaxed);
        let missed = (count - seen.min(count)) as usize;
        let news = match recent.len().checked_sub(missed) {
            Some(skip) => News::Events(recent.iter().skip(skip).copied().collect()),
            None => News::TooMany,
        };
        (count, news)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn event(number: u64) -> ResourceChange {
        ResourceChange { resource: ResourceId(number), lost: None }
    }

    #[test]
    fn each_context_reads_the_events_it_missed() {
        let journal = Journal::new();
        assert_eq!(journal.since(0), (0, News::Events(vec![])));
        (1..=3).for_each(|number| assert_eq!(journal.note(event(number)), number));
        assert_eq!(journal.since(0), (3, News::Events(vec![event(1), event(2), event(3)])));
        assert_eq!(journal.since(2), (3, News::Events(vec![event(3)])));
        assert_eq!(journal.since(3), (3, News::Events(vec![])));
    }

    #[test]
    fn missing_too_many_events_is_reported() {
        let journal = Journal::new();
        for number in 0..KEPT as u64 + 5 {
            journal.note(event(number));
        }
        assert_eq!(journal.since(4).1, News::TooMany);
        let News::Events(events) = journal.since(5).1 else { panic!("these are kept") };
        assert_eq!((events.len(), events[0]), (KEPT, event(5)));
    }
}

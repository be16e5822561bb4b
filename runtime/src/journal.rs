//! What happened to resources, for the contexts that did not do it: one number says whether there is news.
//!
//! Slots belong to a context, and a resource does not know who has it bound. So whoever replaces an object writes the
//! resource down here; every context compares the count at its next dispatch, reads what it missed and rebinds that.

use std::collections::VecDeque;

use crate::object::ObjectId;
use crate::resource::ResourceId;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Entries that are kept. A context that missed more looks at everything that it has bound.
const KEPT: usize = 1024;

/// Something that happened to a resource: slots that hold it must be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) resource: ResourceId,
    /// The object that it lost; cached descriptor sets that name it are worth nothing.
    pub(crate) lost: Option<ObjectId>,
}

/// The latest events, numbered.
#[derive(Debug)]
pub(crate) struct Journal {
    /// How many there ever were. Written under the lock of `recent`.
    count: AtomicU64,
    recent: Mutex<VecDeque<Event>>,
}

/// What a context missed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Exactly this.
    Events(Vec<Event>),
    /// More than is kept.
    TooMany,
}

impl Journal {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { count: AtomicU64::new(0), recent: Mutex::new(VecDeque::new()) }
    }

    /// How many events there were so far.
    pub(crate) fn count(&self) -> u64 {
        // Acquire: pairs with the Release in `note`; who sees the number finds the event.
        self.count.load(Ordering::Acquire)
    }

    /// Writes an event down and returns its number, counted from 1 on.
    pub(crate) fn note(&self, event: Event) -> u64 {
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

    fn event(number: u64) -> Event {
        Event { resource: ResourceId(number), lost: None }
    }

    #[test]
    fn everybody_reads_what_he_missed() {
        let journal = Journal::new();
        assert_eq!(journal.since(0), (0, News::Events(vec![])));
        (1..=3).for_each(|number| assert_eq!(journal.note(event(number)), number));
        assert_eq!(journal.since(0), (3, News::Events(vec![event(1), event(2), event(3)])));
        assert_eq!(journal.since(2), (3, News::Events(vec![event(3)])));
        assert_eq!(journal.since(3), (3, News::Events(vec![])));
    }

    #[test]
    fn who_missed_too_much_is_told_so() {
        let journal = Journal::new();
        for number in 0..KEPT as u64 + 5 {
            journal.note(event(number));
        }
        assert_eq!(journal.since(4).1, News::TooMany);
        let News::Events(events) = journal.since(5).1 else { panic!("these are kept") };
        assert_eq!((events.len(), events[0]), (KEPT, event(5)));
    }
}

//! Holds of tests, and the log of events.

use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::wait_until;
use crate::events::{Event, EventLog};
use crate::holds::{HoldState, OpenedBy};
use crate::ids::{ContextId, ResourceId};

#[test]
fn a_hold_is_opened_once_and_its_waiter_is_seen() {
    loom::model(|| {
        // `signals` stands for the semaphore.
        let (hold, signals) = (Arc::new(HoldState::new()), Arc::new(AtomicU64::new(0)));
        let open = |by| {
            let (hold, signals) = (Arc::clone(&hold), Arc::clone(&signals));
            move || {
                if hold.open(by) {
                    signals.fetch_add(1, Ordering::Release);
                }
            }
        };
        // As `HeldBatches::wait`, in a thread that blocks until the test's thread releases the batches.
        let waiter = thread::spawn({
            let (hold, signals) = (Arc::clone(&hold), Arc::clone(&signals));
            let time_is_over = open(OpenedBy::TimeLimit);
            move || {
                hold.wait_begins();
                time_is_over();
                wait_until(|| signals.load(Ordering::Acquire) > 0);
                hold.wait_ends();
            }
        });
        let release = open(OpenedBy::Release);
        release();
        waiter.join().unwrap();
        assert!(hold.opened_by().is_some());
        assert_eq!((signals.load(Ordering::Acquire), hold.waiting()), (1, 0));
    });
}

#[test]
fn a_thread_that_begins_to_wait_wakes_the_test() {
    loom::model(|| {
        let hold = Arc::new(HoldState::new());
        let waiter = thread::spawn({
            let hold = Arc::clone(&hold);
            move || hold.wait_begins()
        });
        assert!(hold.until_awaited(Duration::MAX), "the wakeup was lost");
        waiter.join().unwrap();
        assert_eq!(hold.waiting(), 1);
    });
}

#[test]
fn each_event_is_drained_once() {
    loom::model(|| {
        let log = Arc::new(EventLog::new(ContextId(1)));
        log.record(true, 0);
        let note = |log: &EventLog, bytes| log.note(|| Event::Staged { resource: ResourceId(1), bytes });
        let other = thread::spawn({
            let log = Arc::clone(&log);
            move || note(&log, 1)
        });
        note(&log, 2);
        let mut events = log.drain();
        other.join().unwrap();
        events.extend(log.drain());
        let mut bytes: Vec<_> =
            events.iter().map(|event| if let Event::Staged { bytes, .. } = event { *bytes } else { 0 }).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, [1, 2]);
    });
}

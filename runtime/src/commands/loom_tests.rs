//! Command buffers that threads record again while others submit them, under every interleaving: the code of
//! `current.rs`, with numbers for commands.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::current::{Current, reaches};
use crate::recordings::Recordings;

/// Commands: their version, and the number of writes to their set when they were recorded.
#[derive(Debug, PartialEq, Eq)]
struct Commands {
    version: u32,
    writes: u32,
}

/// `CommandBuffer::current` for a set that was written once.
fn submit(current: &Current<Commands>) -> Arc<Commands> {
    loop {
        let old = current.get();
        if old.writes == 1 {
            return old;
        }
        let new = Arc::new(Commands { writes: 1, ..*old });
        if current.renew(&old, &new) {
            return new;
        }
    }
}

#[test]
fn a_submission_does_not_bring_back_commands_that_were_replaced() {
    for writes in [0, 1] {
        loom::model(move || {
            let current = Arc::new(Current::new(Arc::new(Commands { version: 1, writes: 0 })));
            let submits = |current: &Arc<Current<Commands>>| {
                let current = Arc::clone(current);
                thread::spawn(move || submit(&current).version)
            };
            let threads = [submits(&current), submits(&current)];
            // `Context::rerecord`; the set may have been written after the closure looked at it.
            drop(current.replace(Arc::new(Commands { version: 2, writes })));
            let used = threads.map(|thread| thread.join().unwrap());
            assert!(used.iter().all(|version| [1, 2].contains(version)));
            assert_eq!(*submit(&current), Commands { version: 2, writes: 1 });
        });
    }
}

#[test]
fn one_call_records_at_a_time_and_sees_what_the_one_before_recorded() {
    loom::model(|| {
        let current = Arc::new(Current::new(Arc::new(0u32)));
        let recorded = Arc::new(UnsafeCell::new(0u32));
        let record = |current: &Current<u32>, recorded: &UnsafeCell<u32>| {
            let exclusive = current.exclusive();
            // Loom reports two accesses that are not ordered.
            let done = exclusive.is_some();
            if done {
                recorded.with_mut(|_| ());
            }
            drop(exclusive);
            done
        };
        let other = thread::spawn({
            let (current, recorded) = (Arc::clone(&current), Arc::clone(&recorded));
            move || record(&current, &recorded)
        });
        let own = record(&current, &recorded);
        assert!(other.join().unwrap() || own, "one of them is first");
        assert!(current.exclusive().is_some());
    });
}

/// Two command buffers, each with the numbers of those that it executes.
struct Pair {
    buffers: [Current<Vec<usize>>; 2],
    recordings: Recordings,
}

impl Pair {
    /// `Context::rerecord`: `which` executes the other one from now on. Returns whether that was allowed.
    fn execute_other(&self, which: usize) -> bool {
        let nesting = self.recordings.nesting.lock();
        let nested = |number: &usize| self.buffers[*number].get().to_vec();
        let cycle = reaches(1 - which, |number| *number == which, |number| *number, nested);
        let old = (!cycle).then(|| self.buffers[which].replace(Arc::new(vec![1 - which])));
        drop(nesting);
        drop(old);
        !cycle
    }
}

#[test]
fn two_threads_do_not_close_a_cycle() {
    loom::model(|| {
        let buffers = [(); 2].map(|()| Current::new(Arc::new(Vec::new())));
        let pair = Arc::new(Pair { buffers, recordings: Recordings::default() });
        let other = thread::spawn({
            let pair = Arc::clone(&pair);
            move || pair.execute_other(1)
        });
        let own = pair.execute_other(0);
        assert!(own != other.join().unwrap(), "the second one finds the cycle");
    });
}

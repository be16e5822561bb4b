//! Contexts that use one object, and the journal.

use std::sync::Arc;

use loom::thread;

use super::{Stored, TestContext, done, wait_until};
use crate::ids::{Access, ObjectId, ResourceId};
use crate::journal::{Journal, News, ResourceChange};
use crate::serial::MustPrecede;
use crate::sync::Mutex;

#[test]
fn of_two_that_conflict_one_learns_of_the_other() {
    loom::model(|| {
        let object = Stored::new();
        let enter = |number| {
            let object = Arc::clone(&object);
            move || {
                object
                    .usage
                    .enter(&TestContext::new(number).clock, 1, Access::Write, false)
                    .err()
                    .map(|first| done(first).clock.id())
            }
        };
        let (first, second) = (enter(1), enter(2));
        let other = thread::spawn(first);
        let here = second();
        let there = other.join().unwrap();
        assert!(matches!((here, there), (Some(1), None) | (None, Some(2))), "{here:?} {there:?}");
    });
}

#[test]
fn readers_need_no_order() {
    loom::model(|| {
        let object = Stored::new();
        let other = thread::spawn({
            let object = Arc::clone(&object);
            move || object.usage.enter(&TestContext::new(1).clock, 1, Access::Read, false).is_ok()
        });
        assert!(object.usage.enter(&TestContext::new(2).clock, 1, Access::Read, false).is_ok());
        assert!(other.join().unwrap());
    });
}

#[test]
fn writes_to_bytes_that_were_never_valid_do_not_wait_and_later_reads_come_after() {
    // One context reads bytes without defined data in one batch after another; a second context writes them. Loom
    // observes that write: it must be ordered before every read that is recorded after it.
    loom::model(|| {
        let (object, reader) = (Stored::new(), Arc::new(TestContext::new(1)));
        let valid = Arc::new(Mutex::new(false));
        let open = Arc::new(Mutex::new(1));
        assert!(object.usage.enter(&reader.clock, 1, Access::Read, false).is_ok());
        let other = thread::spawn({
            let (object, reader, valid, open) =
                (Arc::clone(&object), Arc::clone(&reader), Arc::clone(&valid), Arc::clone(&open));
            move || {
                let context = TestContext::new(2);
                loop {
                    let mut state = valid.lock();
                    match object.usage.enter(&context.clock, 1, Access::Write, true) {
                        Ok(_) => {
                            *state = true;
                            break;
                        }
                        Err(MustPrecede::Submitted(point)) => {
                            drop(state);
                            // As `Share::submit`: the other context's open batch is submitted, under its lock.
                            let mut open = open.lock();
                            if *open == point.serial {
                                reader.submit(point.serial);
                                *open += 1;
                            }
                        }
                        Err(MustPrecede::Done(point)) => panic!("{point:?} needs no wait"),
                    }
                }
                context.submit(1);
                object.run();
                context.retire(1);
            }
        });
        // A dispatch that is repeated in the open batch skips the test of its objects; in another batch it enters
        // again.
        let open = open.lock();
        if *open > 1 {
            while let Err(first) = object.usage.enter(&reader.clock, *open, Access::Read, false) {
                let point = done(first);
                wait_until(|| point.clock.retired() >= point.serial);
            }
            if *valid.lock() {
                object.run();
            }
        } else {
            assert!(!*valid.lock(), "it was written before the open batch, which reads it, was submitted");
        }
        drop(open);
        other.join().unwrap();
    });
}

#[test]
fn batches_of_two_contexts_that_write_one_object_never_meet() {
    // Each context records, submits and runs a batch, after a wait for the other's batch if that came first.
    fn work(context: &TestContext, object: &Stored) {
        while let Err(first) = object.usage.enter(&context.clock, 1, Access::Write, false) {
            let point = done(first);
            wait_until(|| point.clock.retired() >= point.serial);
        }
        context.submit(1);
        object.run();
        context.retire(1);
    }
    loom::model(|| {
        let object = Stored::new();
        let other = thread::spawn({
            let object = Arc::clone(&object);
            move || work(&TestContext::new(1), &object)
        });
        work(&TestContext::new(2), &object);
        other.join().unwrap();
    });
}

#[test]
fn a_context_that_was_ordered_after_another_gets_no_second_conflict() {
    loom::model(|| {
        let (object, context) = (Stored::new(), TestContext::new(2));
        let other = thread::spawn({
            let object = Arc::clone(&object);
            move || {
                let context = TestContext::new(1);
                let first = object.usage.enter(&context.clock, 1, Access::Write, false);
                context.submit(1);
                first.is_ok()
            }
        });
        let mut reported = 0;
        while let Err(first) = object.usage.enter(&context.clock, 1, Access::Write, false) {
            let point = done(first);
            // The other batch has not retired: from here on a semaphore wait orders the two.
            context.clock.follow(&point.clock, point.serial);
            reported += 1;
        }
        let was_first = other.join().unwrap();
        assert_eq!(reported, usize::from(was_first));
    });
}

#[test]
fn an_object_is_freed_after_its_last_batch() {
    loom::model(|| {
        let (context, object) = (Arc::new(TestContext::new(1)), Stored::new());
        object.usage.enter(&context.clock, 1, Access::Write, false).unwrap_or_else(|_| panic!("no batch conflicts"));
        context.submit(1);
        let queue = thread::spawn({
            let (context, object) = (Arc::clone(&context), Arc::clone(&object));
            move || {
                object.run();
                drop(object); // the test's handle; the driver keeps none
                context.retire(1);
            }
        });
        // The object was replaced and only the batch owns it. A context recycles a batch when its serial has retired.
        wait_until(|| context.clock.retired() >= 1);
        object.run(); // freeing counts as an access
        assert!(!object.usage.is_busy(Access::Write));
        queue.join().unwrap();
    });
}

#[test]
fn an_object_that_is_seen_idle_may_be_written() {
    loom::model(|| {
        let (context, object) = (Arc::new(TestContext::new(1)), Stored::new());
        object.usage.enter(&context.clock, 1, Access::Read, false).unwrap_or_else(|_| panic!("no batch conflicts"));
        context.submit(1);
        let queue = thread::spawn({
            let (context, object) = (Arc::clone(&context), Arc::clone(&object));
            move || {
                object.run();
                context.retire(1);
            }
        });
        if !object.usage.is_busy(Access::Write) {
            object.run(); // the host writes in place
        }
        queue.join().unwrap();
    });
}

#[test]
fn a_thread_that_sees_the_count_finds_the_event_and_the_new_object() {
    loom::model(|| {
        let (journal, resource) = (Arc::new(Journal::new()), Arc::new(Mutex::new(1u64)));
        let event = ResourceChange { resource: ResourceId(7), lost: Some(ObjectId(1)) };
        let other = thread::spawn({
            let (journal, resource) = (Arc::clone(&journal), Arc::clone(&resource));
            move || {
                *resource.lock() = 2;
                journal.note(event);
            }
        });
        if journal.count() == 1 {
            assert_eq!(journal.since(0), (1, News::Events(vec![event])));
            assert_eq!(*resource.lock(), 2);
        }
        other.join().unwrap();
        assert_eq!((journal.count(), *resource.lock()), (1, 2));
    });
}

#[test]
fn no_event_is_missed_and_none_is_read_twice() {
    loom::model(|| {
        let journal = Arc::new(Journal::new());
        let event = |number| ResourceChange { resource: ResourceId(number), lost: None };
        let other = thread::spawn({
            let journal = Arc::clone(&journal);
            move || journal.note(event(1))
        });
        let (seen, first) = journal.since(0);
        let mine = journal.note(event(2));
        let (_, second) = journal.since(seen);
        let theirs = other.join().unwrap();
        let (_, last) = journal.since(seen);
        assert_ne!(mine, theirs);
        let (News::Events(first), News::Events(second), News::Events(last)) = (first, second, last) else {
            panic!("all are kept")
        };
        assert!(second.contains(&event(2)));
        let mut all: Vec<_> = first.iter().chain(&last).map(|event| event.resource.0).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

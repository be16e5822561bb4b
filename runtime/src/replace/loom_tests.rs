//! Concurrent steps on one resource under every interleaving: commands, renames, mappings, host copies, and reuse of
//! storage.

mod sets;

use std::ops::Range;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::{Backing, CommandUse, Fate, Refusal, WriterId, exchange};
use crate::gate::Gate;
use crate::ids::Access::{self, Read, Write};
use crate::ids::ResourceId;
use crate::journal::Journal;
use crate::loom_tests::{Stored, TestContext, wait_until};
use crate::mappings::UseOrigin;
use crate::memory::spares::{Bytes, SparePool, Spares};
use crate::serial::MustPrecede;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::valid::Valid;

pub(super) type Held = Mutex<Backing<Stored>>;

pub(super) fn held(valid: Range<u64>) -> Arc<Held> {
    let mut backing = Backing::new(Stored::new());
    backing.add(valid);
    Arc::new(Mutex::new(backing))
}

pub(super) fn object(resource: &Held) -> Arc<Stored> {
    Arc::clone(resource.lock().storage().expect("it is not destroyed"))
}

pub(super) fn enter(
    backing: &mut Backing<Stored>,
    object: &Arc<Stored>,
    context: &TestContext,
    (range, access): (&Range<u64>, Access),
    gate: &Gate,
) -> Result<super::backing::Entered, Refusal<crate::loom_tests::TestSubmission>> {
    let (clock, writer) = (&context.clock, WriterId(context.clock.id(), 1, 1));
    backing.enter(object, CommandUse { clock, serial: 1, range, access, origin: UseOrigin::Command, writer, gate })
}

/// Records a command that uses a resource in the context's first batch, as `ContextInner::record` and `Batch::enter`
/// do. Returns the object that it uses, or `None` if the resource is mapped.
fn record(
    resource: &Held,
    gate: &Gate,
    context: &TestContext,
    range: Range<u64>,
    access: Access,
) -> Option<Arc<Stored>> {
    loop {
        let state = resource.lock();
        if state.mappings.forbid_commands() {
            return None;
        }
        let object = Arc::clone(state.storage().expect("it is not destroyed"));
        drop(state);
        let mut state = resource.lock();
        match enter(&mut state, &object, context, (&range, access), gate) {
            Ok(_) => return Some(object),
            Err(Refusal::Again) => {}
            Err(Refusal::Copying(seen, _)) => {
                drop(state);
                gate.wait(seen);
            }
            Err(Refusal::MustPrecede(MustPrecede::Done(point))) => {
                drop(state);
                wait_until(|| point.clock.retired() >= point.serial);
            }
            Err(Refusal::Error(error)) => panic!("{error}"),
            Err(Refusal::MustPrecede(MustPrecede::Submitted(point))) => {
                drop(state);
                wait_until(|| point.clock.submitted() >= point.serial);
            }
        }
    }
}

/// Waits for the batches that conflict with the access.
fn wait_for(object: &Stored, access: Access) {
    for point in object.usage.conflicting(access) {
        wait_until(|| point.clock.retired() >= point.serial);
    }
}

/// Submits, runs and retires the batch.
pub(super) fn run(context: &TestContext, object: &Stored) {
    context.submit(1);
    object.run();
    context.retire(1);
}

#[test]
fn what_a_command_writes_is_not_lost_by_a_rename() {
    loom::model(|| {
        let (resource, context) = (held(0..8), TestContext::new(1));
        // The object is in use by the batch in which the command is recorded.
        assert!(record(&resource, &Gate::default(), &context, 0..8, Write).is_some());
        let command = thread::spawn({
            let resource = Arc::clone(&resource);
            move || record(&resource, &Gate::default(), &context, 8..16, Write).expect("it is not mapped")
        });
        // `ContextInner::upload` of the first bytes: a rename, if only they are valid.
        let mut state = resource.lock();
        if state.valid().lies_in(&(0..8)) && state.fate() == Fate::InUse {
            exchange((ResourceId(1), &mut state), (Stored::new(), Valid::new()), &Journal::new(), &mut 0);
        }
        drop(state);
        let written = command.join().unwrap();
        assert!(Arc::ptr_eq(&object(&resource), &written), "the command wrote to a replaced object");
        assert!(resource.lock().valid().contains(&(8..16)));
    });
}

/// A description that changes with the object: the size, which is read without the resource's lock.
#[test]
fn a_command_uses_an_object_of_the_size_that_it_was_checked_against() {
    loom::model(|| {
        let (resource, context) = (held(0..8), TestContext::new(1));
        let first = object(&resource);
        let size = Arc::new(AtomicU64::new(8));
        let command = thread::spawn({
            let (resource, size, first) = (Arc::clone(&resource), Arc::clone(&size), Arc::clone(&first));
            move || {
                // The check of the call, without a lock: any size that the resource has about now.
                if size.load(Ordering::Relaxed) < 8 {
                    return None;
                }
                loop {
                    // As the calls that record: the object is looked up, and the range is checked against its size.
                    let object = object(&resource);
                    let bytes = if Arc::ptr_eq(&object, &first) { 8 } else { 4 };
                    if bytes < 8 {
                        return None;
                    }
                    let entered = enter(&mut resource.lock(), &object, &context, (&(0..8), Write), &Gate::default());
                    if entered.is_ok() {
                        return Some(object);
                    }
                }
            }
        });
        // `replace::respecify`.
        let mut state = resource.lock();
        size.store(4, Ordering::Relaxed);
        exchange((ResourceId(1), &mut state), (Stored::new(), Valid::new()), &Journal::new(), &mut 0);
        drop(state);
        let used = command.join().unwrap();
        assert!(used.is_none_or(|object| Arc::ptr_eq(&object, &first)), "bytes outside of the new object are used");
        assert!(!resource.lock().valid().intersects(&(4..8)), "bytes outside of the object count as valid");
        assert_eq!(size.load(Ordering::Relaxed), 4);
    });
}

#[test]
fn a_dispatch_uses_what_its_resources_were_at_one_moment() {
    loom::model(|| {
        let (x, y) = (held(0..8), held(0..8));
        let journal = Arc::new(Journal::new());
        [&x, &y].into_iter().for_each(|resource| resource.lock().bound = true);
        let context = TestContext::new(1);
        // An earlier dispatch of the batch entered the first resource; the second is new in its slot.
        let mut slots = [object(&x), object(&y)];
        assert!(enter(&mut x.lock(), &slots[0], &context, (&(0..8), Read), &Gate::default()).is_ok());
        // Another thread gives new contents to the first resource, and then to the second.
        let other = thread::spawn({
            let (x, y, journal) = (Arc::clone(&x), Arc::clone(&y), Arc::clone(&journal));
            move || {
                let mut seen = 0;
                exchange((ResourceId(1), &mut x.lock()), (Stored::new(), Valid::new()), &journal, &mut seen);
                // In place, since the object is idle.
                let mut state = y.lock();
                if !state.is_busy() {
                    let number = state.begin(0..8);
                    state.end(number);
                    drop(state);
                    return true;
                }
                false
            }
        });
        // `ContextState::dispatch`, in the loop of `ContextInner::record`.
        let (first, mut seen, mut entered) = (Arc::clone(&slots[0]), 0, false);
        loop {
            if journal.count() != seen {
                (seen, _) = journal.since(seen);
                slots[0] = object(&x);
            }
            if enter(&mut x.lock(), &slots[0], &context, (&(0..8), Read), &Gate::default()).is_err()
                && !Arc::ptr_eq(&slots[0], &first)
            {
                continue;
            }
            entered |= enter(&mut y.lock(), &slots[1], &context, (&(0..8), Read), &Gate::default()).is_ok();
            if journal.count() == seen {
                break;
            }
        }
        let written_before = other.join().unwrap();
        assert!(entered);
        let is_old = Arc::ptr_eq(&slots[0], &first);
        assert!(!(is_old && written_before), "it uses the second resource as of a time after the first was replaced");
    });
}

#[test]
fn mappings_and_commands_never_overlap() {
    loom::model(|| {
        let (resource, context) = (held(0..8), TestContext::new(1));
        let command = thread::spawn({
            let resource = Arc::clone(&resource);
            move || {
                if let Some(object) = record(&resource, &Gate::default(), &context, 0..8, Write) {
                    run(&context, &object);
                }
            }
        });
        // `Mapped::new` for writing in place, `Mapped::write`, and the end of the mapping.
        let mut state = resource.lock();
        let number = state.mappings.add(0..8, false);
        let object = Arc::clone(state.storage().expect("it is not destroyed"));
        drop(state);
        wait_for(&object, Write);
        object.run();
        assert!(resource.lock().mappings.remove(number));
        command.join().unwrap();
    });
}

#[test]
fn commands_and_the_hosts_copies_never_meet() {
    loom::model(|| {
        let (resource, context, gate) = (held(0..8), TestContext::new(1), Arc::new(Gate::default()));
        let command = thread::spawn({
            let (resource, gate) = (Arc::clone(&resource), Arc::clone(&gate));
            move || {
                let object = record(&resource, &gate, &context, 0..8, Write).expect("it is not mapped");
                run(&context, &object);
            }
        });
        // `ContextInner::upload` in place, after a wait if the object is in use.
        let mut state = resource.lock();
        let object = Arc::clone(state.storage().expect("it is not destroyed"));
        let number = state.begin(0..8);
        drop(state);
        wait_for(&object, Write);
        object.run();
        resource.lock().end(number);
        gate.end();
        command.join().unwrap();
    });
}

#[test]
fn commands_and_the_hosts_reads_never_meet() {
    loom::model(|| {
        let (resource, context, gate) = (held(0..8), TestContext::new(1), Arc::new(Gate::default()));
        let command = thread::spawn({
            let (resource, gate) = (Arc::clone(&resource), Arc::clone(&gate));
            move || {
                let object = record(&resource, &gate, &context, 0..8, Write).expect("it is not mapped");
                run(&context, &object);
            }
        });
        // `ContextInner::for_reading`: the first wait is made without a note, the second after the read is noted.
        let mut waited = false;
        let (object, number, busy) = loop {
            let mut state = resource.lock();
            let object = Arc::clone(state.storage().expect("it is not destroyed"));
            let busy = object.usage.is_busy(Read);
            if !busy || waited {
                break (object, state.begin_read(0..8), busy);
            }
            drop(state);
            wait_for(&object, Read);
            waited = true;
        };
        if busy {
            wait_for(&object, Read);
        }
        object.run();
        resource.lock().end(number);
        gate.end();
        command.join().unwrap();
    });
}

#[test]
fn the_hosts_reads_and_writes_never_meet() {
    loom::model(|| {
        let (resource, gate) = (held(0..8), Arc::new(Gate::default()));
        let copy = |access: Access| {
            let (resource, gate) = (Arc::clone(&resource), Arc::clone(&gate));
            move || loop {
                let mut state = resource.lock();
                if state.is_copied(&(0..8), access) {
                    let seen = gate.count();
                    drop(state);
                    gate.wait(seen);
                    continue;
                }
                let number = if access.writes() { state.begin(0..8) } else { state.begin_read(0..8) };
                drop(state);
                object(&resource).run();
                resource.lock().end(number);
                gate.end();
                break;
            }
        };
        let writer = thread::spawn(copy(Write));
        copy(Read)();
        writer.join().unwrap();
    });
}

#[test]
fn a_refused_command_takes_back_only_its_own_ranges() {
    loom::model(|| {
        let (resource, context) = (held(0..0), TestContext::new(1));
        // A persistent mapping is written, or the resource is bound where kernels can write: neither waits.
        let other = thread::spawn({
            let resource = Arc::clone(&resource);
            move || resource.lock().add(4..12)
        });
        // The driver refuses a command: the ranges that it would have written are as valid as before.
        let object = object(&resource);
        let entered = enter(&mut resource.lock(), &object, &context, (&(0..8), Write), &Gate::default());
        let entered = entered.unwrap_or_else(|_| panic!("no batch conflicts"));
        resource.lock().take_back(entered.added.expect("some of it was not valid"));
        other.join().unwrap();
        assert!(resource.lock().valid().contains(&(4..12)), "the other thread's range is not valid any more");
    });
}

#[test]
fn writes_to_ranges_forgotten_in_use_come_after_their_users() {
    loom::model(|| {
        let (resource, reader) = (held(0..8), Arc::new(TestContext::new(1)));
        let used = record(&resource, &Gate::default(), &reader, 0..4, Read).expect("it is not mapped");
        reader.submit(1);
        let queue = thread::spawn({
            let reader = Arc::clone(&reader);
            move || {
                used.run();
                reader.retire(1);
            }
        });
        // `invalidate_part` of a small part, then a command of another context that writes it.
        resource.lock().forget_in_use(0..4);
        assert!(!resource.lock().valid().intersects(&(0..4)));
        let context = TestContext::new(2);
        let object = record(&resource, &Gate::default(), &context, 0..4, Write).expect("it is not mapped");
        run(&context, &object);
        queue.join().unwrap();
    });
}

/// Storage, reduced to its bytes.
#[derive(Clone)]
struct Piece(Arc<UnsafeCell<u32>>);

impl Piece {
    fn run(&self) {
        self.0.with_mut(|_| ());
    }
}

impl Bytes for Piece {
    fn bytes(&self) -> u64 {
        1
    }
}

/// A replaced object: when the last handle is dropped its storage is spare, as with `ResourceObject`.
struct Left(Piece, Spares<Piece>);

impl Drop for Left {
    fn drop(&mut self) {
        self.1.give(self.0.clone());
    }
}

#[test]
fn storage_is_used_again_after_its_last_batch() {
    loom::model(|| {
        let (context, spares) = (Arc::new(TestContext::new(1)), Spares::new(&SparePool::new(8)));
        let piece = Piece(Arc::new(UnsafeCell::new(0)));
        let batch = Left(piece.clone(), spares.clone());
        context.submit(1);
        let queue = thread::spawn({
            let context = Arc::clone(&context);
            move || {
                piece.run();
                context.retire(1);
            }
        });
        // Two threads rename: one first drops the objects of its retired batches, the other takes a spare if there is
        // one.
        let other = thread::spawn({
            let spares = spares.clone();
            move || spares.take().inspect(Piece::run).is_some()
        });
        let mut batch = Some(batch);
        if context.clock.retired() >= 1 {
            batch = None;
        }
        let here = spares.take().inspect(Piece::run).is_some();
        let there = other.join().unwrap();
        assert!(!(here && there), "two have the same storage");
        assert!(batch.is_none() || !(here || there), "storage of a batch that has not retired was given away");
        queue.join().unwrap();
        drop(batch);
    });
}

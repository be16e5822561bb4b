//! What the standard library's locks do not do: they work after a panic, and a notification asks first whether a thread
//! waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

#[test]
fn a_panic_of_a_holder_leaves_the_locks_usable() {
    let (mutex, lock) = (Mutex::new(1), RwLock::new(2));
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let (_held, _written) = (mutex.lock(), lock.write());
        panic!("expected: a holder panics");
    }));
    assert!(panics.is_err());
    assert_eq!((*mutex.lock(), *lock.read()), (1, 2));
    assert_eq!(*lock.write(), 2);
    assert_eq!(mutex.try_lock().as_deref(), Some(&1));
    assert_eq!(lock.try_read().as_deref(), Some(&2));
    assert_eq!(lock.try_write().as_deref(), Some(&2));
    assert_eq!(mutex.into_inner(), 1);
}

#[test]
fn a_lock_that_is_held_is_not_taken_twice() {
    let (mutex, lock) = (Mutex::new(()), RwLock::new(()));
    let (held, read) = (mutex.lock(), lock.read());
    assert!(mutex.try_lock().is_none());
    assert!(lock.try_read().is_some() && lock.try_write().is_none());
    let limit = Duration::from_millis(3);
    assert!(mutex.try_lock_for(limit).is_none() && lock.try_write_for(limit).is_none());
    assert!(lock.try_read_for(limit).is_some());
    drop((held, read));
    assert!(mutex.try_lock().is_some() && lock.try_write().is_some());
}

#[test]
fn a_wait_ends_by_its_time() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let start = Instant::now();
    let limit = Duration::from_millis(5);
    while !condvar.wait_for(mutex.lock(), limit).1 {}
    assert!(start.elapsed() >= limit);
    while !condvar.wait_until(mutex.lock(), Some(start)).1 {}
}

/// Two threads hand a number back and forth: a notification that is lost hangs this.
#[test]
fn no_notification_is_lost() {
    const STEPS: u32 = 20_000;
    let (number, changed, waits) = (Mutex::new(0_u32), Condvar::new(), AtomicU32::new(0));
    let side = |parity: u32| {
        let mut guard = number.lock();
        while *guard < STEPS {
            if *guard % 2 == parity {
                *guard += 1;
                // Every other time after the lock.
                if *guard % 4 < 2 {
                    changed.notify_all();
                } else {
                    drop(guard);
                    changed.notify_one();
                    guard = number.lock();
                }
            } else {
                // Relaxed: a count.
                waits.fetch_add(1, Ordering::Relaxed);
                guard = changed.wait(guard);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| side(0));
        scope.spawn(|| side(1));
    });
    assert_eq!(*number.lock(), STEPS);
    assert!(waits.into_inner() > 0, "no thread waited");
}

#[test]
fn a_value_is_computed_by_threads_that_do_not_wait_for_each_other() {
    static VALUE: Computed<u32> = Computed::new();
    assert_eq!(VALUE.get(), None);
    // Another thread computes it meanwhile, and is not waited for.
    let value = VALUE.get_or_compute(|| {
        thread::spawn(|| assert_eq!(VALUE.get_or_compute(|| 1), &1)).join().unwrap();
        2
    });
    assert_eq!((value, VALUE.get(), VALUE.set(3)), (&1, Some(&1), Err(&1)));
}

#[test]
fn a_process_has_one_number_and_one_state() {
    static STATE: PerProcess<Mutex<Vec<u32>>> = PerProcess::new(Mutex::default);
    assert!(STATE.existing().is_none());
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|at| scope.spawn(move || STATE.get().lock().push(at))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        STATE.existing().unwrap().lock().len()
    });
    assert_eq!(all, 8);
    let id = ProcessId::current();
    assert!(id.is_current() && thread::spawn(move || id.is_current()).join().unwrap());
}

#[test]
fn a_forked_process_takes_over_what_no_thread_was_changing() {
    let (mutex, lock) = (Mutex::new(vec![1]), RwLock::new(vec![2]));
    {
        let (_held, _read) = (mutex.lock(), lock.read());
        assert_eq!(*mutex.inherit().lock(), []);
        assert_eq!(*lock.inherit().read(), [2], "a copy");
    }
    {
        let _written = lock.write();
        assert_eq!(*lock.inherit().read(), []);
    }
    assert_eq!((&*mutex.inherit().lock(), &*lock.inherit().read()), (&vec![1], &vec![2]));
    assert!(mutex.lock().is_empty() && lock.read().is_empty(), "it is moved, so what is in it can be dropped");
}

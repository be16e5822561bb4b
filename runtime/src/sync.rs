//! Locks and atomics of the protocols between contexts: the real ones, or loom's under `cfg(loom)`.
//!
//! `serial.rs`, `journal.rs`, `gate.rs`, `events.rs`, `callbacks.rs`, `holds.rs`, `recordings.rs`,
//! `commands/current.rs` and `memory/spares.rs` use these, so that loom explores the code that runs in production;
//! `replace/backing.rs` and `set/place.rs` run under their caller's lock.

#[cfg(not(loom))]
mod primitive {
    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(parking_lot::Condvar);

    impl Condvar {
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }

        /// Like `wait`, for at most this time; also returns whether it was woken before.
        pub(crate) fn wait_for<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            limit: std::time::Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            let result = self.0.wait_for(&mut guard, limit);
            (guard, !result.timed_out())
        }
    }
}

#[cfg(loom)]
mod primitive {
    //! Loom's lock in the shape of `parking_lot`'s.

    pub(crate) use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no holder panics")
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).expect("no holder panics")
        }

        /// In a model no time passes.
        pub(crate) fn wait_for<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _: std::time::Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            (self.wait(guard), true)
        }
    }
}

pub(crate) use primitive::*;

//! Locks and atomics of the protocols between contexts: the machine's, or loom's under `cfg(loom)`.
//!
//! `serial.rs` and `journal.rs` take theirs from here, so that loom explores the code that runs.

#[cfg(not(loom))]
mod primitive {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}

#[cfg(loom)]
mod primitive {
    //! Loom's lock in the shape of `parking_lot`'s.

    pub(crate) use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

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
}

pub(crate) use primitive::*;

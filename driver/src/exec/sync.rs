//! The primitives of every protocol in this folder: the real ones, or loom's under `cfg(loom)`.
//!
//! `exec/` and `sync/` take all locks and atomics from here, so that loom explores the code that runs. (One exception:
//! the stop flag, which kernels read as a `std` atomic. The loss sets it before it takes the lock under which a sleeper
//! tests it.)

#[cfg(not(loom))]
mod primitive {
    pub(crate) use parking_lot::{Condvar, Mutex};
    pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
}

#[cfg(loom)]
mod primitive {
    //! Loom's locks with the interface of `parking_lot`.

    use std::ops::{Deref, DerefMut};
    use std::time::{Duration, Instant};

    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(self.0.lock().ok())
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("held")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("held")
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    pub(crate) struct WaitTimeoutResult;

    impl WaitTimeoutResult {
        pub(crate) fn timed_out(&self) -> bool {
            false
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("held");
            guard.0 = self.0.wait(held).ok();
        }

        /// Time stands still in a model: this waits for a notification.
        pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, _deadline: Instant) -> WaitTimeoutResult {
            self.wait(guard);
            WaitTimeoutResult
        }

        /// As [`Condvar::wait_until`].
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: Duration) -> WaitTimeoutResult {
            self.wait(guard);
            WaitTimeoutResult
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

pub(crate) use primitive::*;

/// Spins until `done`, for about `limit` at most; returns whether it is done. In a model it tests once.
#[cfg(not(loom))]
pub(crate) fn spin_until(limit: std::time::Duration, mut done: impl FnMut() -> bool) -> bool {
    if done() {
        return true;
    }
    let start = std::time::Instant::now();
    loop {
        for _ in 0..16 {
            std::hint::spin_loop();
            if done() {
                return true;
            }
        }
        if start.elapsed() >= limit {
            return false;
        }
    }
}

/// Spins until `done`, for about `limit` at most; returns whether it is done. In a model it tests once.
#[cfg(loom)]
pub(crate) fn spin_until(_limit: std::time::Duration, mut done: impl FnMut() -> bool) -> bool {
    done()
}

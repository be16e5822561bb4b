//! The locks of the standard library without poisoning, and loom's in the same form; state that every process has for
//! itself.
//!
//! The driver runs in processes that fork. On Linux a lock of `std` is a word of its own (a futex), so that a forked
//! process can use a lock that it made whatever the parent's threads did at the fork. Locks with a global table of
//! sleeping threads, as those of `parking_lot`, cannot be used there: the child's copy of the table has the parent's
//! threads, which the child does not have, and a lock of the table itself may be held for ever.
//!
//! What a process has in statics its forked processes get copies of, with locks that are perhaps never given back. So a
//! lock in a static is in a [`PerProcess`], and a value that is computed once is a [`Computed`], not a `OnceLock`.
//!
//! A panic of a holder does not poison: state under these locks is valid between any two statements that may panic.

#[cfg(not(target_os = "linux"))]
compile_error!("Spelter does not run on this system: it runs on Linux on x86-64, and compiles for Linux on 64-bit ARM");

mod attempt;
mod define;
mod per_process;
mod process;
mod published;
mod rw_lock;

pub use per_process::PerProcess;
pub use process::ProcessId;
pub use published::Computed;
pub use rw_lock::RwLock;
pub use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

mod real {
    use std::sync;
    crate::define::define_locks!(sync, const);
}

pub use real::{Condvar, Mutex};

impl<T> Mutex<T> {
    /// Waits for the lock for about this time at most.
    pub fn try_lock_for(&self, limit: std::time::Duration) -> Option<MutexGuard<'_, T>> {
        attempt::until(limit, || self.try_lock())
    }
}

/// The same for models that loom explores. What a model does not explore keeps the real locks.
#[cfg(loom)]
pub mod model {
    use loom::sync;
    crate::define::define_locks!(sync);

    pub use loom::sync::MutexGuard;
}

#[cfg(test)]
mod tests;

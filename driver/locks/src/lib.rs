//! The locks of the standard library without poisoning, and loom's in the same form.
//!
//! The driver runs in processes that fork. A lock of `std` is its own word (a futex), so that a forked process can use
//! a lock of its own whatever the parent's threads did at the fork. Locks with a global table of sleeping threads, as
//! those of `parking_lot` have, cannot be used there: the table is copied with the parent's threads, which the child
//! does not have, and a lock of the table itself may be held for ever.
//!
//! A panic of a holder does not poison: state under these locks is valid between any two statements that may panic.

mod define;
mod poll;
mod rw_lock;

pub use rw_lock::RwLock;
pub use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

mod real {
    use std::sync;
    crate::define::define_locks!(sync, const);
}

pub use real::{Condvar, Mutex};

/// The same for models that loom explores. What a model does not explore keeps the real locks.
#[cfg(loom)]
pub mod model {
    use loom::sync;
    crate::define::define_locks!(sync);

    pub use loom::sync::MutexGuard;
}

#[cfg(test)]
mod tests;

//! The primitives of every protocol of `exec/` and of this folder: the real ones, or loom's under `cfg(loom)`.
//!
//! Both take all locks and atomics from here, so that loom explores the code that runs. (One exception:
//! the stop flag, which kernels read as a `std` atomic. The loss sets it before it takes the lock under which a sleeper
//! tests it.)

#[cfg(not(loom))]
mod primitive {
    pub(crate) use spelter_locks::{Condvar, Mutex};
    pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
}

#[cfg(loom)]
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use spelter_locks::model::{Condvar, Mutex};
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

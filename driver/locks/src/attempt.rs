//! Attempts to take a lock: without poisoning, and for a time, for which the standard library has no method.

use std::sync::{TryLockError, TryLockResult};
use std::time::{Duration, Instant};

/// The guard of an attempt, unless another thread has the lock.
pub(crate) fn taken<G>(attempt: TryLockResult<G>) -> Option<G> {
    match attempt {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Tries until it succeeds, at least once, for about this time at most.
pub(crate) fn until<G>(limit: Duration, attempt: impl Fn() -> Option<G>) -> Option<G> {
    let start = Instant::now();
    loop {
        let taken = attempt();
        if taken.is_some() || start.elapsed() >= limit {
            return taken;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

//! Waiting for a lock for a time: the locks of the standard library have no such method.

use std::time::{Duration, Instant};

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

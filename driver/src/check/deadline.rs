//! Runs a kernel that may not end: its stop flag is set when a time has passed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spelter_locks::{Condvar, Mutex};

/// Runs something that ends soon when `stop` is set, which it is after so much time. `None` if the system has no thread
/// for that.
pub(super) fn within<T>(time: Duration, stop: &AtomicU32, run: impl FnOnce() -> T) -> Option<T> {
    let (is_over, over) = (Mutex::new(false), Condvar::new());
    let wait = || {
        let deadline = Instant::now().checked_add(time);
        let mut is_over = is_over.lock();
        let mut is_late = false;
        while !*is_over && !is_late {
            (is_over, is_late) = over.wait_until(is_over, deadline);
        }
        if !*is_over {
            // Relaxed: the flag orders no other memory.
            stop.store(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        thread::Builder::new().name("spelter-deadline".to_owned()).spawn_scoped(scope, wait).ok()?;
        let result = run();
        *is_over.lock() = true;
        over.notify_all();
        Some(result)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_the_flag_ends_and_what_does_not_is_not_delayed() {
        let stop = AtomicU32::new(0);
        let wait = || {
            while stop.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            7
        };
        assert_eq!(within(Duration::from_millis(1), &stop, wait), Some(7));
        // An hour that is not waited for.
        let other = AtomicU32::new(0);
        assert_eq!(within(Duration::from_secs(3600), &other, || 8), Some(8));
        assert_eq!(other.load(Ordering::Relaxed), 0);
    }
}

//! Ends what runs for too long: replays of a dispatch, which may have no end.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spelter_locks::{Condvar, Mutex};

/// How often a thread that waits looks at the flag of the device.
const PERIOD: Duration = Duration::from_millis(10);

/// Runs something, and calls `late` when it has run for so long, or when the device stops. `None`, and nothing has run,
/// if the system has no thread that waits.
pub(super) fn within<T>(
    time: Duration,
    device: &AtomicU32,
    late: impl FnOnce() + Send,
    run: impl FnOnce() -> T,
) -> Option<T> {
    let (is_over, over) = (Mutex::new(false), Condvar::new());
    let wait = || {
        let deadline = Instant::now().checked_add(time);
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut is_over = is_over.lock();
        // Relaxed: the flag orders no other memory.
        while !*is_over && !is_late() && device.load(Ordering::Relaxed) == 0 {
            let next = Instant::now().checked_add(PERIOD);
            (is_over, _) = over.wait_until(is_over, deadline.into_iter().chain(next).min());
        }
        if !*is_over {
            late();
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
        let (stop, device) = (AtomicU32::new(0), AtomicU32::new(0));
        let late = || stop.store(1, Ordering::Relaxed);
        let wait = || {
            while stop.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            7
        };
        assert_eq!(within(Duration::from_millis(1), &device, late, wait), Some(7));
        // An hour that is not waited for.
        stop.store(0, Ordering::Relaxed);
        assert_eq!(within(Duration::from_secs(3600), &device, late, || 8), Some(8));
        assert_eq!(stop.load(Ordering::Relaxed), 0);
        // The device stops.
        device.store(1, Ordering::Relaxed);
        assert_eq!(within(Duration::from_secs(3600), &device, late, wait), Some(7));
    }
}

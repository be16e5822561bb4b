//! Ends commands that run longer than the time limit.
//!
//! Phases and commands are counted when they start (`progress.rs`), which reads no clock; the watchdog checks the
//! counts periodically. If they have not moved while one thread worked for the time limit (`cpu_time.rs`), the command
//! overran. While nothing runs the watchdog sleeps: the first conductor wakes it, the others see with one load that it
//! is awake.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::TimeLimit;
use super::cpu_time::Worked;
use super::progress::ProgressSnapshot;
use super::queue::QueueState;
use super::shared::Shared;
use crate::sync::primitives::{AtomicUsize, Condvar, Mutex, Ordering, fence};

/// Checks per time limit: an overrun is detected at most two periods too late.
const CHECKS_PER_LIMIT: u32 = 16;
/// Checks without a conductor after which the watchdog sleeps.
const PATIENCE: u32 = 2;

/// The thread does not exist yet, or it sleeps.
const ASLEEP: usize = 0;
const AWAKE: usize = 1;

/// Whether the watchdog has to be awake. See README.md, "watchdog's nap".
#[derive(Debug)]
pub(super) struct Nap {
    /// Number of conductors at work.
    active: AtomicUsize,
    state: AtomicUsize,
    sleep: Mutex<Sleep>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Sleep {
    started: bool,
    closing: bool,
}

impl Nap {
    pub(super) fn new() -> Self {
        Self {
            active: AtomicUsize::new(0),
            state: AtomicUsize::new(ASLEEP),
            sleep: Mutex::new(Sleep::default()),
            wake: Condvar::new(),
        }
    }

    /// A conductor starts. Returns whether the caller has to start the watchdog's thread.
    pub(super) fn begin(&self) -> bool {
        self.active.fetch_add(1, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `doze`. Either this load sees ASLEEP, or `doze` sees the conductor.
        fence(Ordering::SeqCst);
        self.state.load(Ordering::Relaxed) == ASLEEP && self.rouse()
    }

    /// A conductor ends.
    pub(super) fn end(&self) {
        // Relaxed: nothing is published; seeing it late costs one more check.
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    #[cold]
    fn rouse(&self) -> bool {
        let mut sleep = self.sleep.lock();
        // Relaxed: under the lock, as is the test in `doze`.
        self.state.store(AWAKE, Ordering::Relaxed);
        self.wake.notify_all();
        !std::mem::replace(&mut sleep.started, true)
    }

    /// Whether a conductor is at work.
    pub(super) fn is_active(&self) -> bool {
        // Relaxed: a conductor seen late is seen at the next check.
        self.active.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until a conductor starts; returns at once if there is one. For the watchdog.
    pub(super) fn doze(&self) {
        let mut sleep = self.sleep.lock();
        self.state.store(ASLEEP, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `begin`.
        fence(Ordering::SeqCst);
        while !sleep.closing && !self.is_active() && self.state.load(Ordering::Relaxed) == ASLEEP {
            sleep = self.wake.wait(sleep);
        }
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Waits for the next check. Returns whether the executor is closing and nothing runs, so that the watchdog ends.
    fn pause(&self, period: Duration) -> bool {
        let mut sleep = self.sleep.lock();
        if !sleep.closing {
            (sleep, _) = self.wake.wait_for(sleep, period);
        } else if self.is_active() {
            drop(sleep);
            std::thread::sleep(period.min(Duration::from_millis(1)));
            return false;
        }
        sleep.closing && !self.is_active()
    }

    /// Lets the watchdog end when nothing runs.
    pub(super) fn close(&self) {
        self.sleep.lock().closing = true;
        self.wake.notify_all();
    }

    /// The thread could not be started: the next conductor tries again.
    pub(super) fn start_failed(&self) {
        let mut sleep = self.sleep.lock();
        sleep.started = false;
        self.state.store(ASLEEP, Ordering::Relaxed);
    }
}

/// A queue at the watchdog's latest check.
struct WatchedQueue {
    queue: Weak<QueueState>,
    mark: ProgressSnapshot,
    /// CPU time of its threads since that mark.
    worked: Worked,
}

/// The main loop of the watchdog.
pub(super) fn watch(shared: &Shared) {
    let limit = shared.time_limit();
    let period = (limit.limit / CHECKS_PER_LIMIT).clamp(Duration::from_millis(1), Duration::from_secs(1));
    let mut seen = Vec::new();
    let mut idle = 0;
    let mut last = Instant::now();
    while !shared.nap().pause(period) {
        let slice = last.elapsed();
        last += slice;
        if shared.nap().is_active() {
            idle = 0;
            // A pause that took longer than two periods was no work of the kernel: the process was stopped, or the
            // machine slept.
            check(shared, &mut seen, limit, (slice, 2 * period));
        } else if idle < PATIENCE {
            idle += 1;
        } else {
            seen.clear();
            shared.nap().doze();
        }
    }
}

/// Checks all queues, `slice` after the latest check. One check counts for at most `max_slice`.
fn check(
    shared: &Shared,
    seen: &mut Vec<WatchedQueue>,
    TimeLimit { limit, set_by }: TimeLimit,
    (slice, max_slice): (Duration, Duration),
) {
    if shared.log.as_ref().is_some_and(|log| log.is_examining()) {
        // What kernels did until now is over.
        seen.clear();
        return;
    }
    let queues = shared.queues();
    seen.retain(|seen| seen.queue.strong_count() > 0);
    for queue in queues {
        let mark = queue.mark();
        let Some(last) = seen.iter_mut().find(|seen| std::ptr::eq(seen.queue.as_ptr(), Arc::as_ptr(&queue))) else {
            seen.push(WatchedQueue { queue: Arc::downgrade(&queue), mark, worked: Worked::default() });
            continue;
        };
        if last.mark != mark {
            last.mark = mark;
            last.worked.restart();
        } else if mark.is_running() && last.worked.sample(&queue.threads(), slice, max_slice) >= limit {
            let what = queue.running();
            queue.blame();
            shared.lose(format!("{what} ran longer than the time limit of {limit:?}, which {set_by} sets"));
        }
    }
}

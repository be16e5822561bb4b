//! Waits of a host thread for several fences or semaphore values.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Loss;
use super::primitives::{Condvar, Mutex, spin_until};
use super::wake::{Helper, Wake};
use crate::error::DeviceError;

/// How long a waiter spins before it sleeps.
pub(crate) const WAIT_SPIN: Duration = Duration::from_micros(20);

/// A condition that, once it holds, continues to hold.
pub(crate) trait Awaited {
    /// Whether it holds.
    fn is_done(&self) -> bool;

    /// The queue that will make it hold, if that is known.
    fn settling_queue(&self) -> Option<Arc<dyn Helper>>;

    /// Registers a waiter, to be woken when it holds; does nothing if it holds already.
    fn watch(&self, waiter: &Arc<dyn Wake>);

    /// Removes a waiter.
    fn forget(&self, waiter: &Arc<dyn Wake>);
}

/// How many of the conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// All of them (`waitAll`).
    All,
    /// At least one.
    Any,
}

/// Waits for conditions; `false` if the timeout expired first. Without a timeout the thread meanwhile works on the
/// queues. [`DeviceError::DeviceLost`] if the device is lost and the conditions do not hold.
pub(crate) fn wait(
    conditions: &[impl Awaited],
    until: Until,
    timeout: Option<Duration>,
    loss: &Loss,
) -> Result<bool, DeviceError> {
    let done = || match until {
        Until::All => conditions.iter().all(Awaited::is_done),
        Until::Any => conditions.iter().any(Awaited::is_done),
    };
    if done() {
        return Ok(true);
    }
    loss.check_not_forked()?;
    let worked = timeout.is_none() && work(conditions, &done);
    if worked || spin_until(timeout.unwrap_or(WAIT_SPIN).min(WAIT_SPIN), done) {
        return Ok(true);
    }
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let sleeper = Arc::new(Sleeper::default());
    let waiter = Arc::clone(&sleeper) as Arc<dyn Wake>;
    conditions.iter().for_each(|condition| condition.watch(&waiter));
    loss.watch(&waiter);
    // The sleeper is registered everywhere before it tests, so a change after the test wakes it.
    while !done() && !loss.is_lost() && sleeper.sleep(deadline) {}
    conditions.iter().for_each(|condition| condition.forget(&waiter));
    loss.forget(&waiter);
    if done() { Ok(true) } else { loss.check().map(|()| false) }
}

/// Works on the queues that will make the conditions hold. Returns `done()`.
fn work(conditions: &[impl Awaited], done: &dyn Fn() -> bool) -> bool {
    let open = conditions.iter().filter(|condition| !condition.is_done());
    open.filter_map(Awaited::settling_queue).any(|queue| queue.help(done)) || done()
}

/// A thread that sleeps until it is woken.
#[derive(Debug, Default)]
struct Sleeper {
    woken: Mutex<bool>,
    called: Condvar,
}

impl Sleeper {
    /// Sleeps until a wake-up that came after the previous sleep; `false` if the deadline passed first.
    fn sleep(&self, deadline: Option<Instant>) -> bool {
        let mut woken = self.woken.lock();
        while !*woken {
            let is_over;
            (woken, is_over) = self.called.wait_until(woken, deadline);
            if is_over {
                return *woken;
            }
        }
        *woken = false;
        true
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        // Under the lock, so that the sleeper has either not tested yet or is asleep.
        *self.woken.lock() = true;
        self.called.notify_all();
    }
}

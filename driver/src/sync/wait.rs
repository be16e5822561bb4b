//! A host thread that waits for several things: fences, or values of semaphores.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::wake::Wake;
use crate::error::DeviceError;
use crate::exec::sync::{Condvar, Mutex, spin_until};
use crate::exec::{Loss, QueueState, WAIT_SPIN};

/// Something that happens, and then stays so.
pub(crate) trait Awaited {
    /// Whether it has happened.
    fn is_done(&self) -> bool;

    /// The queue that brings it about, if that is known.
    fn home(&self) -> Option<Arc<QueueState>>;

    /// Writes somebody down, to be woken when it happens; nobody if it has.
    fn watch(&self, who: &Arc<dyn Wake>);

    /// Somebody waits no more.
    fn forget(&self, who: &Arc<dyn Wake>);
}

/// How many of the things have to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Every one (`waitAll`).
    All,
    /// At least one.
    Any,
}

/// Waits; `false` if the timeout came first. Without a timeout the thread works on the queues meanwhile.
pub(crate) fn wait(
    things: &[impl Awaited],
    until: Until,
    timeout: Option<Duration>,
    loss: &Loss,
) -> Result<bool, DeviceError> {
    let done = || match until {
        Until::All => things.iter().all(Awaited::is_done),
        Until::Any => things.iter().any(Awaited::is_done),
    };
    if done() {
        return Ok(true);
    }
    loss.check_origin()?;
    let worked = timeout.is_none() && work(things, &done);
    if worked || spin_until(timeout.unwrap_or(WAIT_SPIN).min(WAIT_SPIN), done) {
        return Ok(true);
    }
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let sleeper = Arc::new(Sleeper::default());
    let who = Arc::clone(&sleeper) as Arc<dyn Wake>;
    things.iter().for_each(|thing| thing.watch(&who));
    loss.watch(&who);
    // Everybody knows of the sleeper before it looks: what happens after the look wakes it.
    while !done() && !loss.is_lost() && sleeper.sleep(deadline) {}
    things.iter().for_each(|thing| thing.forget(&who));
    loss.forget(&who);
    if done() { Ok(true) } else { loss.check().map(|()| false) }
}

/// Works on the queues that bring the things about; whether it is done.
fn work(things: &[impl Awaited], done: &dyn Fn() -> bool) -> bool {
    let open = things.iter().filter(|thing| !thing.is_done());
    open.filter_map(Awaited::home).any(|queue| queue.help(done)) || done()
}

/// A thread that sleeps until it is woken.
#[derive(Debug, Default)]
struct Sleeper {
    woken: Mutex<bool>,
    called: Condvar,
}

impl Sleeper {
    /// Sleeps until somebody called since the last sleep; `false` if the deadline came first.
    fn sleep(&self, deadline: Option<Instant>) -> bool {
        let mut woken = self.woken.lock();
        while !*woken {
            match deadline {
                None => self.called.wait(&mut woken),
                Some(deadline) if self.called.wait_until(&mut woken, deadline).timed_out() => return *woken,
                Some(_) => {}
            }
        }
        *woken = false;
        true
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        // Under the lock, so that the sleeper is before its test or asleep.
        *self.woken.lock() = true;
        self.called.notify_all();
    }
}

//! Counters: a number that queues and the host raise and wait for. Semaphores and events are made of them.

use std::sync::{Arc, Weak};

use super::wait::Awaited;
use super::wake::{Wake, Watchers};
use crate::exec::QueueState;
use crate::exec::sync::{AtomicU64, Mutex, Ordering};

/// A number with people who wait for it to become large enough.
///
/// A timeline semaphore is its value; a binary semaphore counts its signals, and each wait is for one of them; an event
/// is 1 while it is set.
#[derive(Debug)]
pub(crate) struct Counter {
    /// Written under the lock of `inner`; read without it.
    value: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    watchers: Watchers,
    /// The queue that was last asked to raise it: who waits may help it.
    home: Option<Weak<QueueState>>,
}

impl Counter {
    /// A counter with its first value.
    pub(crate) fn new(value: u64) -> Arc<Self> {
        Arc::new(Self { value: AtomicU64::new(value), inner: Mutex::default() })
    }

    /// The value now.
    pub(crate) fn value(&self) -> u64 {
        // Acquire: pairs with the Release in `change`; what came before the raise is visible.
        self.value.load(Ordering::Acquire)
    }

    /// Whether the value is so large.
    pub(crate) fn reached(&self, value: u64) -> bool {
        self.value() >= value
    }

    /// Raises the value, never lowers it, and wakes who waited for that. No lock may be held by the caller.
    pub(crate) fn raise(&self, value: u64) {
        self.change(|now| now.max(value));
    }

    /// Sets the value back (`vkResetEvent`).
    pub(crate) fn reset(&self) {
        self.change(|_| 0);
    }

    fn change(&self, to: impl FnOnce(u64) -> u64) {
        let ripe = {
            let mut inner = self.inner.lock();
            let value = to(self.value());
            // Release: pairs with the Acquire in `value`. Under the lock, so that a watcher finds it or is found.
            self.value.store(value, Ordering::Release);
            inner.watchers.take(value)
        };
        ripe.into_iter().for_each(Wake::wake);
    }

    /// Whether somebody was written down, to be woken when the value is so large. If it is so already nobody is.
    pub(crate) fn watch(&self, value: u64, who: &Arc<dyn Wake>) -> bool {
        let mut inner = self.inner.lock();
        let waits = !self.reached(value);
        if waits {
            inner.watchers.add(value, who);
        }
        waits
    }

    /// Somebody waits no more.
    pub(crate) fn forget(&self, who: &Arc<dyn Wake>) {
        self.inner.lock().watchers.remove(who);
    }

    /// A batch of this queue is going to raise it.
    pub(crate) fn attach(&self, queue: &Arc<QueueState>) {
        self.inner.lock().home = Some(Arc::downgrade(queue));
    }

    fn home(&self) -> Option<Arc<QueueState>> {
        self.inner.lock().home.as_ref().and_then(Weak::upgrade)
    }
}

/// A counter and the value that somebody waits for.
pub(crate) type Target = (Arc<Counter>, u64);

impl Awaited for Target {
    fn is_done(&self) -> bool {
        self.0.reached(self.1)
    }

    fn home(&self) -> Option<Arc<QueueState>> {
        self.0.home()
    }

    fn watch(&self, who: &Arc<dyn Wake>) {
        self.0.watch(self.1, who);
    }

    fn forget(&self, who: &Arc<dyn Wake>) {
        self.0.forget(who);
    }
}

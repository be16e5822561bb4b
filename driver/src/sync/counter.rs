//! Counters: a value that queues and the host raise and wait for. They implement semaphores and events.

use std::sync::atomic::AtomicU64 as StaticU64;
use std::sync::{Arc, Weak};

use super::primitives::{AtomicU64, Mutex, Ordering};
use super::wait::Awaited;
use super::wake::{Helper, Wake, Watchers};

/// The number of the next counter. Not one of loom's atomics, which cannot be static: no protocol depends on it.
static NEXT: StaticU64 = StaticU64::new(0);

/// A value, and the waiters for it to reach values of theirs.
///
/// A timeline semaphore is its value. A binary semaphore counts its signals; its n-th wait is for the value n. An event
/// is 1 while it is set.
#[derive(Debug)]
pub(crate) struct Counter {
    serial: u64,
    /// The first value, which nothing signalled.
    initial: u64,
    /// Written under the lock of `inner`; read without it.
    value: AtomicU64,
    inner: Mutex<CounterState>,
}

#[derive(Debug, Default)]
struct CounterState {
    watchers: Watchers,
    /// The queue of the batch that was submitted last to raise it: waiters may help that queue.
    settling_queue: Option<Weak<dyn Helper>>,
}

impl Counter {
    /// A counter with its first value.
    pub(crate) fn new(value: u64) -> Arc<Self> {
        // Relaxed: the numbers only have to differ, and an addition is atomic in any order.
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { serial, initial: value, value: AtomicU64::new(value), inner: Mutex::default() })
    }

    /// Its number, which no other counter of the process has, not even one that is created after this one has ended.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The value that it was created with.
    pub(crate) fn initial(&self) -> u64 {
        self.initial
    }

    /// The current value.
    pub(crate) fn value(&self) -> u64 {
        // Acquire: pairs with the Release in `change`; what happened before the raise is visible.
        self.value.load(Ordering::Acquire)
    }

    /// Whether the counter has reached `value`.
    pub(crate) fn reached(&self, value: u64) -> bool {
        self.value() >= value
    }

    /// Raises the value to at least `value` and wakes the waiters that this satisfies. The caller must hold no lock.
    pub(crate) fn raise(&self, value: u64) {
        self.change(|now| now.max(value));
    }

    /// Sets the value to 0 (`vkResetEvent`).
    pub(crate) fn reset(&self) {
        self.change(|_| 0);
    }

    fn change(&self, to: impl FnOnce(u64) -> u64) {
        let ready = {
            let mut inner = self.inner.lock();
            let value = to(self.value());
            // Release: pairs with the Acquire in `value`. Under the lock, so that a watcher either sees the new value
            // or is in the list by now.
            self.value.store(value, Ordering::Release);
            inner.watchers.take(value)
        };
        // After the lock: a waiter takes locks of its own, and the counter's lock is a leaf.
        ready.into_iter().for_each(Wake::wake);
    }

    /// Registers a waiter, to be woken when the counter reaches `value`. `false` if it has reached it already: then
    /// nothing is registered.
    pub(crate) fn watch(&self, value: u64, waiter: &Arc<dyn Wake>) -> bool {
        let mut inner = self.inner.lock();
        let waits = !self.reached(value);
        if waits {
            inner.watchers.add(value, waiter);
        }
        waits
    }

    /// Removes a waiter.
    pub(crate) fn forget(&self, waiter: &Arc<dyn Wake>) {
        self.inner.lock().watchers.remove(waiter);
    }

    /// A batch submitted to this queue will raise the counter.
    pub(crate) fn attach(&self, queue: Weak<dyn Helper>) {
        self.inner.lock().settling_queue = Some(queue);
    }

    fn settling_queue(&self) -> Option<Arc<dyn Helper>> {
        self.inner.lock().settling_queue.as_ref().and_then(Weak::upgrade)
    }
}

/// A counter and the value to wait for, or to raise it to.
pub(crate) type Target = (Arc<Counter>, u64);

impl Awaited for Target {
    fn is_done(&self) -> bool {
        self.0.reached(self.1)
    }

    fn settling_queue(&self) -> Option<Arc<dyn Helper>> {
        self.0.settling_queue()
    }

    fn watch(&self, waiter: &Arc<dyn Wake>) {
        self.0.watch(self.1, waiter);
    }

    fn forget(&self, waiter: &Arc<dyn Wake>) {
        self.0.forget(waiter);
    }
}

//! The loss of a device: the reason, the flag that ends kernels, and the waiters to wake.
//!
//! A forked process has none of its parent's threads. There the device is lost from the beginning, and no lock is taken
//! to find that out: a thread that does not exist may have held it.
//!
//! A thread that waits for something that no batch in line brings about would not be woken on a lost device, so it is
//! registered here. See `exec/README.md`, "loss and sleeper".

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use spelter_locks::ProcessId;

use super::primitives::{Mutex, Ordering};
use super::wake::{Wake, Watchers};
use crate::error::DeviceError;

/// The reason of a loss in a forked process.
const FORKED: &str = "this process was forked from the one that made the device: the device's threads are not here. \
                         A forked process must create its own device";

/// Whether and why a device is lost. A loss is final.
#[derive(Debug)]
pub(crate) struct Loss {
    /// The process with the device's threads.
    process: ProcessId,
    /// The flag that kernels poll. Written once, under the lock of `inner`.
    stop: AtomicU32,
    inner: Mutex<LossState>,
}

#[derive(Debug, Default)]
struct LossState {
    why: Option<String>,
    /// Whether the reason says where a kernel was.
    explained: bool,
    /// Waiters that only a loss may wake, one entry per thread.
    awaited: Watchers,
}

impl Default for Loss {
    fn default() -> Self {
        Self { process: ProcessId::current(), stop: AtomicU32::default(), inner: Mutex::default() }
    }
}

impl Loss {
    /// Whether this process was forked from the one with the device's threads.
    pub(crate) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    /// The error for a forked process. To be called before taking a lock or sleeping to wait for threads of the device.
    #[inline]
    pub(crate) fn check_not_forked(&self) -> Result<(), DeviceError> {
        if self.is_forked() { Err(DeviceError::DeviceLost(FORKED.to_owned())) } else { Ok(()) }
    }

    /// Loses the device and wakes the threads that wait; the first reason stays. The caller wakes suspended queues.
    pub(crate) fn lose(&self, why: String) {
        let awaited = {
            let mut inner = self.inner.lock();
            inner.why.get_or_insert(why);
            // Release: pairs with the Acquire in `is_lost`. Kernels read it relaxed and do not ask why.
            self.stop.store(1, Ordering::Release);
            inner.awaited.take(0)
        };
        awaited.into_iter().for_each(Wake::wake);
    }

    /// Appends to the reason what the first caller knows. Its batch settles afterwards, so that waiters see the
    /// addition.
    pub(crate) fn explain(&self, more: &str) {
        let mut inner = self.inner.lock();
        if more.is_empty() || std::mem::replace(&mut inner.explained, true) {
            return;
        }
        if let Some(why) = &mut inner.why {
            why.push_str(more);
        }
    }

    /// Whether the device is lost: all threads stop working.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // Acquire: pairs with the Release in `lose`; the reason is there.
        self.stop.load(Ordering::Acquire) != 0 || self.is_forked()
    }

    /// The error that says why the device is lost, if it is.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        if self.is_lost() { self.why() } else { Ok(()) }
    }

    #[cold]
    fn why(&self) -> Result<(), DeviceError> {
        self.check_not_forked()?;
        Err(DeviceError::DeviceLost(self.inner.lock().why.clone().unwrap_or_default()))
    }

    /// The flag that kernels poll.
    pub(crate) fn stop(&self) -> &AtomicU32 {
        &self.stop
    }

    /// From now to `forget` the loss wakes this waiter. To be called before it tests the loss and sleeps.
    pub(crate) fn watch(&self, waker: &Arc<dyn Wake>) {
        self.inner.lock().awaited.add(0, waker);
    }

    /// The waiter no longer sleeps.
    pub(crate) fn forget(&self, waker: &Arc<dyn Wake>) {
        // A loss has removed it already.
        self.inner.lock().awaited.remove(waker);
    }
}

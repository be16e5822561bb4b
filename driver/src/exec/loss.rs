//! The loss of a device: the reason, the flag that ends kernels, and who has to be woken.
//!
//! Whoever waits for something that no batch in line brings about has nobody to wake it on a lost device, so it is written
//! down here.
//! See README.md, "loss and sleeper".

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::sync::{Mutex, Ordering};
use crate::error::DeviceError;
use crate::sync::{Wake, Watchers};

/// Whether and why a device is lost. It stays so.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    /// What kernels poll. Written once, under the lock of `inner`.
    stop: AtomicU32,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    why: Option<String>,
    /// What threads sleep for that nobody else may wake, once for each thread.
    awaited: Watchers,
}

impl Loss {
    /// Loses the device and wakes the threads that wait; the first reason stays. Queues that are parked are woken by the caller.
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

    /// Whether the device is lost: all threads leave what they do.
    pub(crate) fn is_lost(&self) -> bool {
        // Acquire: pairs with the Release in `lose`; the reason is there.
        self.stop.load(Ordering::Acquire) != 0
    }

    /// The error that says why the device is lost, if it is.
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        if !self.is_lost() {
            return Ok(());
        }
        Err(DeviceError::DeviceLost(self.inner.lock().why.clone().unwrap_or_default()))
    }

    /// The flag that kernels poll.
    pub(super) fn stop(&self) -> &AtomicU32 {
        &self.stop
    }

    /// From now to `forget` the loss wakes this waiter. To be called before it tests the loss and sleeps.
    pub(crate) fn watch(&self, who: &Arc<dyn Wake>) {
        self.inner.lock().awaited.add(0, who);
    }

    /// The waiter sleeps no more.
    pub(crate) fn forget(&self, who: &Arc<dyn Wake>) {
        // After a loss it may be gone already.
        self.inner.lock().awaited.remove(who);
    }
}

//! Fences: signalled by a queue, waited for by the host.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::Loss;
use super::primitives::{AtomicUsize, Condvar, Mutex, Ordering, spin_until};
use super::wait::{Awaited, WAIT_SPIN};
use super::wake::{Helper, Wake, Watchers};
use crate::error::DeviceError;

const WAITING: usize = 0;
const SIGNALED: usize = 1;
const LOST: usize = 2;

/// The state of a `VkFence`.
#[derive(Debug)]
pub(crate) struct FenceState {
    /// Written under the lock of `inner`; read without it.
    state: AtomicUsize,
    inner: Mutex<FenceStateInner>,
    settled: Condvar,
    /// The device's.
    loss: Arc<Loss>,
}

#[derive(Debug, Default)]
struct FenceStateInner {
    /// The queue that will settle the fence, once it has been submitted: waiters help that queue.
    settling_queue: Option<Weak<dyn Helper>>,
    /// Why the device is lost, in state `LOST`.
    lost: Option<DeviceError>,
    /// Threads that wait for several fences, and tasks.
    watchers: Watchers,
}

impl FenceState {
    /// A fence, signalled or not (`VK_FENCE_CREATE_SIGNALED_BIT`).
    pub(crate) fn new(signaled: bool, loss: &Arc<Loss>) -> Self {
        Self {
            state: AtomicUsize::new(if signaled { SIGNALED } else { WAITING }),
            inner: Mutex::new(FenceStateInner::default()),
            settled: Condvar::new(),
            loss: Arc::clone(loss),
        }
    }

    /// Whether the fence is signalled (`vkGetFenceStatus`).
    pub(crate) fn is_signaled(&self) -> bool {
        self.state() == SIGNALED
    }

    /// Returns to the unsignalled state (`vkResetFences`). The fence must not belong to a batch in line
    /// (VUID-vkResetFences-pFences-01123).
    pub(crate) fn reset(&self) {
        let mut inner = self.inner.lock();
        (inner.settling_queue, inner.lost) = (None, None);
        // Relaxed: the caller orders a reset before the submission that uses the fence again.
        self.state.store(WAITING, Ordering::Relaxed);
    }

    /// Waits until the fence is signalled; `false` if the timeout expired first. Without a timeout the thread meanwhile
    /// works on the queue; with one it sleeps, since a kernel may take longer than the timeout.
    ///
    /// A fence that was not submitted can be waited for, too: another thread may submit it, or the device may be lost.
    /// On a lost device the queue settles the fences of its batches, each after the batch has been dropped.
    pub(crate) fn wait(self: &Arc<Self>, timeout: Option<Duration>) -> Result<bool, DeviceError> {
        if !self.is_settled() {
            self.loss.check_not_forked()?;
        }
        let settled = match timeout {
            Some(timeout) => self.sleep(Instant::now().checked_add(timeout), timeout),
            None => self.work() || self.sleep(None, WAIT_SPIN),
        };
        let inner = self.inner.lock();
        let (lost, in_line) = (inner.lost.clone(), inner.settling_queue.is_some());
        drop(inner);
        match lost {
            Some(lost) => Err(lost),
            None if settled => Ok(true),
            // Whether or not the device is lost: the queue settles the fence of each batch in line, and its batch may
            // have succeeded.
            None if in_line && timeout.is_some() => Ok(false),
            None => self.loss.check().map(|()| false),
        }
    }

    /// How the fence was settled; `None` if it is not and still can be.
    pub(super) fn outcome(&self) -> Option<Result<(), DeviceError>> {
        match self.state() {
            SIGNALED => Some(Ok(())),
            WAITING if self.inner.lock().settling_queue.is_some() => None,
            // The lock is taken after the state was read: a fence that was settled meanwhile has lost its queue.
            WAITING if self.is_signaled() => Some(Ok(())),
            _ => match self.inner.lock().lost.clone() {
                Some(lost) => Some(Err(lost)),
                None => self.loss.check().err().map(Err),
            },
        }
    }

    pub(super) fn loss(&self) -> &Loss {
        &self.loss
    }

    fn state(&self) -> usize {
        // Acquire: pairs with the Release in `settle`; what the batch wrote is visible.
        self.state.load(Ordering::Acquire)
    }

    fn is_settled(&self) -> bool {
        self.state() != WAITING
    }

    /// Works on the queue. Returns whether the fence is settled.
    fn work(self: &Arc<Self>) -> bool {
        if self.is_settled() {
            return true;
        }
        self.settling_queue().is_some_and(|queue| queue.help(&|| self.is_settled()))
    }

    /// Spins briefly, then sleeps. Returns whether the fence is settled.
    fn sleep(self: &Arc<Self>, deadline: Option<Instant>, spin: Duration) -> bool {
        if spin_until(spin.min(WAIT_SPIN), || self.is_settled()) {
            return true;
        }
        let waiter = Arc::clone(self) as Arc<dyn Wake>;
        self.loss.watch(&waiter);
        let settled = self.sleep_watched(deadline);
        self.loss.forget(&waiter);
        settled
    }

    fn sleep_watched(&self, deadline: Option<Instant>) -> bool {
        let mut inner = self.inner.lock();
        // On a lost device, a fence that belongs to no batch is never settled.
        while !(self.is_settled() || inner.settling_queue.is_none() && self.loss.is_lost()) {
            let is_over;
            (inner, is_over) = self.settled.wait_until(inner, deadline);
            if is_over {
                break;
            }
        }
        self.is_settled()
    }

    /// The fence belongs to a batch of this queue from now on.
    pub(crate) fn attach(&self, queue: Weak<dyn Helper>) {
        self.inner.lock().settling_queue = Some(queue);
    }

    /// The batch has retired, or the device is lost: signals the fence, or stores the error.
    pub(crate) fn settle(&self, result: Result<(), DeviceError>) {
        let mut inner = self.inner.lock();
        let state = if result.is_ok() { SIGNALED } else { LOST };
        // A fence has no values: all watch for 0.
        let watchers = inner.watchers.take(0);
        *inner = FenceStateInner { lost: result.err(), ..FenceStateInner::default() };
        // Release: pairs with the Acquire in `state`. Under the lock, so that a waiter has either not tested yet or is
        // asleep.
        self.state.store(state, Ordering::Release);
        // After the lock is released: a waiter takes this lock or one of its own, and the fence's lock is a leaf.
        drop(inner);
        self.settled.notify_all();
        watchers.into_iter().for_each(Wake::wake);
    }
}

impl Wake for FenceState {
    /// The device is lost: waiters test whether the fence will still be settled.
    fn wake(self: Arc<Self>) {
        // Under the lock, so that a waiter has either not tested yet or is asleep.
        let _inner = self.inner.lock();
        self.settled.notify_all();
    }
}

/// For threads that wait for several fences, and for tasks.
impl Awaited for Arc<FenceState> {
    fn is_done(&self) -> bool {
        self.is_settled()
    }

    fn settling_queue(&self) -> Option<Arc<dyn Helper>> {
        self.inner.lock().settling_queue.as_ref().and_then(Weak::upgrade)
    }

    fn watch(&self, waiter: &Arc<dyn Wake>) {
        let mut inner = self.inner.lock();
        if !self.is_settled() {
            inner.watchers.add(0, waiter);
        }
    }

    fn forget(&self, waiter: &Arc<dyn Wake>) {
        self.inner.lock().watchers.remove(waiter);
    }
}

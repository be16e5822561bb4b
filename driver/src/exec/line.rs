//! The line of batches of one queue, and the role of its conductor.
//!
//! At most one thread is the conductor: it holds a [`Conductor`], which is the only access to the front of the line.
//! Role and line are under one lock, so a conductor cannot leave while a batch comes in. See README.md, "hand-over".

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::primitives::{AtomicU64, Condvar, Mutex, Ordering};

/// Batches that have not retired, first in first out.
#[derive(Debug)]
pub(super) struct Line<B> {
    inner: Mutex<LineState<B>>,
    /// Serial of the last batch that retired.
    retired: AtomicU64,
    /// Serial of the last batch whose semaphores and fence are signalled too. Written under the lock of `inner`.
    settled: AtomicU64,
    /// Notified when a batch settles while a thread waits for that.
    moved: Condvar,
}

#[derive(Debug)]
struct LineState<B> {
    /// The front stays here while it runs.
    pending: VecDeque<Arc<B>>,
    /// Serial of the last batch that came in.
    submitted: u64,
    role: Role,
    waiters: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Nothing is pending.
    Idle,
    /// A thread has to become conductor: the one that set this posts the queue on the board.
    Wanted,
    /// There is a conductor.
    Held,
    /// The batch in front waits for a counter: the thread that raises it sees to a conductor.
    Suspended,
}

/// The right, and the duty, to run the batches of a line.
#[derive(Debug)]
pub(super) struct Conductor<'a, B> {
    line: &'a Line<B>,
}

/// What `Line::push` found.
#[derive(Debug)]
pub(super) struct Pushed {
    /// Serial of the batch.
    pub(super) serial: u64,
    /// The line was idle: the caller has to see to a conductor.
    pub(super) was_idle: bool,
}

impl<B> Line<B> {
    /// An empty line.
    pub(super) fn new() -> Self {
        let inner = LineState { pending: VecDeque::new(), submitted: 0, role: Role::Idle, waiters: 0 };
        Self { inner: Mutex::new(inner), retired: AtomicU64::new(0), settled: AtomicU64::new(0), moved: Condvar::new() }
    }

    /// Appends a batch, made with its serial.
    pub(super) fn push(&self, batch: impl FnOnce(u64) -> Arc<B>) -> Pushed {
        let mut inner = self.inner.lock();
        inner.submitted += 1;
        let serial = inner.submitted;
        inner.pending.push_back(batch(serial));
        let was_idle = inner.role == Role::Idle;
        if was_idle {
            inner.role = Role::Wanted;
        }
        Pushed { serial, was_idle }
    }

    /// Becomes conductor, if one is wanted.
    pub(super) fn claim(&self) -> Option<Conductor<'_, B>> {
        let mut inner = self.inner.lock();
        (inner.role == Role::Wanted).then(|| {
            inner.role = Role::Held;
            Conductor { line: self }
        })
    }

    /// Ends a suspension, if there is one (`true`): the caller posts the queue or becomes conductor.
    pub(super) fn resume(&self) -> bool {
        let mut inner = self.inner.lock();
        let suspended = inner.role == Role::Suspended;
        if suspended {
            inner.role = Role::Wanted;
        }
        suspended
    }

    /// Serial of the last batch that came in.
    pub(super) fn submitted(&self) -> u64 {
        self.inner.lock().submitted
    }

    /// Serial of the last batch that retired; all earlier ones have retired too. Never decreases.
    pub(super) fn retired(&self) -> u64 {
        // Acquire: pairs with the Release in `Conductor::retire`; what the batch wrote is visible.
        self.retired.load(Ordering::Acquire)
    }

    /// Serial of the last batch that retired and whose semaphores and fence are signalled.
    pub(super) fn settled(&self) -> u64 {
        // Acquire: pairs with the Release in `Conductor::settle`; what the batch wrote is visible.
        self.settled.load(Ordering::Acquire)
    }

    /// Sleeps until the batch with this serial has settled.
    pub(super) fn wait_settled(&self, serial: u64) {
        let mut inner = self.inner.lock();
        inner.waiters += 1;
        while self.settled() < serial {
            inner = self.moved.wait(inner);
        }
        inner.waiters -= 1;
    }

    /// Calls `at` on the batch in front, which may be running, under the line's lock.
    pub(super) fn with_front<R>(&self, at: impl FnOnce(&B) -> R) -> Option<R> {
        self.inner.lock().pending.front().map(|batch| at(batch))
    }
}

impl<B> Conductor<'_, B> {
    /// The batch in front. `None` ends the role: the conductor must not be used again.
    pub(super) fn front(&self) -> Option<Arc<B>> {
        let mut inner = self.line.inner.lock();
        let front = inner.pending.front().cloned();
        if front.is_none() {
            inner.role = Role::Idle;
        }
        front
    }

    /// Takes the batch out of the line. It has not retired before `retire`.
    pub(super) fn pop(&self) {
        let popped = self.line.inner.lock().pending.pop_front();
        drop(popped); // after the lock: the conductor's own handle is the last
    }

    /// Publishes that the batch has retired.
    pub(super) fn retire(&self, serial: u64) {
        // Release: pairs with the Acquire in `Line::retired`; publishes what the batch wrote.
        self.line.retired.store(serial, Ordering::Release);
    }

    /// Publishes that the batch's semaphores and fence are signalled.
    pub(super) fn settle(&self, serial: u64) {
        let inner = self.line.inner.lock();
        // Release: pairs with the Acquire in `Line::settled`. Under the lock: a waiter is before its test or asleep.
        self.line.settled.store(serial, Ordering::Release);
        if inner.waiters > 0 {
            self.line.moved.notify_all();
        }
    }

    /// Leaves the batch in front for later: from now on a conductor comes only after [`Line::resume`].
    pub(super) fn suspend(self) {
        self.line.inner.lock().role = Role::Suspended;
    }

    /// Leaves the role. If batches are pending a conductor is wanted (`true`), and the caller posts the queue.
    pub(super) fn leave(self) -> bool {
        let mut inner = self.line.inner.lock();
        let more = !inner.pending.is_empty();
        inner.role = if more { Role::Wanted } else { Role::Idle };
        more
    }
}

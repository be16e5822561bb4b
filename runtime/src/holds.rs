//! Batches that a test holds back: they are submitted, and do not start until the hold is opened.
//!
//! A hold is a semaphore that the first held batch waits for; a queue runs its batches in order, so later ones wait,
//! too. A submission knows its holds. A host wait for it either opens them ([`WhenAwaited::Open`]), so
//! that a test that waits by mistake does not hang, or blocks until another thread opens them, for a limited time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spelter_driver::Semaphore;

use crate::sync::{Condvar, Mutex};

/// What happens when the host begins to wait for a batch that is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenAwaited {
    /// The hold opens.
    Open,
    /// The host waits until another thread opens the hold, but no longer than this: then the hold opens.
    Block(Duration),
}

/// The reason why a [`Hold`](crate::testing::Hold) is open.
///
/// ```
/// use spelter::testing::{self, OpenedBy};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(4)?;
/// let hold = testing::hold(&context)?;
/// context.fill(&buffer, 1)?;
/// assert_eq!((hold.opened_by(), context.read::<u32>(&buffer)?), (None, vec![1]));
/// assert_eq!(hold.opened_by(), Some(OpenedBy::Wait)); // `read` waited
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedBy {
    /// [`Hold::release`](crate::testing::Hold::release), or the hold was dropped.
    Release,
    /// The host began to wait for a held batch.
    Wait,
    /// The host waited for a held batch for as long as the hold allows, or a context with a held batch was dropped.
    TimeLimit,
}

/// The state of a hold: whether it is open, and the threads that wait for a held batch.
#[derive(Debug)]
pub(crate) struct HoldState {
    /// A leaf lock.
    inner: Mutex<Inner>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    opened_by: Option<OpenedBy>,
    waiting: u64,
}

impl HoldState {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(Inner::default()), moved: Condvar::default() }
    }

    pub(crate) fn opened_by(&self) -> Option<OpenedBy> {
        self.inner.lock().opened_by
    }

    /// Opens it. Returns whether it was held until now: the caller lets the batches start.
    pub(crate) fn open(&self, by: OpenedBy) -> bool {
        let mut inner = self.inner.lock();
        let first = inner.opened_by.is_none();
        inner.opened_by.get_or_insert(by);
        first
    }

    /// The number of threads that wait for a held batch.
    pub(crate) fn waiting(&self) -> u64 {
        self.inner.lock().waiting
    }

    /// A thread begins to wait for a held batch.
    pub(crate) fn wait_begins(&self) {
        self.inner.lock().waiting += 1;
        self.moved.notify_all();
    }

    /// The thread has waited.
    pub(crate) fn wait_ends(&self) {
        self.inner.lock().waiting -= 1;
    }

    /// Returns when a thread waits for a held batch, or after this time; whether one does.
    pub(crate) fn until_awaited(&self, limit: Duration) -> bool {
        let mut inner = self.inner.lock();
        while inner.waiting == 0 {
            let is_over;
            (inner, is_over) = self.moved.wait_for(inner, limit);
            if is_over {
                return inner.waiting > 0;
            }
        }
        true
    }
}

/// A hold, and the semaphore that lets the batches start.
#[derive(Debug)]
pub(crate) struct HeldBatches {
    pub(crate) state: HoldState,
    semaphore: Semaphore,
    when_awaited: WhenAwaited,
}

impl HeldBatches {
    pub(crate) fn new(semaphore: Semaphore, when_awaited: WhenAwaited) -> Self {
        Self { state: HoldState::new(), semaphore, when_awaited }
    }

    /// The batch that is held waits for this semaphore to be 1.
    pub(crate) fn semaphore(&self) -> &Semaphore {
        &self.semaphore
    }

    pub(crate) fn open(&self, by: OpenedBy) {
        if self.state.open(by) {
            // It fails only on a lost device, where no batch starts.
            let _ = self.semaphore.signal(1);
        }
    }

    /// The host waits with `wait`, which takes a time limit and returns whether its wait is over.
    pub(crate) fn wait<E>(&self, wait: impl FnOnce(Duration) -> Result<bool, E>) -> Result<(), E> {
        self.state.wait_begins();
        let result = match self.when_awaited {
            WhenAwaited::Open => {
                self.open(OpenedBy::Wait);
                Ok(())
            }
            WhenAwaited::Block(limit) => wait(limit).map(|done| {
                if !done {
                    self.open(OpenedBy::TimeLimit);
                }
            }),
        };
        self.state.wait_ends();
        result
    }
}

/// The holds of a device, by queue.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// Holds that were ever made: programs have none, and pay for one load.
    made: AtomicUsize,
    /// With the queue whose later batches it holds, too. A leaf lock.
    queues: Mutex<Vec<(usize, Arc<HeldBatches>)>>,
}

impl Holds {
    /// Whether there is a hold, or was one.
    pub(crate) fn any(&self) -> bool {
        // Relaxed: a thread sees the holds that it made, and those of threads that it has synchronised with.
        self.made.load(Ordering::Relaxed) > 0
    }

    /// Notes that a hold was made.
    pub(crate) fn note(&self) {
        // Relaxed: as in `any`.
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    /// The hold keeps back a batch that is about to be submitted to a queue, and so every later one of that queue.
    pub(crate) fn add(&self, queue: usize, hold: &Arc<HeldBatches>) {
        let mut queues = self.queues.lock();
        queues.retain(|(_, hold)| hold.state.opened_by().is_none());
        queues.push((queue, Arc::clone(hold)));
    }

    /// The holds of the next batch of this queue.
    pub(crate) fn of(&self, queue: usize) -> Vec<Arc<HeldBatches>> {
        let queues = self.queues.lock();
        queues
            .iter()
            .filter(|(of, hold)| *of == queue && hold.state.opened_by().is_none())
            .map(|(_, hold)| Arc::clone(hold))
            .collect()
    }
}

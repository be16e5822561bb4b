//! The board: queues that want a conductor, phases that want members, free slots, and sleeping threads.
//!
//! All of it is under one lock, so that "nothing to do" and "sleep" are one step and no wake-up is lost. The lock is
//! held for a few list operations, and a batch takes it a few times, not once per unit. See README.md, "sleep and
//! post".

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::crew::{Crew, Member};
use crate::sync::primitives::{AtomicUsize, Condvar, Mutex, Ordering, spin_until};

/// `Q` is a queue, `P` the payload of a phase, `S` a slot: the right to run kernels, with the memory for it.
#[derive(Debug)]
pub(super) struct Board<Q, P, S> {
    inner: Mutex<BoardState<Q, P, S>>,
    posted: Condvar,
    /// Number of entries in `ready`: a hint, read without the lock.
    ready: AtomicUsize,
    /// Number of entries in `ready` and `open`: a hint likewise.
    jobs: AtomicUsize,
    /// Number of threads that spin for a job: a hint likewise.
    spinners: AtomicUsize,
    spin: Duration,
}

#[derive(Debug)]
struct BoardState<Q, P, S> {
    free: Vec<S>,
    ready: VecDeque<Arc<Q>>,
    open: VecDeque<OpenCrew<P>>,
    asleep: usize,
    spinning: usize,
    /// Worker threads that exist or are being started.
    threads: usize,
    max_threads: usize,
    closing: bool,
}

#[derive(Debug)]
struct OpenCrew<P> {
    crew: Arc<Crew<P>>,
    /// How many more members may enter.
    seats: usize,
    /// Identifies the queue that the phase belongs to (`phase::owner`).
    owner: usize,
}

/// A job for a worker.
#[derive(Debug)]
pub(super) enum Job<Q, P> {
    /// Become this queue's conductor, if it still wants one.
    Conduct(Arc<Q>),
    /// Work on this phase.
    Join(Member<P>),
}

/// The number of threads that the caller has to start; they are counted already.
#[must_use = "no other thread starts them"]
#[derive(Debug, Default)]
pub(super) struct Spawn(pub(super) usize);

impl<Q, P, S> Board<Q, P, S> {
    /// A board with these slots and at most as many threads. Idle threads spin for `spin` before they sleep.
    pub(super) fn new(slots: Vec<S>, spin: Duration) -> Self {
        let inner = BoardState {
            max_threads: slots.len(),
            free: slots,
            ready: VecDeque::new(),
            open: VecDeque::new(),
            asleep: 0,
            spinning: 0,
            threads: 0,
            closing: false,
        };
        Self {
            inner: Mutex::new(inner),
            posted: Condvar::new(),
            ready: AtomicUsize::new(0),
            jobs: AtomicUsize::new(0),
            spinners: AtomicUsize::new(0),
            spin,
        }
    }

    /// A queue wants a conductor.
    pub(super) fn post(&self, queue: &Arc<Q>) -> Spawn {
        let mut inner = self.inner.lock();
        // A queue that a waiting thread has conducted meanwhile may still be listed: one entry is enough.
        if !inner.ready.iter().any(|listed| Arc::ptr_eq(listed, queue)) {
            inner.ready.push_back(Arc::clone(queue));
        }
        self.call(&mut inner, 1)
    }

    /// A phase wants up to `seats` members.
    pub(super) fn open(&self, crew: &Arc<Crew<P>>, seats: usize, owner: usize) -> Spawn {
        let mut inner = self.inner.lock();
        inner.open.push_back(OpenCrew { crew: Arc::clone(crew), seats, owner });
        self.call(&mut inner, seats)
    }

    /// From now on no thread enters this crew.
    pub(super) fn close(&self, crew: &Arc<Crew<P>>) {
        let mut inner = self.inner.lock();
        inner.open.retain(|open| !Arc::ptr_eq(&open.crew, crew));
        self.publish(&inner);
    }

    /// A member leaves before the end: another thread may have its seat.
    pub(super) fn vacate(&self, crew: &Arc<Crew<P>>) {
        let mut inner = self.inner.lock();
        if let Some(open) = inner.open.iter_mut().find(|open| Arc::ptr_eq(&open.crew, crew)) {
            open.seats += 1;
        }
        self.publish(&inner);
    }

    /// A slot, if one is free.
    pub(super) fn claim(&self) -> Option<S> {
        self.inner.lock().free.pop()
    }

    /// Gives a slot back and wakes a worker if jobs are posted.
    pub(super) fn release(&self, slot: S) -> Spawn {
        let mut inner = self.inner.lock();
        inner.free.push(slot);
        let jobs = inner.jobs();
        self.call(&mut inner, jobs.min(1))
    }

    /// Enters an open phase of the queue `owner`, for a thread that has a slot.
    pub(super) fn join(&self, owner: usize) -> Option<Member<P>> {
        let mut inner = self.inner.lock();
        let open = inner.open.iter_mut().find(|open| open.owner == owner && open.seats > 0)?;
        open.seats -= 1;
        let member = open.crew.enter();
        self.publish(&inner);
        member
    }

    /// The next job, with the slot for it: spins, then sleeps. `None` when the board closes and no job is left.
    pub(super) fn next(&self) -> Option<(Job<Q, P>, S, Spawn)> {
        let mut inner = self.inner.lock();
        let mut spun = false;
        loop {
            if let Some((job, slot)) = inner.pick() {
                // One call may have woken one worker for several jobs: it passes the call on.
                let jobs = inner.jobs();
                let spawn = self.call(&mut inner, jobs.min(1));
                return Some((job, slot, spawn));
            }
            if inner.closing && inner.jobs() == 0 {
                inner.threads -= 1;
                return None;
            }
            if spun {
                inner.asleep += 1;
                inner = self.posted.wait(inner);
                inner.asleep -= 1;
                continue;
            }
            spun = true;
            inner.spinning += 1;
            self.publish(&inner);
            drop(inner);
            // Relaxed: a hint. The lock that follows decides.
            spin_until(self.spin, || self.jobs.load(Ordering::Relaxed) != 0);
            inner = self.inner.lock();
            inner.spinning -= 1;
            self.publish(&inner);
        }
    }

    /// Lets workers end when no job is left.
    pub(super) fn shut(&self) {
        self.inner.lock().closing = true;
        self.posted.notify_all();
    }

    /// Whether `shut` was called.
    pub(super) fn is_shut(&self) -> bool {
        self.inner.lock().closing
    }

    /// A thread could not be started. Returns whether other workers exist to do the work.
    pub(super) fn spawn_failed(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.threads -= 1;
        inner.threads > 0
    }

    /// Whether queues wait for a conductor: a hint, for threads that could give their slot back.
    pub(super) fn is_crowded(&self) -> bool {
        // Relaxed: a hint.
        self.ready.load(Ordering::Relaxed) != 0
    }

    /// Whether a thread spins for work, so that calling it costs little: a hint.
    pub(super) fn has_spinners(&self) -> bool {
        // Relaxed: a hint.
        self.spinners.load(Ordering::Relaxed) != 0
    }

    /// Wakes threads for `count` jobs: spinning threads find them without a call, then sleeping threads are notified,
    /// then new ones are started.
    fn call(&self, inner: &mut BoardState<Q, P, S>, count: usize) -> Spawn {
        self.publish(inner);
        let missing = count.min(inner.free.len()).saturating_sub(inner.spinning);
        let wake = missing.min(inner.asleep);
        for _ in 0..wake {
            self.posted.notify_one();
        }
        let spawn = (missing - wake).min(inner.max_threads - inner.threads);
        inner.threads += spawn;
        Spawn(spawn)
    }

    /// Updates the hints. Relaxed: correctness relies on the lock only.
    fn publish(&self, inner: &BoardState<Q, P, S>) {
        self.ready.store(inner.ready.len(), Ordering::Relaxed);
        self.jobs.store(inner.jobs(), Ordering::Relaxed);
        self.spinners.store(inner.spinning, Ordering::Relaxed);
    }
}

impl<Q, P, S> BoardState<Q, P, S> {
    /// Jobs that a thread with a slot could start.
    fn jobs(&self) -> usize {
        self.ready.len() + self.open.iter().filter(|open| open.seats > 0).count()
    }

    /// A job and a slot, if there are both. Queues come first, so that a long phase of one queue does not delay
    /// another; phases are served round-robin.
    fn pick(&mut self) -> Option<(Job<Q, P>, S)> {
        let slot = self.free.pop()?;
        if let Some(queue) = self.ready.pop_front() {
            return Some((Job::Conduct(queue), slot));
        }
        // A phase that gave a seat goes to the end of the list, so that the next thread joins another one.
        if let Some(at) = self.open.iter().position(|open| open.seats > 0)
            && let Some(mut open) = self.open.remove(at)
        {
            open.seats -= 1;
            // Under this lock: the conductor closes the crew under it, too, and then waits for those that are inside.
            let member = open.crew.enter();
            self.open.push_back(open);
            if let Some(member) = member {
                return Some((Job::Join(member), slot));
            }
        }
        self.free.push(slot);
        None
    }
}

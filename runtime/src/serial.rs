//! Serials: the batches that use an object, and their progress. "Is it busy?" is one comparison.
//!
//! Each context counts its batches from 1 on; its [`Clock`] has the last submitted and the last retired one. An object
//! stores in [`Usage`], by clock, the last batch that reads it and the last that writes it.
//!
//! Two contexts that use one object must be ordered. [`Usage::enter`] tests for a conflict and notes the use in one
//! step under the object's lock: of two conflicting contexts, the second finds the use of the first.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use crate::ids::{Access, BatchId, ContextId, ObjectId, Serial};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// A batch that was submitted to a queue.
pub(crate) trait SubmittedBatch: Clone {
    /// Whether its serial has retired: none of its commands runs any more.
    fn is_over(&self) -> bool;

    /// Whether batches that are submitted to `other` later run after it.
    fn precedes(&self, other: &Self::Queue) -> bool;

    /// The name of a queue.
    type Queue;
}

/// Storage that batches use.
pub(crate) trait Object {
    /// A submitted batch.
    type Submission: SubmittedBatch;

    /// A unique number.
    fn id(&self) -> ObjectId;

    /// The batches that use it.
    fn usage(&self) -> &Usage<Self::Submission>;
}

/// A batch of another context that this one comes after.
struct PrecedingBatch<S: SubmittedBatch> {
    clock: Weak<Clock<S>>,
    id: u64,
    serial: Serial,
}

/// The progress of the batches of one context.
pub(crate) struct Clock<S: SubmittedBatch> {
    id: u64,
    pub(crate) queue: S::Queue,
    /// The last batch that was submitted.
    submitted: AtomicU64,
    /// The last batch known to have retired. Never goes back.
    retired: AtomicU64,
    in_flight: Mutex<VecDeque<(Serial, S)>>,
    /// By other clock, the last of its batches that later submissions of this context come after. A leaf lock.
    follows: Mutex<SmallVec<[PrecedingBatch<S>; 2]>>,
}

impl<S: SubmittedBatch> Clock<S> {
    /// A clock with a unique number.
    pub(crate) fn new(id: u64, queue: S::Queue) -> Self {
        let (submitted, retired) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { id, queue, submitted, retired, in_flight: Mutex::default(), follows: Mutex::default() }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Records that the batch `serial` is submitted, after all before it.
    pub(crate) fn submit(&self, serial: Serial, submission: S) {
        let mut in_flight = self.in_flight.lock();
        in_flight.push_back((serial, submission));
        // Release: pairs with the Acquire in `submitted`; a thread that sees the serial finds its submission.
        self.submitted.store(serial, Ordering::Release);
    }

    /// The last batch that was submitted.
    pub(crate) fn submitted(&self) -> Serial {
        // Acquire: pairs with the Release in `submit`.
        self.submitted.load(Ordering::Acquire)
    }

    /// The last batch that has retired, and all before it.
    pub(crate) fn retired(&self) -> Serial {
        // Acquire: pairs with the Release below; the batch's writes are visible.
        let known = self.retired.load(Ordering::Acquire);
        if known == self.submitted() { known } else { self.poll() }
    }

    fn poll(&self) -> Serial {
        let mut in_flight = self.in_flight.lock();
        // Relaxed: written under this lock only.
        let mut retired = self.retired.load(Ordering::Relaxed);
        while let Some((serial, _)) = in_flight.pop_front_if(|(_, submission)| submission.is_over()) {
            retired = serial;
        }
        // Release: pairs with the Acquire in `retired`.
        self.retired.store(retired, Ordering::Release);
        retired
    }

    /// The submission to wait for until the submitted batch `serial` has retired; `None` if it has.
    pub(crate) fn submission(&self, serial: Serial) -> Option<S> {
        let in_flight = self.in_flight.lock();
        // Relaxed: written under this lock only.
        if serial <= self.retired.load(Ordering::Relaxed) {
            return None;
        }
        in_flight.iter().find(|(number, _)| *number >= serial).map(|(_, submission)| submission.clone())
    }

    /// Notes that later submissions of this context come after a batch of another one, by a semaphore wait.
    pub(crate) fn follow(&self, clock: &Arc<Self>, serial: Serial) {
        let mut follows = self.follows.lock();
        // Retired batches precede everything, and all batches of dropped contexts have retired. Relaxed: a thread that
        // sees an old count only keeps an entry longer than necessary.
        let is_over = |entry: &PrecedingBatch<S>| {
            entry.clock.upgrade().is_none_or(|clock| clock.retired.load(Ordering::Relaxed) >= entry.serial)
        };
        follows.retain(|entry| !is_over(entry));
        match follows.iter_mut().find(|entry| entry.id == clock.id) {
            Some(entry) => entry.serial = serial.max(entry.serial),
            None => follows.push(PrecedingBatch { clock: Arc::downgrade(clock), id: clock.id, serial }),
        }
    }

    fn is_after(&self, clock: u64, serial: Serial) -> bool {
        self.follows.lock().iter().any(|entry| entry.id == clock && entry.serial >= serial)
    }

    /// Whether the batch `serial` is submitted and precedes later batches on that queue without a wait.
    fn orders(&self, serial: Serial, queue: &S::Queue) -> bool {
        serial <= self.submitted() && self.submission(serial).is_none_or(|submission| submission.precedes(queue))
    }
}

impl<S: SubmittedBatch> fmt::Debug for Clock<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for display only.
        let [submitted, retired] = [&self.submitted, &self.retired].map(|count| count.load(Ordering::Relaxed));
        write!(f, "Clock({}, submitted {submitted}, retired {retired})", self.id)
    }
}

/// A point of a context's timeline: one of its batches.
#[derive(Debug)]
pub(crate) struct TimelinePoint<S: SubmittedBatch> {
    pub(crate) clock: Arc<Clock<S>>,
    pub(crate) serial: Serial,
}

impl<S: SubmittedBatch> TimelinePoint<S> {
    /// The batch.
    pub(crate) fn id(&self) -> BatchId {
        BatchId { context: ContextId(self.clock.id()), serial: self.serial }
    }
}

impl<S: SubmittedBatch> Clone for TimelinePoint<S> {
    fn clone(&self) -> Self {
        Self { clock: Arc::clone(&self.clock), serial: self.serial }
    }
}

/// The contexts that use an object, each with the last batch that does.
#[derive(Debug)]
pub(crate) struct Usage<S: SubmittedBatch> {
    /// One entry for each context that uses it; rarely more than one.
    entries: Mutex<SmallVec<[UsageEntry<S>; 1]>>,
}

impl<S: SubmittedBatch> Default for Usage<S> {
    fn default() -> Self {
        Self { entries: Mutex::new(SmallVec::new()) }
    }
}

#[derive(Debug)]
struct UsageEntry<S: SubmittedBatch> {
    clock: Arc<Clock<S>>,
    read: Serial,
    write: Serial,
}

impl<S: SubmittedBatch> UsageEntry<S> {
    /// The last batch that such an access must come after.
    fn until(&self, access: Access) -> Serial {
        if access.writes() { self.read.max(self.write) } else { self.write }
    }

    fn is_over(&self) -> bool {
        self.until(Access::Write) <= self.clock.retired()
    }
}

/// The use of an object by batches of one context that have not retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnfinishedUse {
    /// The number of the context's clock.
    pub(crate) clock: u64,
    /// The last batch that reads it.
    pub(crate) read: Option<Serial>,
    /// The last batch that writes it.
    pub(crate) write: Option<Serial>,
}

/// Another context's batch that must come before a use of an object.
#[derive(Debug)]
pub(crate) enum MustPrecede<S: SubmittedBatch> {
    /// The batch must be done before.
    Done(TimelinePoint<S>),
    /// The batch must be submitted before; its end is not waited for.
    Submitted(TimelinePoint<S>),
}

impl<S: SubmittedBatch> Usage<S> {
    /// Notes that the open batch `serial` of `clock` uses the object, and returns whether it is the batch's first use
    /// of it. If another context must come first, nothing is noted and that context's batch is the error.
    ///
    /// `fresh`: the access writes only bytes that were never valid, so it need not wait for any batch. Open batches of
    /// other contexts are submitted all the same: a repeated dispatch there skips the test of its objects, and must
    /// find this use when it is recorded in the next batch.
    pub(crate) fn enter(
        &self,
        clock: &Arc<Clock<S>>,
        serial: Serial,
        access: Access,
        fresh: bool,
    ) -> Result<bool, MustPrecede<S>> {
        let mut entries = self.entries.lock();
        for entry in entries.iter().filter(|entry| entry.clock.id != clock.id) {
            let until = entry.until(access);
            let point = || TimelinePoint { clock: Arc::clone(&entry.clock), serial: until };
            if fresh {
                if until > entry.clock.submitted() {
                    return Err(MustPrecede::Submitted(point()));
                }
                continue;
            }
            // Both tests are cheaper than a wait, but take a leaf lock: most entries have retired.
            let ordered = || entry.clock.orders(until, &clock.queue) || clock.is_after(entry.clock.id, until);
            if until > entry.clock.retired() && !ordered() {
                return Err(MustPrecede::Done(point()));
            }
        }
        if let Some(entry) = entries.iter_mut().find(|entry| entry.clock.id == clock.id) {
            // Serials of a context only grow, so the older value needs not be kept.
            let first = entry.until(Access::Write) < serial;
            *(if access.writes() { &mut entry.write } else { &mut entry.read }) = serial;
            return Ok(first);
        }
        // Here, and not at each retirement: the list grows by contexts only, and nothing watches their serials.
        entries.retain(|entry| !entry.is_over());
        let (read, write) = if access.writes() { (0, serial) } else { (serial, 0) };
        entries.push(UsageEntry { clock: Arc::clone(clock), read, write });
        Ok(true)
    }

    /// By context, its last unfinished batch that reads the object and its last one that writes it.
    pub(crate) fn unfinished(&self) -> SmallVec<[UnfinishedUse; 1]> {
        let entries = self.entries.lock();
        let of = |entry: &UsageEntry<S>| {
            let retired = entry.clock.retired();
            let [read, write] = [entry.read, entry.write].map(|serial| (serial > retired).then_some(serial));
            UnfinishedUse { clock: entry.clock.id, read, write }
        };
        entries.iter().map(of).filter(|unfinished| unfinished.read.or(unfinished.write).is_some()).collect()
    }

    /// Whether any batch that is recorded or running, but not done, conflicts with this access.
    pub(crate) fn is_busy(&self, access: Access) -> bool {
        self.entries.lock().iter().any(|entry| entry.until(access) > entry.clock.retired())
    }

    /// The unfinished batches that conflict with this access.
    pub(crate) fn conflicting(&self, access: Access) -> SmallVec<[TimelinePoint<S>; 1]> {
        let entries = self.entries.lock();
        let busy = entries.iter().filter(|entry| entry.until(access) > entry.clock.retired());
        busy.map(|entry| TimelinePoint { clock: Arc::clone(&entry.clock), serial: entry.until(access) }).collect()
    }
}

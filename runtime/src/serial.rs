//! Serials: which batches use an object, and whether they are done. "Is it busy?" is one comparison.
//!
//! Each context counts its batches from 1 on; its [`Clock`] says up to which they are submitted and retired. An object
//! remembers in [`Usage`], by clock, the last batch that reads it and the last that writes it.
//!
//! Two contexts that use one object must be put in order. [`Usage::enter`] tests for a conflict and notes the use in one
//! step under the object's lock: of two that conflict, one learns of the other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// The number of a batch in its context, counted from 1 on; 0 is before the first.
pub(crate) type Serial = u64;

/// A batch on its way through a queue.
pub(crate) trait Flight: Clone {
    /// Whether its serial has retired: nothing of it runs any more.
    fn is_over(&self) -> bool;

    /// Whether what is submitted to the queue of `other` after it runs after it.
    fn precedes(&self, other: &Self::Line) -> bool;

    /// What names a queue.
    type Line;
}

/// A batch of another context.
struct Follows<F: Flight> {
    clock: Weak<Clock<F>>,
    id: u64,
    serial: Serial,
}

/// How far the batches of one context are.
pub(crate) struct Clock<F: Flight> {
    id: u64,
    pub(crate) line: F::Line,
    /// The last batch that was submitted.
    submitted: AtomicU64,
    /// The last batch known to have retired. Never goes back.
    retired: AtomicU64,
    in_flight: Mutex<VecDeque<(Serial, F)>>,
    /// By other clock, the last of its batches that what this context submits from now on comes after. A leaf lock.
    follows: Mutex<SmallVec<[Follows<F>; 2]>>,
}

impl<F: Flight> Clock<F> {
    /// A clock with a number that no other has.
    pub(crate) fn new(id: u64, line: F::Line) -> Self {
        let (submitted, retired) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { id, line, submitted, retired, in_flight: Mutex::default(), follows: Mutex::default() }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The batch `serial` is submitted, after all before it.
    pub(crate) fn submit(&self, serial: Serial, flight: F) {
        let mut in_flight = self.in_flight.lock();
        in_flight.push_back((serial, flight));
        // Release: pairs with the Acquire in `submitted`; who sees the serial finds its flight.
        self.submitted.store(serial, Ordering::Release);
    }

    /// The last batch that was submitted.
    pub(crate) fn submitted(&self) -> Serial {
        // Acquire: pairs with the Release in `submit`.
        self.submitted.load(Ordering::Acquire)
    }

    /// The last batch that has retired, and all before it.
    pub(crate) fn retired(&self) -> Serial {
        // Acquire: pairs with the Release below; what the batch wrote is visible.
        let known = self.retired.load(Ordering::Acquire);
        if known == self.submitted() { known } else { self.look() }
    }

    fn look(&self) -> Serial {
        let mut in_flight = self.in_flight.lock();
        // Relaxed: written under this lock only.
        let mut retired = self.retired.load(Ordering::Relaxed);
        while let Some((serial, _)) = in_flight.pop_front_if(|(_, flight)| flight.is_over()) {
            retired = serial;
        }
        // Release: pairs with the Acquire in `retired`.
        self.retired.store(retired, Ordering::Release);
        retired
    }

    /// What to wait for until the batch `serial`, which was submitted, has retired; nothing if it has.
    pub(crate) fn flight(&self, serial: Serial) -> Option<F> {
        let in_flight = self.in_flight.lock();
        // Relaxed: written under this lock only.
        if serial <= self.retired.load(Ordering::Relaxed) {
            return None;
        }
        in_flight.iter().find(|(number, _)| *number >= serial).map(|(_, flight)| flight.clone())
    }

    /// From now on what this context submits comes after that batch of another one: a semaphore sees to it.
    pub(crate) fn follow(&self, clock: &Arc<Self>, serial: Serial) {
        let mut follows = self.follows.lock();
        // What has retired is before everything, and contexts that are gone have retired. Relaxed: who sees an old count
        // keeps what he need not.
        let is_over = |entry: &Follows<F>| {
            entry.clock.upgrade().is_none_or(|clock| clock.retired.load(Ordering::Relaxed) >= entry.serial)
        };
        follows.retain(|entry| !is_over(entry));
        match follows.iter_mut().find(|entry| entry.id == clock.id) {
            Some(entry) => entry.serial = serial.max(entry.serial),
            None => follows.push(Follows { clock: Arc::downgrade(clock), id: clock.id, serial }),
        }
    }

    fn is_after(&self, clock: u64, serial: Serial) -> bool {
        self.follows.lock().iter().any(|entry| entry.id == clock && entry.serial >= serial)
    }

    /// Whether the batch `serial` is submitted, so that what follows on that queue is after it without waiting.
    fn orders(&self, serial: Serial, line: &F::Line) -> bool {
        serial <= self.submitted() && self.flight(serial).is_none_or(|flight| flight.precedes(line))
    }
}

impl<F: Flight> fmt::Debug for Clock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for eyes only.
        let [submitted, retired] = [&self.submitted, &self.retired].map(|count| count.load(Ordering::Relaxed));
        write!(f, "Clock({}, submitted {submitted}, retired {retired})", self.id)
    }
}

/// How a command, or the host, uses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is only read.
    Read,
    /// It may be written.
    Write,
}

impl Access {
    pub(crate) fn writes(self) -> bool {
        self == Self::Write
    }
}

/// A batch of some context.
#[derive(Debug)]
pub(crate) struct Moment<F: Flight> {
    pub(crate) clock: Arc<Clock<F>>,
    pub(crate) serial: Serial,
}

impl<F: Flight> Clone for Moment<F> {
    fn clone(&self) -> Self {
        Self { clock: Arc::clone(&self.clock), serial: self.serial }
    }
}

/// Who uses an object, until when.
#[derive(Debug)]
pub(crate) struct Usage<F: Flight> {
    /// One for each context that uses it; seldom more than one.
    entries: Mutex<SmallVec<[Entry<F>; 1]>>,
}

impl<F: Flight> Default for Usage<F> {
    fn default() -> Self {
        Self { entries: Mutex::new(SmallVec::new()) }
    }
}

#[derive(Debug)]
struct Entry<F: Flight> {
    clock: Arc<Clock<F>>,
    read: Serial,
    write: Serial,
}

impl<F: Flight> Entry<F> {
    /// The last batch that someone who accesses the object so must come after.
    fn until(&self, access: Access) -> Serial {
        if access.writes() { self.read.max(self.write) } else { self.write }
    }

    fn is_over(&self) -> bool {
        self.until(Access::Write) <= self.clock.retired()
    }
}

/// Another context's batch that must come first.
#[derive(Debug)]
pub(crate) enum First<F: Flight> {
    /// It must be done before.
    Done(Moment<F>),
    /// It must be submitted before, and nobody waits for it.
    Submitted(Moment<F>),
}

impl<F: Flight> Usage<F> {
    /// Notes that the open batch `serial` of `clock` uses the object: whether it is the batch's first use of it. If
    /// another context must come first, nothing is noted and that context's batch is the error.
    ///
    /// `fresh`: the access writes nothing but what was never valid, so it need not wait for anybody. Batches of others that
    /// are still open are submitted all the same: a dispatch that is repeated there does not look at its objects again,
    /// and what it does from now on comes after this.
    pub(crate) fn enter(
        &self,
        clock: &Arc<Clock<F>>,
        serial: Serial,
        access: Access,
        fresh: bool,
    ) -> Result<bool, First<F>> {
        let mut entries = self.entries.lock();
        for entry in entries.iter().filter(|entry| entry.clock.id != clock.id) {
            let until = entry.until(access);
            let moment = || Moment { clock: Arc::clone(&entry.clock), serial: until };
            if fresh {
                if until > entry.clock.submitted() {
                    return Err(First::Submitted(moment()));
                }
                continue;
            }
            let ordered = || entry.clock.orders(until, &clock.line) || clock.is_after(entry.clock.id, until);
            if until > entry.clock.retired() && !ordered() {
                return Err(First::Done(moment()));
            }
        }
        if let Some(entry) = entries.iter_mut().find(|entry| entry.clock.id == clock.id) {
            let first = entry.until(Access::Write) < serial;
            *(if access.writes() { &mut entry.write } else { &mut entry.read }) = serial;
            return Ok(first);
        }
        entries.retain(|entry| !entry.is_over());
        let (read, write) = if access.writes() { (0, serial) } else { (serial, 0) };
        entries.push(Entry { clock: Arc::clone(clock), read, write });
        Ok(true)
    }

    /// Whether some batch that is not done, recorded or running, stands in the way of this access.
    pub(crate) fn is_busy(&self, access: Access) -> bool {
        self.entries.lock().iter().any(|entry| entry.until(access) > entry.clock.retired())
    }

    /// The batches that stand in the way of this access.
    pub(crate) fn in_the_way(&self, access: Access) -> SmallVec<[Moment<F>; 1]> {
        let entries = self.entries.lock();
        let busy = entries.iter().filter(|entry| entry.until(access) > entry.clock.retired());
        busy.map(|entry| Moment { clock: Arc::clone(&entry.clock), serial: entry.until(access) }).collect()
    }
}

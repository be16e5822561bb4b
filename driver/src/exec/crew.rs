//! A crew: the threads that run one phase, and the counter that shares its units out.
//!
//! The conductor makes a crew for one phase and drops it afterwards, so an old phase is never mistaken for a new one.
//! Members enter only while the crew is on the board, under the board's lock; the conductor takes it off the board
//! under the same lock and then waits for the members inside. See README.md, "late joiner".

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::sync::primitives::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, spin_until};

/// How long the conductor spins for the last members: their chunks are small by then.
const SPIN: Duration = Duration::from_micros(20);

/// Flag in `members`: the conductor sleeps until they have left.
const AWAITED: usize = 1;
/// One member, in units of `members`.
const MEMBER: usize = 2;

/// A phase that several threads run. `P` is what they need to run it.
#[derive(Debug)]
pub(super) struct Crew<P> {
    /// The first unit that is not taken. Apart from the fields that no thread changes while it is contended.
    next: CachePadded<AtomicU64>,
    end: u64,
    /// A chunk is the units left divided by `share`: large at first, single units at the end.
    share: u64,
    members: AtomicUsize,
    /// Emptied by `disband`, so that a thread which still holds the crew does not hold what the batch owns.
    payload: Mutex<Option<Arc<P>>>,
    /// Guards only the sleep of the conductor.
    leaving: Mutex<()>,
    left: Condvar,
}

impl<P> Crew<P> {
    /// A crew of at most `size` threads for `units`.
    pub(super) fn new(units: Range<u64>, size: usize, payload: Arc<P>) -> Arc<Self> {
        Arc::new(Self {
            next: CachePadded::new(AtomicU64::new(units.start)),
            end: units.end,
            share: (size as u64).saturating_mul(4).max(1),
            members: AtomicUsize::new(0),
            payload: Mutex::new(Some(payload)),
            leaving: Mutex::new(()),
            left: Condvar::new(),
        })
    }

    /// Takes the next chunk of units, for the caller alone.
    pub(super) fn take(&self) -> Option<Range<u64>> {
        // Relaxed: the counter carries no data. What the units need was published by the board's lock, what they did is
        // published by `Member::drop`.
        let mut next = self.next.load(Ordering::Relaxed);
        while next < self.end {
            let chunk = ((self.end - next) / self.share).max(1);
            match self.next.compare_exchange_weak(next, next + chunk, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(next..next + chunk),
                Err(now) => next = now,
            }
        }
        None
    }

    /// Becomes a member. To be called under the board's lock while the crew is on the board.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Member<P>> {
        let payload = self.payload.lock().clone()?;
        // Relaxed: `disband` comes after the crew has left the board, whose lock orders the two.
        self.members.fetch_add(MEMBER, Ordering::Relaxed);
        Some(Member { crew: Arc::clone(self), payload: Some(payload) })
    }

    /// Waits until all members have left, and drops the payload. To be called once, after `Board::close`.
    pub(super) fn disband(&self) {
        // Acquire: pairs with the Release in `Member::drop`; the members' units happened before what follows.
        if !spin_until(SPIN, || self.members.load(Ordering::Acquire) == 0) {
            self.members.fetch_or(AWAITED, Ordering::Relaxed);
            let mut leaving = self.leaving.lock();
            // Acquire: as above.
            while self.members.load(Ordering::Acquire) >= MEMBER {
                leaving = self.left.wait(leaving);
            }
        }
        self.payload.lock().take();
    }
}

/// Proof that a thread works on a crew's phase; the conductor waits for its drop.
#[derive(Debug)]
pub(super) struct Member<P> {
    crew: Arc<Crew<P>>,
    payload: Option<Arc<P>>,
}

impl<P> Member<P> {
    /// The crew.
    pub(super) fn crew(&self) -> &Arc<Crew<P>> {
        &self.crew
    }

    /// What the phase needs; `Some` until the drop.
    pub(super) fn payload(&self) -> Option<&P> {
        self.payload.as_deref()
    }
}

impl<P> Drop for Member<P> {
    fn drop(&mut self) {
        // The payload first: when the conductor continues, its own handle must be the last to what the batch owns.
        self.payload = None;
        // Release: pairs with the Acquire in `disband`; publishes what the units did.
        // (An acquire-release chain through several members is kept, since each is a read-modify-write.)
        let before = self.crew.members.fetch_sub(MEMBER, Ordering::Release);
        if before == MEMBER | AWAITED {
            // Under the lock, so that the conductor is either before its test or asleep.
            let _leaving = self.crew.leaving.lock();
            self.crew.left.notify_all();
        }
    }
}

//! The driver set that holds a set's names for one layout, and the batches that use it.
//!
//! A driver set is filled when a dispatch needs it. If the names have changed since, it is written again, but only if
//! no batch of any context uses it; otherwise another one takes its place. The set's lock protects this: of two
//! contexts, the second finds that the batch of the first uses the driver set. `replace/loom_tests/sets.rs` explores
//! this code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ids::{Access, Serial};
use crate::serial::{Clock, SubmittedBatch, Usage};

/// The place of a driver set.
#[derive(Debug)]
pub(crate) struct Place<D, S: SubmittedBatch> {
    current: Option<Filled<D, S>>,
}

#[derive(Debug)]
struct Filled<D, S: SubmittedBatch> {
    set: D,
    /// The number of its contents: unique, and never that of a cached set.
    number: u64,
    /// The change up to which it holds the names.
    until: u64,
    usage: Usage<S>,
}

/// The driver set to be filled.
#[derive(Debug)]
pub(crate) enum FillTarget<'a, D> {
    /// This one, which no batch uses and which holds the names up to a change.
    This(&'a D, u64),
    /// A new one. Batches use the current one, which holds the names up to a change.
    Another(&'a D, u64),
    /// The first one.
    First,
}

impl<D, S: SubmittedBatch> Default for Place<D, S> {
    fn default() -> Self {
        Self { current: None }
    }
}

impl<D: Clone, S: SubmittedBatch> Place<D, S> {
    /// The driver set that holds the names up to the change `now`, with its number, for a command of the open batch
    /// `serial` of `clock`. If there is none, `fill` writes and returns it. The caller holds the set's lock.
    pub(crate) fn take<E>(
        &mut self,
        now: u64,
        (clock, serial): (&Arc<Clock<S>>, Serial),
        fill: impl FnOnce(FillTarget<'_, D>) -> Result<D, E>,
    ) -> Result<(D, u64), E> {
        let filled = match self.current.take() {
            Some(current) if current.until == now => current,
            Some(mut current) if !current.usage.is_busy(Access::Write) => {
                let result = fill(FillTarget::This(&current.set, current.until));
                if result.is_ok() {
                    (current.until, current.number) = (now, next_number());
                }
                // After an error it holds some of the changes, and the next call writes all of them again.
                let current = self.current.insert(current);
                result?;
                return Ok(current.enter(clock, serial));
            }
            Some(current) => {
                let set = fill(FillTarget::Another(&current.set, current.until));
                if set.is_err() {
                    self.current = Some(current);
                }
                Filled::new(set?, now)
            }
            None => Filled::new(fill(FillTarget::First)?, now),
        };
        Ok(self.current.insert(filled).enter(clock, serial))
    }

    /// Whether there is a driver set that holds names from before the change `now`.
    pub(crate) fn is_older(&self, now: u64) -> bool {
        self.current.as_ref().is_some_and(|current| current.until < now)
    }
}

impl<D: Clone, S: SubmittedBatch> Filled<D, S> {
    fn new(set: D, until: u64) -> Self {
        Self { set, number: next_number(), until, usage: Usage::default() }
    }

    /// Notes that the batch uses it.
    fn enter(&self, clock: &Arc<Clock<S>>, serial: Serial) -> (D, u64) {
        let entered = self.usage.enter(clock, serial, Access::Read, false);
        debug_assert!(entered.is_ok(), "readers do not conflict");
        (self.set.clone(), self.number)
    }
}

/// Numbers above those of cached sets, which each context counts from 1 on.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    // Relaxed: numbers only have to differ.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

//! Outcome of invalidations, host writes and respecifications: the change of the storage and the waits of the host; and
//! the counters of these outcomes.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::ids::ObjectId;

bitflags::bitflags! {
    /// Reasons for which a call let the host wait.
    ///
    /// ```
    /// use spelter::{Waits, testing};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// let _hold = testing::hold(&context)?;
    /// context.fill(&buffer, 1)?; // in use, and all of it holds data
    /// let _no_memory = testing::fail_allocations(&context, ..);
    /// let outcome = context.write(&buffer, 0, &[2u32])?; // there is no memory for a staging buffer
    /// assert_eq!(outcome.waits, Waits::PRESSURE);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Waits: u8 {
        /// For the batches that use the object.
        const USERS = 1;
        /// For the batches that use the object, since there is no memory for another one.
        const NO_MEMORY = 2;
        /// For batches that use replaced objects or staging buffers, which take more than their budget.
        const BUDGET = 4;
        /// For all batches, since memory is exhausted.
        const PRESSURE = 8;
        /// For a host copy in progress, of another thread, to or from the same bytes.
        const HOST_COPY = 16;
        /// For the older half of the context's batches in flight, of which there are too many.
        const BATCHES = 32;
        /// For the batches that write what is read back.
        const READ_BACK = 64;
        /// For a fence, or for all that a context has recorded: the call is a wait
        /// ([`Fence::wait`](crate::Fence::wait), [`Context::finish`](crate::Context::finish)).
        const FENCE = 128;
    }
}

impl Waits {
    /// Waits that count in `Stats::stalls_taken`.
    const STALLS: Self = Self::USERS.union(Self::NO_MEMORY).union(Self::BUDGET).union(Self::PRESSURE);

    /// Adds a reason if the host waited for it.
    pub(crate) fn note(&mut self, why: Self, waited: bool) {
        self.set(why, self.contains(why) || waited);
    }

    /// Whether any of them counts as a stall of a host write, mapping or invalidation.
    pub(crate) fn stalls(self) -> bool {
        self.intersects(Self::STALLS)
    }
}

/// The names, as in `NO_MEMORY | BUDGET`.
impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// What happened to the storage of a resource.
///
/// ```
/// use spelter::Action;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (frame, copy) = (context.buffer(8).build()?, context.buffer_zeroed(8)?);
/// assert_eq!(context.invalidate(&frame)?.action, Action::NothingValid);
/// assert_eq!(context.write(&frame, 0, &[1u32, 2])?.action, Action::InPlace);
/// assert_eq!(context.invalidate(&frame)?.action, Action::Forgotten); // idle
/// context.write(&frame, 0, &[1u32, 2])?;
/// let old = frame.object()?.id;
/// context.copy(&frame, 0, &copy, 0, 8)?; // recorded: the buffer is in use
/// assert_eq!(context.write(&frame, 4, &[3u32])?.action, Action::Staged { bytes: 4 });
/// let action = context.invalidate(&frame)?.action;
/// assert_eq!(action, Action::Replaced { old, new: frame.object()?.id });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// A write of no bytes: nothing.
    Nothing,
    /// An invalidation found no defined data.
    NothingValid,
    /// The object is idle: its contents were forgotten, and it stays.
    Forgotten,
    /// The object is in use and stays; its contents, or the invalidated part of them, were forgotten, and later writes
    /// there are ordered after its present users.
    ForgottenInOrder,
    /// The resource has a new object. The old one lives until the batches that use it have retired.
    Replaced {
        /// The object that the resource had before.
        old: ObjectId,
        /// The object that it has now.
        new: ObjectId,
    },
    /// The host wrote, or mapped, the object itself.
    InPlace,
    /// The host wrote to a staging buffer, from which a command copies in order. A mapping copies when it is unmapped.
    Staged {
        /// Bytes of the staging buffers that the call wrote, or mapped.
        bytes: u64,
    },
    /// The host has the resource mapped: it keeps its contents.
    Refused,
}

impl Action {
    /// Whether the resource has another object than before.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// context.fill(&buffer, 1)?; // in use
    /// assert!(context.invalidate(&buffer)?.action.is_replaced());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_replaced(self) -> bool {
        matches!(self, Self::Replaced { .. })
    }
}

/// What a call did to the storage of its resource, and whether the host waited.
///
/// ```
/// use spelter::Action;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (frame, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
/// context.copy(&frame, 0, &copy, 0, 4)?; // recorded: the buffer is in use
/// let outcome = context.upload(&frame, &[2u32])?;
/// assert!(outcome.action.is_replaced() && !outcome.waited());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Outcome {
    /// What happened to the storage.
    pub action: Action,
    /// Why the host waited; empty if it did not.
    pub waits: Waits,
}

impl Outcome {
    pub(crate) fn new(action: Action, waits: Waits) -> Self {
        Self { action, waits }
    }

    /// Whether the host waited.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// assert!(!context.invalidate(&context.buffer_zeroed(4)?)?.waited());
    /// # Ok(())
    /// # }
    /// ```
    pub fn waited(&self) -> bool {
        !self.waits.is_empty()
    }
}

/// Counted outcomes of one resource ([`Buffer::outcomes`](crate::Buffer::outcomes)) or of the calls of one context
/// ([`Context::outcomes`](crate::Context::outcomes)).
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (a, b) = (context.buffer_from(&[1u32])?, context.buffer_from(&[2u32])?);
/// context.copy(&a, 0, &b, 0, 4)?;
/// context.upload(&a, &[3u32])?; // in use: replaced
/// assert_eq!((a.outcomes().replaced, b.outcomes().replaced, context.outcomes().replaced), (1, 0, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcomes {
    /// [`Action::NothingValid`].
    pub nothing_valid: u64,
    /// [`Action::Forgotten`].
    pub forgotten: u64,
    /// [`Action::ForgottenInOrder`].
    pub forgotten_in_order: u64,
    /// [`Action::Replaced`].
    pub replaced: u64,
    /// [`Action::InPlace`].
    pub in_place: u64,
    /// [`Action::Staged`].
    pub staged: u64,
    /// [`Action::Refused`].
    pub refused: u64,
    /// Calls of any of these outcomes that waited.
    pub waited: u64,
}

/// The counters that [`Outcomes`] shows.
#[derive(Debug, Default)]
pub(crate) struct OutcomeCounts {
    /// By [`place`].
    actions: [AtomicU64; 7],
    waited: AtomicU64,
}

/// The counter of an action.
fn place(action: Action) -> Option<usize> {
    Some(match action {
        Action::Nothing => return None,
        Action::NothingValid => 0,
        Action::Forgotten => 1,
        Action::ForgottenInOrder => 2,
        Action::Replaced { .. } => 3,
        Action::InPlace => 4,
        Action::Staged { .. } => 5,
        Action::Refused => 6,
    })
}

impl OutcomeCounts {
    pub(crate) fn note(&self, outcome: &Outcome) {
        // Relaxed: statistics order nothing.
        if let Some(place) = place(outcome.action) {
            self.actions[place].fetch_add(1, Relaxed);
        }
        if outcome.waited() {
            self.waited.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Outcomes {
        let [nothing_valid, forgotten, forgotten_in_order, replaced, in_place, staged, refused] =
            std::array::from_fn(|place| self.actions[place].load(Relaxed));
        let waited = self.waited.load(Relaxed);
        Outcomes { nothing_valid, forgotten, forgotten_in_order, replaced, in_place, staged, refused, waited }
    }
}

//! For tests of programs that depend on when a resource is in use, or on memory that runs out: states that a test
//! chooses, rather than races with the run time of a kernel.
//!
//! - [`hold`] holds batches back, so that what they use *is* in use, until the test releases them or the host waits
//!   for them. `assert!(hold.is_held())` after a call shows that the call did not wait.
//! - [`deny_findings`] makes a test fail if checked mode finds an error.
//! - [`fail_allocations`] makes chosen allocations of storage fail.
//!
//! The chapter "Testing invalidation" of the book has a test for each rule.
//!
//! ```
//! use spelter::{Action, testing};
//!
//! # fn main() -> Result<(), spelter::Error> {
//! let context = spelter::Context::new()?;
//! let (frame, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
//! let hold = testing::hold(&context)?;
//! context.copy(&frame, 0, &copy, 0, 4)?;
//! context.flush()?; // submitted, and held back
//! assert!(frame.is_busy());
//! assert!(context.upload(&frame, &[2u32])?.action.is_replaced());
//! assert!(hold.is_held()); // nothing has waited
//! hold.release();
//! assert_eq!(context.read::<u32>(&copy)?, [1]);
//! assert_eq!(context.invalidate(&frame)?.action, Action::Forgotten); // idle
//! # Ok(())
//! # }
//! ```

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

use spelter_driver::check::Severity;
use spelter_driver::check::report::{self, ShownGroups};

use crate::context::Context;
use crate::error::{Error, rule};
pub use crate::holds::OpenedBy;
use crate::holds::{HeldBatches, WhenAwaited};
use crate::memory::Fault;

/// Batches that are held back: see [`hold`]. Dropping it releases them, so a test that fails does not hang.
///
/// ```
/// use spelter::testing;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(4)?;
/// let hold = testing::hold(&context)?;
/// context.fill(&buffer, 1)?;
/// let fence = context.flush()?;
/// assert!(hold.is_held() && !fence.is_done());
/// drop(hold);
/// fence.wait()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it releases the batches"]
pub struct Hold {
    batches: Arc<HeldBatches>,
    /// Keeps the context until the batches are released: a context waits for its batches when it is dropped.
    _context: Context,
}

/// Holds back what the context records from now on: its batches are submitted as usual, and do not start. Commands
/// recorded before are submitted and run. Other contexts' batches that come after a held one, or go through the same
/// queue later, are held, too.
///
/// If a call waits for a held batch the hold opens ([`Hold::opened_by`] then returns [`OpenedBy::Wait`]) and the call
/// returns. So no test hangs, and `hold.is_held()` shows that nothing waited. [`Fence::wait_for`](crate::Fence), which
/// has a time limit, does not open it; nor does a task that awaits the fence, which blocks no thread: release the hold
/// before such a task is all that is left to run.
///
/// Errors are those of [`Context::flush`].
///
/// ```
/// use spelter::{Waits, testing};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(8)?;
/// let hold = testing::hold(&context)?;
/// context.fill(&buffer, 1)?;
/// context.write(&buffer, 0, &[2u32])?; // staged
/// assert!(hold.is_held());
/// assert_eq!(context.read::<u32>(&buffer)?, [2, 1]); // waits
/// assert!(!hold.is_held());
/// # Ok(())
/// # }
/// ```
pub fn hold(context: &Context) -> Result<Hold, Error> {
    hold_with(context, WhenAwaited::Open)
}

/// Like [`hold`], for tests with threads: a call that waits for a held batch blocks until another thread releases the
/// hold, but no longer than `limit`. Then the hold opens ([`OpenedBy::TimeLimit`]), so that no test hangs.
///
/// [`Error::Options`] if the limit is 0; else the errors of [`Context::flush`].
///
/// ```
/// use std::time::Duration;
///
/// use spelter::testing;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (buffer, limit) = (context.buffer_zeroed(4)?, Duration::from_secs(20));
/// let hold = testing::hold_until_released(&context, limit)?;
/// context.fill(&buffer, 1)?;
/// std::thread::scope(|scope| {
///     let read = scope.spawn(|| context.read::<u32>(&buffer));
///     assert!(hold.until_awaited(limit)); // the other thread waits
///     assert_eq!(context.stats().waits_in_progress(), 1);
///     hold.release();
///     assert_eq!(read.join().expect("it does not panic")?, [1]);
///     Ok(())
/// })
/// # }
/// ```
pub fn hold_until_released(context: &Context, limit: Duration) -> Result<Hold, Error> {
    if limit.is_zero() {
        return Err(Error::Options(format!("a hold of 0 s (rule: {})", rule::HOLD_TIME)));
    }
    hold_with(context, WhenAwaited::Block(limit))
}

fn hold_with(context: &Context, when_awaited: WhenAwaited) -> Result<Hold, Error> {
    let semaphore = context.device().create_timeline_semaphore(0);
    let batches = Arc::new(HeldBatches::new(semaphore, when_awaited));
    context.inner().lock().timeline.hold(&batches)?;
    Ok(Hold { batches, _context: context.clone() })
}

impl Hold {
    /// Whether the batches are held back still.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let hold = spelter::testing::hold(&context)?;
    /// assert!(hold.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_held(&self) -> bool {
        self.opened_by().is_none()
    }

    /// Why the hold is open; `None` while it holds.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let hold = spelter::testing::hold(&context)?;
    /// context.finish()?; // waits
    /// assert_eq!(hold.opened_by(), Some(spelter::testing::OpenedBy::Wait));
    /// # Ok(())
    /// # }
    /// ```
    pub fn opened_by(&self) -> Option<OpenedBy> {
        self.batches.state.opened_by()
    }

    /// The number of threads that wait for a held batch.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// assert_eq!(spelter::testing::hold(&context)?.waiting(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn waiting(&self) -> u64 {
        self.batches.state.waiting()
    }

    /// Returns when a thread waits for a held batch, or after `limit`. Returns whether one does.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let hold = spelter::testing::hold(&context)?;
    /// assert!(!hold.until_awaited(std::time::Duration::from_millis(1)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn until_awaited(&self, limit: Duration) -> bool {
        self.batches.state.until_awaited(limit)
    }

    /// Lets the batches start.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// let hold = spelter::testing::hold(&context)?;
    /// context.fill(&buffer, 1)?;
    /// let fence = context.flush()?;
    /// hold.release();
    /// fence.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn release(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.batches.open(OpenedBy::Release);
    }
}

/// Allocations that fail until this is dropped: see [`fail_allocations`].
///
/// ```
/// use spelter::testing;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// {
///     let failing = testing::fail_allocations(&context, ..);
///     assert!(context.buffer(4).build().is_err());
///     assert!(failing.failed() > 0);
/// }
/// context.buffer(4).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it ends the failures"]
pub struct FailingAllocations {
    context: Context,
    fault: Arc<Fault>,
}

/// Makes allocations of storage on the context's device fail for lack of memory: those with these numbers, counted from
/// 1 on, beginning now. `3..=3` is the third, `..` every one.
///
/// Storage is allocated for a new buffer or image, for the new object of a rename or of a respecification, and for
/// staging; storage of an earlier object that is used again is no allocation. The tracker frees what it can and tries
/// again, so one failure is often without effect; `n..` makes the n-th and all later attempts fail.
///
/// ```
/// use spelter::{Error, testing};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let failing = testing::fail_allocations(&context, 2..);
/// let _first = context.buffer(64).build()?;
/// let error = context.buffer(64).label("second").build().unwrap_err();
/// assert_eq!(error.to_string(), "out of memory: buffer `second` of 64 bytes");
/// assert_eq!((failing.seen(), failing.failed()), (3, 2)); // with one more attempt
/// # Ok(())
/// # }
/// ```
pub fn fail_allocations(context: &Context, numbers: impl RangeBounds<u64>) -> FailingAllocations {
    let first = match numbers.start_bound() {
        Bound::Included(&first) => first.max(1),
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 1,
    };
    let last = match numbers.end_bound() {
        Bound::Included(&last) => last,
        Bound::Excluded(&after) => after.saturating_sub(1),
        Bound::Unbounded => u64::MAX,
    };
    let fault = context.share().memory().faults.add(first..=last);
    FailingAllocations { context: context.clone(), fault }
}

impl FailingAllocations {
    /// The number of allocations so far, whether they failed or not.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let failing = spelter::testing::fail_allocations(&context, 9..);
    /// let _buffer = context.buffer(4).build()?;
    /// assert_eq!(failing.seen(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn seen(&self) -> u64 {
        self.fault.seen()
    }

    /// The number of allocations that failed because of it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let failing = spelter::testing::fail_allocations(&context, 1..=1);
    /// let _buffer = context.buffer(4).build()?; // at the second attempt
    /// assert_eq!((failing.failed(), failing.seen()), (1, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn failed(&self) -> u64 {
        self.fault.failed()
    }
}

impl Drop for FailingAllocations {
    fn drop(&mut self) {
        self.context.share().memory().faults.remove(&self.fault);
    }
}

/// A test fails if checked mode found an error, or did not check everything: see [`deny_findings`].
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::builder().check(Default::default()).build()?;
/// let _denied: spelter::testing::DeniedFindings = spelter::testing::deny_findings(&context);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "findings are looked for when it is dropped"]
pub struct DeniedFindings {
    context: Context,
    allows_unchecked: bool,
}

impl DeniedFindings {
    /// Accepts that a part of the accesses was not checked, for lack of memory
    /// ([`CheckOptions::memory`](crate::check::CheckOptions::memory)).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().check(Default::default()).build()?;
    /// let _denied = spelter::testing::deny_findings(&context).allow_unchecked();
    /// # Ok(())
    /// # }
    /// ```
    pub fn allow_unchecked(mut self) -> Self {
        self.allows_unchecked = true;
        self
    }
}

/// Makes the calling test fail at its end if checked mode ([`ContextBuilder::check`](crate::ContextBuilder::check))
/// found an error on the device by then: when the result is dropped, it waits for the commands of the context, takes
/// the findings and panics with the text of the errors, unless the thread is panicking already. It panics, too, if a
/// part of the accesses was not checked, since then there may be errors that were not found;
/// [`DeniedFindings::allow_unchecked`] accepts that.
///
/// ```should_panic
/// use spelter::testing;
///
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::builder().check(Default::default()).build()?;
/// let _denied = testing::deny_findings(&context);
/// let racy = "@group(0) @binding(0) var<storage, read_write> sum: u32;
///     @compute @workgroup_size(2) fn main() { sum += 1u; }";
/// let (program, sum) = (context.program_wgsl(racy)?, context.buffer_zeroed(4)?);
/// context.dispatch(&program).bind(0, 0, &sum).groups([1, 1, 1])?;
/// # Ok(())
/// # } // error[SPELTER-RACE-RAW]: data race (read after write) in `sum` (set 0, binding 0), bytes 0..4 …
/// ```
pub fn deny_findings(context: &Context) -> DeniedFindings {
    DeniedFindings { context: context.clone(), allows_unchecked: false }
}

impl Drop for DeniedFindings {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // A device that is lost made the test's own calls fail.
        let findings = self.context.findings().unwrap_or_default();
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        // Races of one cause are one report.
        let mut groups = ShownGroups::default();
        let errors: String =
            errors.filter(|finding| groups.shows(finding)).map(|finding| report::text(finding, &[], false)).collect();
        assert!(errors.is_empty(), "checked mode found errors:\n{errors}");
        let stats = self.context.check_stats();
        if stats.is_partial() && !self.allows_unchecked {
            let gaps = report::gaps(&stats, "`CheckOptions::memory`").join("; ");
            panic!("checked mode did not check everything: {gaps}");
        }
    }
}

//! Fences: completion of flushed commands.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::batch::TimelinePoint;
use crate::error::Error;
use crate::share::Share;

/// Completion of all commands that were recorded in a context before a [`Context::flush`](crate::Context::flush). It
/// may be dropped at any time.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer(1 << 20).build()?;
/// context.fill(&buffer, 1)?;
/// let fence = context.flush()?;
/// // … other work …
/// fence.wait()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fence {
    share: Arc<Share>,
    point: TimelinePoint,
}

impl Fence {
    pub(crate) fn new(share: &Arc<Share>, point: TimelinePoint) -> Self {
        Self { share: Arc::clone(share), point }
    }

    /// Whether the commands are done. One comparison.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let fence = context.flush()?; // nothing was recorded
    /// assert!(fence.is_done());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_done(&self) -> bool {
        self.point.clock.retired() >= self.point.serial
    }

    /// Returns when the commands are done; executes them on this thread meanwhile. [`Error::DeviceLost`] if they never
    /// will be.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(64).build()?;
    /// context.fill(&buffer, 1)?;
    /// let fence = context.flush()?;
    /// fence.wait()?;
    /// assert!(fence.is_done());
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self) -> Result<(), Error> {
        self.share.wait(&self.point)
    }

    /// Waits for at most `limit` and returns whether the commands are done. [`Error::DeviceLost`] if they never will
    /// be.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(64).build()?;
    /// context.fill(&buffer, 1)?;
    /// assert!(context.flush()?.wait_for(std::time::Duration::from_secs(10))?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_for(&self, limit: Duration) -> Result<bool, Error> {
        let done = match self.point.clock.submission(self.point.serial) {
            Some(submission) => {
                let done = submission.wait_for(limit)?;
                self.share.retire(self.point.clock.id());
                done
            }
            None => true,
        };
        self.share.check_alive().map(|()| done)
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({}, {})", self.point.serial, if self.is_done() { "done" } else { "pending" })
    }
}

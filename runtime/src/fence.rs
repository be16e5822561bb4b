//! Fences: when what was flushed is done.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::batch::Moment;
use crate::error::Error;
use crate::share::Share;

/// Tells when all that was recorded in a context before a [`Context::flush`](crate::Context::flush) is done. Need not be
/// kept.
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
    moment: Moment,
}

impl Fence {
    pub(crate) fn new(share: &Arc<Share>, moment: Moment) -> Self {
        Self { share: Arc::clone(share), moment }
    }

    /// Whether it is done. One comparison.
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
        self.moment.clock.retired() >= self.moment.serial
    }

    /// Returns when it is done; works on it meanwhile. [`Error::DeviceLost`] if it never will be.
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
        self.share.wait(&self.moment)
    }

    /// Waits no longer than `limit`; whether it is done. [`Error::DeviceLost`] if it never will be.
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
        let done = match self.moment.clock.flight(self.moment.serial) {
            Some(flight) => {
                let done = flight.wait_for(limit)?;
                self.share.retire(self.moment.clock.id());
                done
            }
            None => true,
        };
        self.share.check_alive().map(|()| done)
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({}, {})", self.moment.serial, if self.is_done() { "done" } else { "pending" })
    }
}

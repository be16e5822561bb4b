//! Fences: completion of flushed commands.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batch::TimelinePoint;
use crate::error::Error;
use crate::events::{Event, EventLog};
use crate::outcome::Waits;
use crate::share::Share;
use crate::timestamps::{Timestamp, Timestamps};
use crate::trace::About;

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
    /// The log of the context.
    log: Arc<EventLog>,
    /// Those of the submitted command buffer, if it has any.
    timestamps: Option<Arc<Timestamps>>,
}

impl Fence {
    pub(crate) fn new(share: &Arc<Share>, point: TimelinePoint, log: &Arc<EventLog>) -> Self {
        Self { share: Arc::clone(share), point, log: Arc::clone(log), timestamps: None }
    }

    /// The same with the timestamps of the submission.
    pub(crate) fn with_timestamps(self, timestamps: Option<Arc<Timestamps>>) -> Self {
        Self { timestamps, ..self }
    }

    /// The timestamps of the submitted command buffer and of those that it executes, in the order in which they were
    /// taken ([`Recorder::timestamp`](crate::Recorder::timestamp)); none for other fences. Waits for the fence.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(1 << 16)?;
    /// let commands = context.record(|commands| {
    ///     commands.timestamp("begin");
    ///     commands.fill(&buffer, 9)?;
    ///     commands.timestamp("end");
    ///     Ok(())
    /// })?;
    /// let times = context.submit(&commands)?.timestamps()?;
    /// println!("the fill took {} ns", times[1].nanoseconds - times[0].nanoseconds);
    /// assert!(context.flush()?.timestamps()?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn timestamps(&self) -> Result<Vec<Timestamp>, Error> {
        self.wait()?;
        self.timestamps.as_ref().map_or(Ok(Vec::new()), |timestamps| timestamps.read())
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
        self.noting(|| self.share.wait(&self.point))
    }

    /// Notes a wait in the log and in the timeline, unless the commands are done.
    fn noting<T>(&self, wait: impl FnOnce() -> T) -> T {
        if self.is_done() {
            return wait();
        }
        let (why, resource, start) = (Waits::FENCE, None, Instant::now());
        self.log.note(|| Event::WaitBegan { why, resource, batches: vec![self.point.id()] });
        let result = wait();
        self.log.note(|| Event::Waited { why, resource });
        if let Some(trace) = self.share.trace() {
            let about = About { batch: Some(self.point.id()), ..About::default() };
            trace.call("wait: fence", self.point.clock.id(), about, start);
        }
        result
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
                let done = self.noting(|| submission.wait_for(limit))?;
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

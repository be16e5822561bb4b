//! Fences: completion of flushed commands. To wait for it, to ask, to await, or to be called.

mod on_done;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use spelter_driver::FenceTask;

use crate::error::Error;
use crate::events::{Event, EventLog};
use crate::outcome::Waits;
use crate::share::Share;
use crate::submission::TimelinePoint;
use crate::timestamps::{Timestamp, Timestamps};
use crate::trace::About;

/// Completion of all commands that were recorded in a context before a [`Context::flush`](crate::Context::flush). It
/// may be dropped at any time.
///
/// It is a future, too, of any executor. Awaiting it blocks no thread, and does not execute the commands as
/// [`Fence::wait`] does: the device's workers do.
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
pub struct Fence {
    share: Arc<Share>,
    point: TimelinePoint,
    /// The log of the context.
    log: Arc<EventLog>,
    /// Those of the submitted command buffer, if it has any.
    timestamps: Option<Arc<Timestamps>>,
    /// The registration of the task that awaits this handle; clones have their own.
    task: FenceTask,
}

impl Clone for Fence {
    fn clone(&self) -> Self {
        let (share, log) = (Arc::clone(&self.share), Arc::clone(&self.log));
        Self { share, log, point: self.point.clone(), timestamps: self.timestamps.clone(), task: FenceTask::default() }
    }
}

impl Fence {
    pub(crate) fn new(share: &Arc<Share>, point: TimelinePoint, log: &Arc<EventLog>) -> Self {
        Self { share: Arc::clone(share), point, log: Arc::clone(log), timestamps: None, task: FenceTask::default() }
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

    /// Counts bytes that the host reads from a copy.
    pub(crate) fn count_read(&self, bytes: u64) {
        self.share.memory().counters.bytes_read.add(bytes);
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

    /// Calls a function when the commands are done, with [`Error::DeviceLost`] if they never will be. It is called on a
    /// thread of the process that calls such functions one after the other, never on this thread and never by a worker:
    /// so it may wait, record and read. If it panics, the process prints that and goes on.
    ///
    /// [`Error::OutOfMemory`] if the system has no thread for it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (buffer, (done, wait)) = (context.buffer_zeroed(64)?, std::sync::mpsc::channel());
    /// context.fill(&buffer, 1)?;
    /// context.flush()?.on_done(move |result| {
    ///     let _ = done.send(result);
    /// })?;
    /// assert_eq!(wait.recv().expect("it is called"), Ok(()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_done(&self, call: impl FnOnce(Result<(), Error>) + Send + 'static) -> Result<(), Error> {
        on_done::call_when_done(self.clone(), Box::new(call))
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

/// The commands are done, or will never be. May be polled again after that.
///
/// ```
/// use std::future::Future;
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// # fn main() -> Result<(), spelter::Error> {
/// async fn double(context: &spelter::Context, buffer: &spelter::Buffer) -> Result<Vec<u32>, spelter::Error> {
///     context.copy(buffer, 0, buffer, 4, 4)?;
///     context.flush()?.await?;
///     context.read(buffer)
/// }
/// let context = spelter::Context::new()?;
/// let buffer = context.buffer_from(&[7u32, 0])?;
/// let mut doubled = pin!(double(&context, &buffer));
/// let result = loop {
///     // What an executor does; it would sleep until the waker is called.
///     if let Poll::Ready(result) = doubled.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
///         break result;
///     }
/// };
/// assert_eq!(result?, [7, 7]);
/// # Ok(())
/// # }
/// ```
impl Future for Fence {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // The batch is submitted since the flush that made the fence.
        let polled = match this.point.clock.submission(this.point.serial) {
            Some(submission) => submission.poll(&mut this.task, context.waker()),
            None => Poll::Ready(Ok(())),
        };
        polled.map(|result| {
            this.share.retire(this.point.clock.id());
            result.and_then(|()| this.share.check_alive())
        })
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({}, {})", self.point.serial, if self.is_done() { "done" } else { "pending" })
    }
}

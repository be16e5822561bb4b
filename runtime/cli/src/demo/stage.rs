//! The environment and the result of a demo.

use std::time::{Duration, Instant};

use bytemuck::NoUninit;
use indicatif::ProgressBar;
use spelter::{Buffer, Context};

use super::picture::Picture;
use crate::failure::Failure;

/// The context a demo runs on, its progress bar, and the time that the device took.
pub(super) struct Stage<'a> {
    pub(super) context: &'a Context,
    pub(super) bar: &'a ProgressBar,
    spent: Duration,
}

impl<'a> Stage<'a> {
    pub(super) fn new(context: &'a Context, bar: &'a ProgressBar) -> Self {
        Self { context, bar, spent: Duration::ZERO }
    }

    /// Records commands with `record` and waits until they are done. The time of both counts.
    pub(super) fn timed(&mut self, record: impl FnOnce(&Context) -> Result<(), spelter::Error>) -> Result<(), Failure> {
        let start = Instant::now();
        record(self.context)?;
        self.context.finish()?;
        self.spent += start.elapsed();
        Ok(())
    }

    /// A buffer that holds `values`.
    pub(super) fn buffer<T: NoUninit>(&self, values: &[T]) -> Result<Buffer, Failure> {
        Ok(self.context.buffer_from(values)?)
    }

    /// A buffer of `count` words, all zero.
    pub(super) fn words(&self, count: usize) -> Result<Buffer, Failure> {
        Ok(self.context.buffer_zeroed(count as u64 * 4)?)
    }

    /// The result: `work` units in the measured time.
    pub(super) fn done(self, work: f64, unit: &'static str) -> Done {
        let seconds = self.spent.as_secs_f64().max(1e-9);
        Done { seconds, rate: work / seconds, unit, note: String::new(), picture: None }
    }
}

/// The checked result of a demo.
pub(super) struct Done {
    /// Seconds on the device.
    pub(super) seconds: f64,
    /// Units of work per second.
    pub(super) rate: f64,
    /// The unit: `GB/s`.
    pub(super) unit: &'static str,
    /// What was computed, with its size.
    pub(super) note: String,
    /// A picture to be saved.
    pub(super) picture: Option<Picture>,
}

impl Done {
    /// Sets the note.
    pub(super) fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Sets the picture.
    pub(super) fn picture(mut self, picture: Picture) -> Self {
        self.picture = Some(picture);
        self
    }
}

//! The environment and the result of a demo.

use std::time::{Duration, Instant};

use bytemuck::NoUninit;
use indicatif::ProgressBar;
use spelter::{Buffer, Context, Error};

use crate::failure::Failure;
use crate::rgb_picture::RgbPicture;
use crate::statistics::Samples;

/// Runs that are measured: as many as fit in this time, and some however long they take.
const TIME: Duration = Duration::from_millis(500);
const MIN_RUNS: usize = 5;
const MAX_RUNS: usize = 1000;

/// The context a demo runs on, and its progress bar.
pub(super) struct Stage<'a> {
    pub(super) context: &'a Context,
    bar: &'a ProgressBar,
}

impl<'a> Stage<'a> {
    pub(super) fn new(context: &'a Context, bar: &'a ProgressBar) -> Self {
        bar.set_length(MIN_RUNS as u64 + 1);
        Self { context, bar }
    }

    /// Records commands with `record` and waits until they are done: the run whose result is checked. It is the warm-up
    /// of [`Stage::measured`], too.
    pub(super) fn run(&self, record: impl Fn(&Context) -> Result<(), Error>) -> Result<(), Failure> {
        self.seconds(record).map(drop)
    }

    /// Repeats what was run, on the data that the run left. The result is the rate of the median run; a run has `work`
    /// units.
    pub(super) fn measured(
        &self,
        record: impl Fn(&Context) -> Result<(), Error>,
        work: f64,
        unit: &'static str,
    ) -> Result<Done, Failure> {
        let (start, mut all) = (Instant::now(), Vec::new());
        while all.len() < MIN_RUNS || start.elapsed() < TIME && all.len() < MAX_RUNS {
            all.push(self.seconds(&record)?);
        }
        let runs = Samples::new(all).ok_or_else(|| Failure::new("the clock is too coarse for it".to_owned()))?;
        Ok(Done { rate: work / runs.median(), runs, unit, note: String::new(), picture: None })
    }

    /// The time from recording commands until they are done, in seconds.
    fn seconds(&self, record: impl Fn(&Context) -> Result<(), Error>) -> Result<f64, Failure> {
        let start = Instant::now();
        record(self.context)?;
        self.context.finish()?;
        let took = start.elapsed().as_secs_f64();
        if Some(self.bar.position()) >= self.bar.length() {
            self.bar.inc_length(1);
        }
        self.bar.inc(1);
        Ok(took)
    }

    /// A buffer that holds `values`.
    pub(super) fn buffer<T: NoUninit>(&self, values: &[T]) -> Result<Buffer, Failure> {
        Ok(self.context.buffer_from(values)?)
    }

    /// A buffer of `count` words, all zero.
    pub(super) fn words(&self, count: usize) -> Result<Buffer, Failure> {
        Ok(self.context.buffer_zeroed(count as u64 * 4)?)
    }
}

/// The checked result of a demo.
pub(super) struct Done {
    /// The times of the measured runs, in seconds.
    pub(super) runs: Samples,
    /// Units of work per second in the median run.
    pub(super) rate: f64,
    /// The unit: `GB/s`.
    pub(super) unit: &'static str,
    /// What was computed, with its size.
    pub(super) note: String,
    /// A picture to be saved.
    pub(super) picture: Option<RgbPicture>,
}

impl Done {
    /// Sets the note.
    pub(super) fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Sets the picture.
    pub(super) fn picture(mut self, picture: RgbPicture) -> Self {
        self.picture = Some(picture);
        self
    }
}

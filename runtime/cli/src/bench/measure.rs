//! Measurement of one point: warm-up, then batches of dispatches for the rate, then single submissions for the latency.

use std::time::{Duration, Instant};

use spelter::{Context, ProfileReport, Program};

use crate::statistics::Samples;

/// The part of the time that goes to the rate; the rest goes to the latency.
const RATE_PART: f64 = 0.7;

/// Samples of the rate in that time, about; fewer if one dispatch takes longer.
const SAMPLES: u32 = 50;

/// Samples that are taken however long they take, and at most.
const MIN_SAMPLES: usize = 5;
const MAX_SAMPLES: usize = 10_000;

/// Attempts to find the size of a batch, on a machine whose speed keeps changing.
const MAX_TRIES: u32 = 50;

/// Dispatches of one sample, at most.
const MAX_BATCH: u32 = 1 << 16;

/// One dispatch: the program on the context's slots.
pub(super) struct MeasuredDispatch<'a> {
    pub(super) context: &'a Context,
    pub(super) program: &'a Program,
    pub(super) push: &'a [u8],
    pub(super) groups: [u32; 3],
}

impl MeasuredDispatch<'_> {
    /// Records a dispatch.
    pub(super) fn record(&self) -> Result<(), spelter::Error> {
        let (words, rest) = self.push.as_chunks::<4>();
        let dispatch = words.iter().fold(self.context.dispatch(self.program), |dispatch, word| dispatch.push(word));
        rest.iter().fold(dispatch, |dispatch, byte| dispatch.push(byte)).groups(self.groups)
    }

    /// Seconds of this many dispatches, from recording to the end.
    pub(super) fn batch(&self, count: u32) -> Result<f64, spelter::Error> {
        let start = Instant::now();
        for _ in 0..count {
            self.record()?;
        }
        self.context.finish()?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Seconds from the submission of one dispatch to its end.
    fn submission(&self) -> Result<f64, spelter::Error> {
        self.record()?;
        let start = Instant::now();
        self.context.flush()?.wait()?;
        let took = start.elapsed().as_secs_f64();
        // What the batch owned is dropped outside of the time.
        self.context.finish()?;
        Ok(took)
    }

    /// Runs for the warm-up. Returns the number of dispatches that take about `time`.
    pub(super) fn warm_up(&self, warm_up: Duration, time: Duration) -> Result<u32, spelter::Error> {
        let (start, mut count, mut tries) = (Instant::now(), 1u32, 0);
        loop {
            let took = self.batch(count)?;
            let wanted = time.as_secs_f64() * f64::from(count) / took.max(1e-9);
            // Grows step by step, since the first runs are slow.
            let next = wanted.clamp(1.0, f64::from(count) * 4.0).min(f64::from(MAX_BATCH)) as u32;
            let settled = next <= count + count / 4;
            (count, tries) = (next.max(1), tries + 1);
            if start.elapsed() >= warm_up && (settled || count == MAX_BATCH || tries >= MAX_TRIES) {
                return Ok(count);
            }
        }
    }
}

/// The samples of a point, in seconds.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Of one dispatch, in batches.
    pub(super) dispatch: Samples,
    /// Dispatches in each of these batches.
    pub(super) batch: u32,
    /// From submission to end, one dispatch at a time.
    pub(super) latency: Samples,
}

/// Measures a dispatch for about the given time. `None` if the clock is too coarse for it.
pub(super) fn measure(
    dispatch: &MeasuredDispatch<'_>,
    warm_up: Duration,
    time: Duration,
) -> Result<Option<Measured>, spelter::Error> {
    let batch = dispatch.warm_up(warm_up, time.mul_f64(RATE_PART) / SAMPLES)?;
    let rate = samples(time.mul_f64(RATE_PART), || Ok(dispatch.batch(batch)? / f64::from(batch)))?;
    let latency = samples(time.mul_f64(1.0 - RATE_PART), || dispatch.submission())?;
    let both = Samples::new(rate).zip(Samples::new(latency));
    Ok(both.map(|(dispatch, latency)| Measured { dispatch, batch, latency }))
}

/// Samples that fit in a time, and some at least.
fn samples(
    time: Duration,
    mut sample: impl FnMut() -> Result<f64, spelter::Error>,
) -> Result<Vec<f64>, spelter::Error> {
    let (start, mut all) = (Instant::now(), Vec::new());
    while all.len() < MIN_SAMPLES || start.elapsed() < time && all.len() < MAX_SAMPLES {
        all.push(sample()?);
    }
    Ok(all)
}

/// By worker, the part of the time that it is busy, on a context that profiles.
pub(super) fn busy(dispatch: &MeasuredDispatch<'_>, time: Duration) -> Result<Vec<f64>, spelter::Error> {
    let workers = dispatch.context.device().properties().workers;
    let batch = dispatch.warm_up(Duration::ZERO, time / 10)?;
    dispatch.context.reset_profile();
    let start = Instant::now();
    while start.elapsed() < time {
        dispatch.batch(batch)?;
    }
    let Some(report) = dispatch.context.profile() else { return Ok(vec![0.0; workers]) };
    Ok(busy_shares(&report, workers))
}

/// By worker, the part of a report's time that it was busy.
pub(super) fn busy_shares(report: &ProfileReport, workers: usize) -> Vec<f64> {
    let all = report.elapsed.as_secs_f64().max(1e-9);
    let busy = |worker| report.workers.get(worker).map_or(0.0, |busy: &Duration| busy.as_secs_f64() / all);
    (0..workers).map(busy).collect()
}

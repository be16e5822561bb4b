//! The best time of many runs, which other load on the machine disturbs least.

use std::time::{Duration, Instant};

/// Keeps the time of the fastest run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stopwatch {
    best: Option<Duration>,
}

impl Stopwatch {
    /// Executes `runs` runs and returns the sum of their times.
    pub fn time(&mut self, runs: u64, mut run: impl FnMut()) -> Duration {
        let mut sum = Duration::ZERO;
        for _ in 0..runs {
            let start = Instant::now();
            run();
            let took = start.elapsed();
            self.best = Some(self.best.map_or(took, |best| best.min(took)));
            sum += took;
        }
        sum
    }

    /// Seconds of the fastest run, if there was one.
    pub fn seconds(&self) -> Option<f64> {
        self.best.map(|best| best.as_secs_f64().max(1e-9))
    }
}

/// Seconds of the fastest run of those that fit in `period`, and of at least five.
pub fn best_within(period: Duration, mut run: impl FnMut()) -> f64 {
    let (start, mut watch) = (Instant::now(), Stopwatch::default());
    watch.time(5, &mut run);
    while start.elapsed() < period {
        watch.time(1, &mut run);
    }
    watch.seconds().unwrap_or(f64::INFINITY)
}

//! The machine's limits, with all its threads: bandwidth of memory and caches, multiply-adds.
//!
//! Each query measures again, and the best value is kept: on a shared machine single measurements may be slow.
//! Bandwidth depends on the working set, since cached data are read faster.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use rayon::prelude::*;

use crate::measure::best_within;
use crate::unit::{Limit, Unit};
use crate::work::Cost;

/// Duration of each measurement.
const PERIOD: Duration = Duration::from_millis(300);
/// Elements per task.
const CHUNK: usize = 64 << 10;
/// Larger than last-level caches.
const LARGE: usize = 512 << 20;

/// The best measurements so far.
#[derive(Debug, Default)]
pub struct Machine {
    /// Operations per second.
    multiply_adds: Cell<f64>,
    /// Bytes per second of reads and of triads, by the bytes of all arrays.
    bandwidth: RefCell<BTreeMap<(bool, usize), f64>>,
}

impl Machine {
    /// The maximal rate of work with this cost, in its unit.
    pub fn limit(&self, limit: Limit, unit: Unit, cost: Cost) -> Option<f64> {
        let seconds = match limit {
            Limit::Read => cost.bytes / self.read(cost.working_set),
            Limit::Triad => cost.bytes / self.triad(cost.working_set),
            Limit::MultiplyAdd => cost.amount / self.multiply_adds(),
            Limit::Unknown => return None,
        };
        Some(unit.figure(cost.amount, seconds))
    }

    /// Floating-point operations per second, two for each multiply-add.
    pub fn multiply_adds(&self) -> f64 {
        // Enough vectors to hide the latency of each, few enough for the registers: the first with AVX2, else the
        // second.
        let now = measure_multiply_adds::<64>().max(measure_multiply_adds::<192>());
        let best = self.multiply_adds.get().max(now);
        self.multiply_adds.set(best);
        best
    }

    /// Bytes per second for repeated reads of this many bytes.
    pub fn read(&self, bytes: usize) -> f64 {
        self.bandwidth_of(false, bytes, measure_read)
    }

    /// Bytes per second of STREAM's triad; the three arrays have this many bytes together.
    pub fn triad(&self, bytes: usize) -> f64 {
        self.bandwidth_of(true, bytes, measure_triad)
    }

    /// Bandwidth of memory, in bytes per second: read and triad.
    pub fn memory(&self) -> [f64; 2] {
        [self.read(LARGE), self.triad(LARGE)]
    }

    fn bandwidth_of(&self, writes: bool, bytes: usize, measure: fn(usize) -> f64) -> f64 {
        let mut all = self.bandwidth.borrow_mut();
        let best = all.entry((writes, bytes)).or_default();
        *best = best.max(measure(bytes));
        *best
    }
}

fn measure_multiply_adds<const LANES: usize>() -> f64 {
    let seconds = best_within(PERIOD, || {
        rayon::broadcast(|_| multiply_add_lanes::<LANES>(black_box(0.999), black_box(0.001)));
    });
    (2 * rayon::current_num_threads() * ROUNDS * LANES) as f64 / seconds
}

fn measure_read(bytes: usize) -> f64 {
    let data = vec![1u32; (bytes / 4).max(CHUNK)];
    let seconds = best_within(PERIOD, || {
        black_box(black_box(&data).par_chunks(CHUNK).map(sum).reduce(|| 0, u32::wrapping_add));
    });
    (data.len() * 4) as f64 / seconds
}

fn measure_triad(bytes: usize) -> f64 {
    let elements = (bytes / 12).max(CHUNK);
    let (mut a, b, c) = (vec![0.0f32; elements], vec![1.0f32; elements], vec![2.0f32; elements]);
    let seconds = best_within(PERIOD, || {
        let sources = b.par_chunks(CHUNK).zip(c.par_chunks(CHUNK));
        a.par_chunks_mut(CHUNK).zip(sources).for_each(|(a, (b, c))| triad(a, b, c));
        black_box(&mut a);
    });
    (elements * 12) as f64 / seconds
}

native! {
    fn sum(values: &[u32]) -> u32 {
        values.iter().fold(0, |sum, &value| sum.wrapping_add(value))
    }
}

native! {
    fn triad(a: &mut [f32], b: &[f32], c: &[f32]) {
        for ((a, &b), &c) in a.iter_mut().zip(b).zip(c) {
            *a = c.mul_add(3.0, b);
        }
    }
}

const ROUNDS: usize = 1 << 20;

native! {
    /// Multiply-adds that depend only on the previous one in the same lane.
    fn multiply_add_lanes<const LANES: usize>(factor: f32, term: f32) {
        let mut lanes = black_box([1.0f32; LANES]);
        for _ in 0..ROUNDS {
            for lane in &mut lanes {
                *lane = lane.mul_add(factor, term);
            }
        }
        black_box(lanes);
    }
}

//! Times of calls, counted in buckets as by HdrHistogram: quantiles of any number of calls take little memory, and the
//! counts of several processes add up.

use std::collections::BTreeMap;
use std::time::Duration;

/// A power of two has 2⁵ buckets, so a bucket is at most 1/32 of its times wide.
const BITS: u32 = 5;

/// How many calls took how long. A time is known to 1/64: see [`CallTimes::quantile`].
///
/// ```
/// use std::time::Duration;
/// use spelter_driver::profile::CallTimes;
///
/// let mut times = CallTimes::default();
/// times.add(Duration::from_nanos(20), 99);
/// times.add(Duration::from_micros(3), 1);
/// assert_eq!(times.quantile(0.5), Duration::from_nanos(20));
/// assert!(times.quantile(1.0).abs_diff(Duration::from_micros(3)) <= Duration::from_micros(3) / 64);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// Calls by bucket.
    buckets: BTreeMap<u32, u64>,
}

/// The bucket of a time. Times below 2⁵ ns have buckets of their own.
fn bucket(nanos: u64) -> u32 {
    match nanos.checked_ilog2() {
        Some(power) if power >= BITS => {
            let shift = power - BITS;
            ((shift + 1) << BITS) + ((nanos >> shift) as u32 & ((1 << BITS) - 1))
        }
        _ => nanos as u32,
    }
}

/// The middle of a bucket.
fn middle(bucket: u32) -> u64 {
    let (power, low) = (bucket >> BITS, u64::from(bucket & ((1 << BITS) - 1)));
    match power {
        0 => low,
        power => (((1 << BITS) + low) << (power - 1)) + ((1 << (power - 1)) >> 1),
    }
}

impl CallTimes {
    /// Adds a number of calls that took this time.
    pub fn add(&mut self, time: Duration, calls: u64) {
        if calls > 0 {
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let known = self.buckets.entry(bucket(nanos)).or_default();
            *known = known.saturating_add(calls);
        }
    }

    /// Adds the calls of another list.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(time, calls)| self.add(time, calls));
    }

    /// The times, ascending, each to 1/64, with the number of calls that took it.
    pub fn iter(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.buckets.iter().map(|(bucket, calls)| (Duration::from_nanos(middle(*bucket)), *calls))
    }

    /// The time that this part of the calls (0 to 1) did not exceed, to 1/64; 0 without calls.
    pub fn quantile(&self, part: f64) -> Duration {
        let all: u64 = self.buckets.values().fold(0, |sum, calls| sum.saturating_add(*calls));
        let rank = ((all as f64 * part).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0u64;
        let found = self.iter().find(|(_, calls)| {
            below = below.saturating_add(*calls);
            below >= rank
        });
        found.map_or(Duration::ZERO, |(time, _)| time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_the_times_near_its_middle() {
        for power in 0..64 {
            for nanos in [1u64 << power, (1 << power) + (1 << power) / 3, (1 << power) - 1 + (1 << power)] {
                let near = middle(bucket(nanos));
                assert!(near.abs_diff(nanos) <= nanos / 64, "{nanos}: {near}");
                assert_eq!(bucket(near), bucket(nanos), "{nanos}");
            }
        }
        assert_eq!((0..32).map(|nanos| middle(bucket(nanos))).collect::<Vec<_>>(), (0..32).collect::<Vec<_>>());
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let (nanos, mut times) = (Duration::from_nanos, CallTimes::default());
        assert_eq!(times.quantile(0.5), Duration::ZERO);
        (1..=10).for_each(|time| times.add(nanos(time), 1));
        let found = [0.0, 0.1, 0.5, 0.51, 0.99, 1.0].map(|part| times.quantile(part));
        assert_eq!(found, [1, 1, 5, 6, 10, 10].map(nanos));
        let mut twice = times.clone();
        twice.add_all(&times);
        assert_eq!((twice.quantile(0.5), twice.iter().map(|(_, calls)| calls).sum::<u64>()), (nanos(5), 20));
    }
}

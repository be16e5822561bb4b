//! Statistics of samples: medians, quantiles, and the confidence interval of a change by the bootstrap.

use crate::random::Random;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2000;

/// Sorted samples, at least one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// `None` if there are none, or one is not a positive number.
    pub(crate) fn new(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let good = samples.first().is_some_and(|least| *least > 0.0) && samples.iter().all(|x| x.is_finite());
        good.then_some(Self(samples))
    }

    pub(crate) fn all(&self) -> &[f64] {
        &self.0
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The value below which a part `q` of the samples is, interpolated between neighbours.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        quantile(&self.0, q)
    }

    pub(crate) fn least(&self) -> f64 {
        self.0[0]
    }

    /// The distance of the quartiles as a part of the median.
    pub(crate) fn spread(&self) -> f64 {
        (self.quantile(0.75) - self.quantile(0.25)) / self.median()
    }
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// The median of values in any order, in linear time.
fn median_of(values: &mut [f64]) -> f64 {
    let (below, &mut high, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(low) if values.len().is_multiple_of(2) => low.midpoint(high),
        _ => high,
    }
}

/// A change of the median, in parts of the old one: -0.1 is a tenth less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) estimate: f64,
    /// Bounds of the interval that holds the change with a confidence of 95 %.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What a change of a time means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeVerdict {
    Improved,
    Regressed,
    /// The interval holds 0, or changes that count as noise.
    NoChange,
}

impl ChangeVerdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::NoChange => "no change",
        }
    }
}

impl Change {
    /// The change from old to new samples. The interval has the quantiles of the changes between resampled medians
    /// (percentile bootstrap: Efron and Tibshirani 1993, chapter 13).
    pub(crate) fn between(old: &Samples, new: &Samples) -> Self {
        let mut random = Random::new(1);
        let mut median = |samples: &Samples| {
            let all = samples.all();
            let mut picked: Vec<f64> =
                (0..all.len()).map(|_| all[((u64::from(random.word()) * all.len() as u64) >> 32) as usize]).collect();
            median_of(&mut picked)
        };
        let mut changes: Vec<f64> = (0..RESAMPLES).map(|_| median(new) / median(old) - 1.0).collect();
        changes.sort_by(f64::total_cmp);
        let estimate = new.median() / old.median() - 1.0;
        Self { estimate, low: quantile(&changes, 0.025), high: quantile(&changes, 0.975) }
    }

    /// The verdict on a time, if changes of up to `noise` count as noise.
    pub(crate) fn verdict(&self, noise: f64) -> ChangeVerdict {
        match self {
            change if change.high < -noise => ChangeVerdict::Improved,
            change if change.low > noise => ChangeVerdict::Regressed,
            _ => ChangeVerdict::NoChange,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(list: &[f64]) -> Samples {
        Samples::new(list.to_vec()).unwrap()
    }

    #[test]
    fn quantiles_are_interpolated() {
        let five = samples(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!((five.median(), five.least(), five.quantile(1.0), five.quantile(0.125)), (3.0, 1.0, 5.0, 1.5));
        assert_eq!(samples(&[1.0, 2.0]).median(), 1.5);
        assert_eq!(five.spread(), 2.0 / 3.0);
        assert_eq!(
            [&mut [5.0, 1.0, 4.0, 2.0, 3.0][..], &mut [4.0, 1.0, 3.0, 2.0], &mut [7.0]].map(median_of),
            [3.0, 2.5, 7.0]
        );
        for bad in [&[][..], &[0.0], &[1.0, f64::NAN], &[-1.0]] {
            assert_eq!(Samples::new(bad.to_vec()), None);
        }
    }

    #[test]
    fn a_change_is_seen_through_noise_and_no_change_is_not_invented() {
        let noisy = |center: f64, seed| {
            let mut random = Random::new(seed);
            samples(&(0..50).map(|_| center * (1.0 + 0.02 * f64::from(random.signed()))).collect::<Vec<_>>())
        };
        let change = Change::between(&noisy(1.0, 1), &noisy(1.2, 2));
        assert!(change.low < 0.2 && 0.2 < change.high && change.high - change.low < 0.04, "{change:?}");
        assert_eq!(change.verdict(0.02), ChangeVerdict::Regressed);
        assert_eq!(Change::between(&noisy(1.2, 2), &noisy(1.0, 1)).verdict(0.02), ChangeVerdict::Improved);
        let same = Change::between(&noisy(1.0, 3), &noisy(1.0, 4));
        assert!(same.low <= 0.0 && 0.0 <= same.high || same.estimate.abs() < 0.01, "{same:?}");
        assert_eq!(same.verdict(0.02), ChangeVerdict::NoChange);
    }
}

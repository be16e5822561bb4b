//! A part of a list of jobs.

use std::fmt;
use std::str::FromStr;

/// One of several equal parts, written `I/N` with I from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// All jobs.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// A part by its number, from 0.
    pub(super) fn part(index: u64, of: u64) -> Self {
        Self { index, of }
    }

    /// The number of the part, from 0, and the number of parts.
    pub fn numbers(self) -> (u64, u64) {
        (self.index, self.of)
    }

    /// Every N-th item, from the I-th on.
    pub fn pick<I: Iterator>(self, items: I) -> impl Iterator<Item = I::Item> {
        let [index, of] = [self.index, self.of].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        items.skip(index).step_by(of)
    }

    /// How many of this many jobs belong to the part.
    pub(super) fn count(self, jobs: u64) -> u64 {
        jobs.saturating_sub(self.index).div_ceil(self.of)
    }

    /// Whether a job belongs to the part.
    pub fn has(self, job: u64) -> bool {
        job % self.of == self.index
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (index, of) = text.split_once('/').ok_or("a shard is I/N")?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| "a shard is two numbers, I/N".to_owned());
        match (number(index)?, number(of)?) {
            (index, of) if (1..=of).contains(&index) => Ok(Self { index: index - 1, of }),
            (index, of) => Err(format!("there is no part {index} of {of}")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_complete() {
        for of in 1..8 {
            let parts = (1..=of).flat_map(|index| format!("{index}/{of}").parse::<Shard>().unwrap().pick(0..20u64));
            let mut all: Vec<u64> = parts.collect();
            all.sort_unstable();
            assert_eq!(all, (0..20).collect::<Vec<_>>());
            assert_eq!((0..of).filter(|&index| Shard { index, of }.has(17)).count(), 1);
        }
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}

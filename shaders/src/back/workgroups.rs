//! The workgroups of a dispatch in the order in which they run: x fastest.

use std::ops::Range;

/// Ids of workgroups, one after the other.
#[derive(Clone, Debug)]
pub struct Workgroups {
    base: [u32; 3],
    groups: [u32; 3],
    /// The next one, without the base.
    at: [u32; 3],
    left: u64,
}

impl Workgroups {
    /// Those with these numbers in a dispatch of `groups` workgroups, whose ids begin at `base`.
    pub fn new(numbers: Range<u64>, groups: [u32; 3], base: [u32; 3]) -> Self {
        let left = numbers.end.saturating_sub(numbers.start);
        Self { base, groups, at: position(numbers.start, groups), left }
    }
}

impl Iterator for Workgroups {
    type Item = [u32; 3];

    #[inline]
    fn next(&mut self) -> Option<[u32; 3]> {
        self.left = self.left.checked_sub(1)?;
        let mut id = self.base;
        for (number, at) in id.iter_mut().zip(self.at) {
            *number = number.wrapping_add(at);
        }
        self.at[0] += 1;
        if self.at[0] == self.groups[0] {
            (self.at[0], self.at[1]) = (0, self.at[1] + 1);
            if self.at[1] == self.groups[1] {
                (self.at[1], self.at[2]) = (0, self.at[2] + 1);
            }
        }
        Some(id)
    }
}

/// The workgroup with a number. Most pieces of work begin with the first: divisions take long.
fn position(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    if number == 0 {
        return [0; 3];
    }
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_the_ids_of_its_numbers() {
        let (groups, base) = ([3, 2, 4], [7, 0, 1]);
        let all: Vec<[u32; 3]> =
            (0..4).flat_map(|z| (0..2).flat_map(move |y| (0..3).map(move |x| [7 + x, y, 1 + z]))).collect();
        for start in 0..=24 {
            for end in start..=24 {
                let ids: Vec<[u32; 3]> = Workgroups::new(start as u64..end as u64, groups, base).collect();
                assert_eq!(ids, all[start..end]);
            }
        }
        assert_eq!(Workgroups::new(0..0, [0; 3], [0; 3]).next(), None);
    }
}

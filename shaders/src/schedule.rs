//! Schedules: the order of workgroups, subgroups and lanes, which Vulkan leaves open.
//!
//! A kernel without data races computes the same in every order. One that lacks a barrier computes the intended result
//! in ascending order more often than not, since an invocation finds what earlier ones wrote: a reverse or a random
//! order uncovers it. Orders are functions of the seed and the workgroup's id, so that a run can be repeated.

use std::fmt;
use std::str::FromStr;

use crate::abi::SUBGROUP_SIZE;

/// The order of workgroups in a dispatch, of subgroups in a workgroup, and of lanes in a subgroup.
///
/// It is the order in which workgroups start: several workers run them at the same time. Subgroups run one after the
/// other between two barriers, each until it reaches the second. The interpreter also runs lanes one after the other;
/// machine code runs them in lockstep and has an order for atomics only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// From the first to the last.
    #[default]
    Ascending,
    /// From the last to the first.
    Reverse,
    /// A permutation by this seed, a different one in each workgroup.
    Random(u64),
}

/// What is ordered: each has permutations of its own.
#[derive(Clone, Copy)]
enum ScheduleLevel {
    Workgroups = 1,
    Subgroups,
    Lanes,
}

impl Schedule {
    /// Whether each order is from the first to the last.
    #[inline]
    pub fn is_ascending(self) -> bool {
        matches!(self, Self::Ascending)
    }

    /// The order of the workgroups of a dispatch, by linear index: x fastest, then y, then z.
    pub fn workgroups(self, count: u64) -> Order {
        self.order(ScheduleLevel::Workgroups, [0; 3], count)
    }

    /// The order of the subgroups of the workgroup with this id.
    pub fn subgroups(self, workgroup: [u32; 3], count: u32) -> Order {
        self.order(ScheduleLevel::Subgroups, workgroup, count.into())
    }

    /// The order of the lanes in each subgroup of the workgroup with this id.
    pub fn lanes(self, workgroup: [u32; 3]) -> [u32; SUBGROUP_SIZE as usize] {
        let order = self.order(ScheduleLevel::Lanes, workgroup, SUBGROUP_SIZE.into());
        std::array::from_fn(|position| order.at(position as u64) as u32)
    }

    fn order(self, level: ScheduleLevel, workgroup: [u32; 3], count: u64) -> Order {
        let Self::Random(seed) = self else { return Order { schedule: self, count } };
        let mut key = mixed(seed ^ (level as u64) << 56);
        for component in workgroup {
            key = mixed(key ^ u64::from(component));
        }
        Order { schedule: Self::Random(key), count }
    }
}

/// A permutation of the numbers below a count, evaluated one number at a time.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    schedule: Schedule,
    count: u64,
}

/// Rounds of the Feistel network.
const ROUNDS: u64 = 4;

impl Order {
    /// The number at this position. Positions are below the count.
    pub fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.count, "position {position} of {}", self.count);
        match self.schedule {
            Schedule::Ascending => position,
            Schedule::Reverse => (self.count - 1).saturating_sub(position),
            Schedule::Random(key) => self.permuted(key, position),
        }
    }

    /// A Feistel network permutes the numbers with an even number of bits. Those that are no numbers below the count
    /// are permuted again ("cycle walking"): at most three in four are, and the cycle of `position` returns to it.
    fn permuted(&self, key: u64, position: u64) -> u64 {
        let half = (u64::BITS - self.count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
        let low = (1 << half) - 1;
        let mut number = position;
        loop {
            let (mut left, mut right) = (number >> half, number & low);
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ mixed(key ^ round << 60 ^ right) & low);
            }
            number = left << half | right;
            if number < self.count || self.count == 0 {
                return number;
            }
        }
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood 2014): each bit depends on all bits.
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ascending => f.write_str("ascending"),
            Self::Reverse => f.write_str("reverse"),
            Self::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seed = || text.strip_prefix("random:")?.parse().ok();
        match text {
            "ascending" => Ok(Self::Ascending),
            "reverse" => Ok(Self::Reverse),
            _ => seed().map(Self::Random).ok_or_else(|| {
                "a schedule is `ascending`, `reverse` or `random:SEED`, where SEED is a number below 2^64".to_owned()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(order: Order) -> Vec<u64> {
        (0..order.count).map(|position| order.at(position)).collect()
    }

    #[test]
    fn every_order_is_a_permutation() {
        let counts = (1..70).chain([255, 256, 257, 1000, 4096, 65_537]);
        for (count, seed) in counts.flat_map(|count| [0, 1, 42, u64::MAX].map(|seed| (count, seed))) {
            let mut numbers = all(Schedule::Random(seed).workgroups(count));
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "{count} workgroups, seed {seed}");
        }
        assert_eq!(all(Schedule::Ascending.workgroups(4)), [0, 1, 2, 3]);
        assert_eq!(all(Schedule::Reverse.subgroups([7, 8, 9], 4)), [3, 2, 1, 0]);
        assert_eq!(Schedule::Reverse.lanes([0; 3])[..3], [15, 14, 13]);
        // The largest dispatch: distinct numbers in range.
        let order = Schedule::Random(5).workgroups(65_535_u64.pow(3));
        let mut some: Vec<u64> = (0..1000).map(|position| order.at(position * 1_000_003)).collect();
        some.sort_unstable();
        some.dedup();
        assert!(some.len() == 1000 && some.iter().all(|&number| number < order.count));
    }

    #[test]
    fn a_few_seeds_put_each_of_two_subgroups_first() {
        for count in 2..=16 {
            for (a, b) in (0..count).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let first = |seed| {
                    let order = all(Schedule::Random(seed).subgroups([3, 0, 0], count));
                    order.into_iter().find(|&number| number == u64::from(a) || number == u64::from(b))
                };
                let found: Vec<_> = (0..16).map(first).collect();
                for one in [a, b] {
                    assert!(found.contains(&Some(one.into())), "{one} of {a} and {b} is never first, of {count}");
                }
            }
        }
    }

    #[test]
    fn orders_depend_on_seed_workgroup_and_level_and_nothing_else() {
        let order = |seed, id| all(Schedule::Random(seed).subgroups(id, 16));
        assert_eq!(order(1, [1, 2, 3]), order(1, [1, 2, 3]));
        assert_ne!(order(1, [1, 2, 3]), order(2, [1, 2, 3]));
        assert_ne!(order(1, [1, 2, 3]), order(1, [2, 1, 3]));
        let lanes = Schedule::Random(1).lanes([1, 2, 3]).map(u64::from);
        assert_ne!(order(1, [1, 2, 3]), lanes);
    }

    #[test]
    fn texts_are_read_as_they_are_printed() {
        for schedule in [Schedule::Ascending, Schedule::Reverse, Schedule::Random(0), Schedule::Random(u64::MAX)] {
            assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
        for text in ["", "Reverse", "random", "random:", "random:-1", "random:x", "random:18446744073709551616", "5"] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }
}

//! Iterates over the workgroups of a dispatch in execution order: x fastest, then y, then z, or as a schedule says.

use std::ops::Range;

use crate::schedule::Schedule;

/// Iterator over workgroup ids.
#[derive(Clone, Debug)]
pub struct Workgroups {
    base: [u32; 3],
    groups: [u32; 3],
    /// The next position in the schedule's order, as an id without the base. In ascending order it is the workgroup's.
    at: [u32; 3],
    left: u64,
    schedule: Schedule,
}

impl Workgroups {
    /// Workgroups `numbers` of a dispatch of `groups` workgroups whose ids begin at `base`.
    #[inline]
    pub fn new(numbers: Range<u64>, groups: [u32; 3], base: [u32; 3]) -> Self {
        let left = numbers.end.saturating_sub(numbers.start);
        let at = position(numbers.start, groups);
        Self { base, groups, at, left, schedule: Schedule::Ascending }
    }

    /// Runs the workgroups in the order of a schedule: the numbers of [`Workgroups::new`] become positions in it, so
    /// that ranges of numbers still have each workgroup of the dispatch once. To be called before the first is taken.
    #[must_use]
    #[inline]
    pub fn scheduled(self, schedule: Schedule) -> Self {
        Self { schedule, ..self }
    }

    /// The order of workgroups, subgroups and lanes.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The single workgroup with this id.
    pub fn one(id: [u32; 3]) -> Self {
        Self { base: id, groups: [1; 3], at: [0; 3], left: 1, schedule: Schedule::Ascending }
    }

    /// Whether the iterator is exhausted.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Takes the next workgroups, as many as there are but at most `count`, as an iterator of their own.
    #[must_use]
    pub fn take_front(&mut self, count: u64) -> Self {
        let front = Self { left: self.left.min(count), ..self.clone() };
        let [x, y, _] = self.groups.map(u64::from);
        let [at_x, at_y, at_z] = self.at.map(u64::from);
        self.at = position((at_z * y + at_y) * x + at_x + front.left, self.groups);
        self.left -= front.left;
        front
    }

    /// Takes the next workgroups that differ in x only, at most `max` of them: the first id and the count.
    #[inline]
    pub fn next_row(&mut self, max: u32) -> Option<([u32; 3], u32)> {
        let max = if self.schedule.is_ascending() { max } else { 1 };
        let row = u64::from((self.groups[0] - self.at[0]).min(max)).min(self.left);
        if row == 0 {
            return None;
        }
        let first = self.id();
        self.at[0] += row as u32;
        self.left -= row;
        self.carry();
        Some((first, row as u32))
    }

    /// The id of the first workgroup of the dispatch.
    pub fn base(&self) -> [u32; 3] {
        self.base
    }

    /// The linear number of a workgroup in the dispatch: x fastest, then y, then z, without the base.
    pub fn number_of(&self, id: [u32; 3]) -> u64 {
        let [x, y, z] = [0, 1, 2].map(|dim| u64::from(id[dim].wrapping_sub(self.base[dim])));
        (z * u64::from(self.groups[1]) + y) * u64::from(self.groups[0]) + x
    }

    #[inline]
    fn id(&self) -> [u32; 3] {
        let at = if self.schedule.is_ascending() { self.at } else { position(self.scheduled_number(), self.groups) };
        [0, 1, 2].map(|dim| self.base[dim].wrapping_add(at[dim]))
    }

    /// The number of the workgroup at the next position of the schedule's order. A number, since a returned id would
    /// pass through memory in every dispatch.
    #[cold]
    fn scheduled_number(&self) -> u64 {
        let [x, y, z] = self.groups.map(u64::from);
        let [at_x, at_y, at_z] = self.at.map(u64::from);
        self.schedule.workgroups(x * y * z).at((at_z * y + at_y) * x + at_x)
    }

    /// Carries x into y at the end of a row, and y into z at the end of a plane.
    #[inline]
    fn carry(&mut self) {
        if self.at[0] == self.groups[0] {
            (self.at[0], self.at[1]) = (0, self.at[1] + 1);
            if self.at[1] == self.groups[1] {
                (self.at[1], self.at[2]) = (0, self.at[2] + 1);
            }
        }
    }
}

impl Iterator for Workgroups {
    type Item = [u32; 3];

    #[inline]
    fn next(&mut self) -> Option<[u32; 3]> {
        self.left = self.left.checked_sub(1)?;
        let id = self.id();
        self.at[0] += 1;
        self.carry();
        Some(id)
    }
}

/// The position of workgroup `number`. 0, the most frequent start, is returned without divisions.
#[inline]
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
            for (end, max) in (start..=24).flat_map(|end| [1, 2, u32::MAX].map(|max| (end, max))) {
                let ids: Vec<[u32; 3]> = Workgroups::new(start as u64..end as u64, groups, base).collect();
                assert_eq!(ids, all[start..end]);
                let mut rows = Workgroups::new(start as u64..end as u64, groups, base);
                let mut ids = Vec::new();
                while let Some(([x, y, z], count)) = rows.next_row(max) {
                    ids.extend((x..x + count).map(|x| [x, y, z]));
                }
                assert_eq!(ids, all[start..end]);
                assert!(rows.is_empty());
            }
        }
        assert_eq!(Workgroups::new(0..0, [0; 3], [0; 3]).next(), None);
        assert_eq!(Workgroups::new(0..0, [0; 3], [0; 3]).next_row(1), None);
        assert_eq!(Workgroups::one([5, 6, 7]).next_row(9), Some(([5, 6, 7], 1)));
    }

    #[test]
    fn what_is_taken_from_the_front_and_the_rest_are_the_whole() {
        let (groups, base) = ([3, 2, 4], [7, 0, 1]);
        for schedule in [Schedule::Ascending, Schedule::Reverse, Schedule::Random(3)] {
            let all = Workgroups::new(2..24, groups, base).scheduled(schedule);
            let whole: Vec<[u32; 3]> = all.clone().collect();
            for count in 0..30 {
                let mut rest = all.clone();
                let front: Vec<[u32; 3]> = rest.take_front(count).collect();
                assert_eq!(front.len() as u64, count.min(22));
                assert!(front.into_iter().chain(rest).eq(whole.iter().copied()));
            }
        }
    }

    #[test]
    fn a_schedule_runs_each_workgroup_once_whatever_the_ranges_are() {
        let (groups, base) = ([3, 2, 4], [7, 0, 1]);
        let ascending: Vec<[u32; 3]> = Workgroups::new(0..24, groups, base).collect();
        let of = |range, schedule| Workgroups::new(range, groups, base).scheduled(schedule);
        let reverse: Vec<[u32; 3]> = of(0..24, Schedule::Reverse).collect();
        assert!(reverse.iter().eq(ascending.iter().rev()));
        for schedule in [Schedule::Reverse, Schedule::Random(1), Schedule::Random(2)] {
            let whole: Vec<[u32; 3]> = of(0..24, schedule).collect();
            let mut parts: Vec<[u32; 3]> = of(0..5, schedule).collect();
            parts.extend(of(5..6, schedule));
            let mut rest = of(6..24, schedule);
            while let Some((id, count)) = rest.next_row(u32::MAX) {
                assert_eq!(count, 1);
                parts.push(id);
            }
            assert_eq!(parts, whole);
            assert_ne!(whole, ascending);
            parts.sort_unstable_by_key(|&[x, y, z]| [z, y, x]);
            assert_eq!(parts, ascending);
        }
    }
}

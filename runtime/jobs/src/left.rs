//! The jobs of a shard that are still to be run: numbered one by one, since a job array may have more than memory
//! holds.

use std::collections::BTreeSet;

use super::Shard;

/// The jobs of a shard that are not done, in ascending order.
#[derive(Clone, Debug)]
pub struct JobsLeft {
    shard: Shard,
    /// The number of jobs of all shards.
    jobs: u64,
    /// The next job of the shard, done or not; `None` at the end.
    next: Option<u64>,
    done: BTreeSet<u64>,
    left: u64,
}

impl JobsLeft {
    /// All jobs of a shard.
    pub fn of(shard: Shard, jobs: u64) -> Self {
        Self::new(shard, jobs, BTreeSet::new())
    }

    /// `done` has jobs of the shard only.
    pub(super) fn new(shard: Shard, jobs: u64, done: BTreeSet<u64>) -> Self {
        let left = shard.count(jobs) - done.len() as u64;
        Self { shard, jobs, next: Some(shard.numbers().0), done, left }
    }

    /// Takes a job out, wherever its place is. Says whether it was left.
    pub fn remove(&mut self, job: u64) -> bool {
        let is_ahead = self.next.is_some_and(|next| next <= job) && job < self.jobs;
        let is_left = is_ahead && self.shard.has(job) && self.done.insert(job);
        self.left -= u64::from(is_left);
        is_left
    }

    /// How many there are.
    pub fn count_left(&self) -> u64 {
        self.left
    }
}

impl Iterator for JobsLeft {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let job = self.next.filter(|job| *job < self.jobs)?;
            self.next = job.checked_add(self.shard.numbers().1);
            if !self.done.contains(&job) {
                self.left -= 1;
                return Some(job);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_removed_once() {
        let mut left = JobsLeft::new("2/2".parse().unwrap(), 8, [3].into());
        assert_eq!(left.next(), Some(1));
        assert_eq!([0, 1, 3, 5, 5, 9].map(|job| left.remove(job)), [false, false, false, true, false, false]);
        assert_eq!((left.count_left(), left.collect::<Vec<_>>()), (1, vec![7]));
    }

    #[test]
    fn jobs_that_are_not_done_are_left() {
        for (shard, jobs, done, left) in [
            ("1/1", 4, vec![], vec![0, 1, 2, 3]),
            ("2/3", 8, vec![4], vec![1, 7]),
            ("3/3", 2, vec![], vec![]),
            ("1/1", 2, vec![0, 1], vec![]),
        ] {
            let jobs = JobsLeft::new(shard.parse().unwrap(), jobs, done.into_iter().collect());
            assert_eq!(jobs.count_left(), left.len() as u64, "{shard}");
            assert_eq!(jobs.collect::<Vec<_>>(), left, "{shard}");
        }
        // No memory for what is only counted.
        let all = JobsLeft::new(Shard::ALL, u64::MAX, BTreeSet::new());
        assert_eq!((all.count_left(), all.take(2).collect::<Vec<_>>()), (u64::MAX, vec![0, 1]));
        let last = format!("{0}/{0}", u64::MAX).parse().unwrap();
        assert_eq!(JobsLeft::new(last, u64::MAX, BTreeSet::new()).collect::<Vec<_>>(), [u64::MAX - 1]);
    }
}

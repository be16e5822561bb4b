//! CPU time of threads. The time limit counts it instead of wall-clock time, so that a process which was stopped, or
//! which gets a small share of its machine, does not lose its device.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

/// The system's number of a thread of this process. 0 if the number is not known.
pub(super) type ThreadNumber = u64;

/// The calling thread. Asks the system once per thread.
#[inline]
pub(super) fn this_thread() -> ThreadNumber {
    thread_local! {
        static NUMBER: Cell<Option<ThreadNumber>> = const { Cell::new(None) };
    }
    NUMBER.get().unwrap_or_else(|| {
        let number = number();
        NUMBER.set(Some(number));
        number
    })
}

/// `/proc/thread-self` is a link to `<process>/task/<thread>`.
#[cold]
fn number() -> ThreadNumber {
    let link = fs::read_link("/proc/thread-self").unwrap_or_default();
    link.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0)
}

/// The CPU time that a thread has used so far, if the system reports it.
fn clock(thread: ThreadNumber) -> Option<Duration> {
    if thread == 0 {
        return None;
    }
    let folder = format!("/proc/self/task/{thread}");
    let schedule = fs::read_to_string(format!("{folder}/schedstat")).ok().and_then(|text| of_schedstat(&text));
    let coarse = |path: &str| of_stat(&fs::read_to_string(path).ok()?);
    // 0 is the right answer only for a thread that has not run yet; on a system that does not count, the whole process
    // has 0, too.
    schedule.or_else(|| {
        coarse(&format!("{folder}/stat")).filter(|clock| !clock.is_zero() || coarse("/proc/self/stat") > Some(*clock))
    })
}

/// The first field: nanoseconds. A system that does not count them writes 0, which no running thread has.
fn of_schedstat(text: &str) -> Option<Duration> {
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

/// User and system time, in hundredths of a second: fields 12 and 13 after the name.
fn of_stat(text: &str) -> Option<Duration> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    let ticks = fields.next()??.saturating_add(fields.next()??);
    Some(Duration::from_millis(ticks.saturating_mul(10)))
}

/// CPU time that threads spent on one command since the watchdog first saw it.
#[derive(Debug, Default)]
pub(super) struct Worked {
    threads: Vec<ThreadTime>,
}

#[derive(Debug)]
struct ThreadTime {
    thread: ThreadNumber,
    /// Its clock at the latest sample; `None` if it worked on something else then, `Some(None)` if the system does not
    /// report it.
    clock: Option<Option<Duration>>,
    worked: Duration,
}

impl Worked {
    /// Starts again, for another command.
    pub(super) fn restart(&mut self) {
        self.threads.clear();
    }

    /// Adds what `threads` worked since the latest sample, which was `slice` ago. Returns the largest sum of one
    /// thread.
    ///
    /// One sample adds at most `max_slice` per thread: where the system does not report CPU time, the time between
    /// samples is counted instead, and that is long if the process was stopped; a clock also jumps when a whole machine
    /// was suspended.
    pub(super) fn sample(&mut self, threads: &[ThreadNumber], slice: Duration, max_slice: Duration) -> Duration {
        self.sample_by(threads, slice, max_slice, clock)
    }

    fn sample_by(
        &mut self,
        threads: &[ThreadNumber],
        slice: Duration,
        max_slice: Duration,
        clock: impl Fn(ThreadNumber) -> Option<Duration>,
    ) -> Duration {
        for seen in self.threads.iter_mut().filter(|seen| !threads.contains(&seen.thread)) {
            seen.clock = None;
        }
        for &thread in threads {
            let now = clock(thread);
            let Some(seen) = self.threads.iter_mut().find(|seen| seen.thread == thread) else {
                self.threads.push(ThreadTime { thread, clock: Some(now), worked: Duration::ZERO });
                continue;
            };
            if let Some(before) = seen.clock.replace(now) {
                let worked = now.zip(before).map_or(slice, |(now, before)| now.saturating_sub(before));
                seen.worked += worked.min(max_slice);
            }
        }
        self.threads.iter().map(|seen| seen.worked).max().unwrap_or_default()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_the_system_tells_is_read() {
        assert_eq!(of_schedstat("1500000000 20 3\n"), Some(Duration::from_millis(1500)));
        assert_eq!(of_schedstat("0 0 0\n"), None);
        let stat = "77 (a ) b) R 1 2 3 4 5 6 7 8 9 10 120 30 7 8 20 0\n";
        assert_eq!(of_stat(stat), Some(Duration::from_millis(1500)));
        assert_eq!(of_stat("77 (a) R 1 2"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_works_is_seen_to_work_and_one_that_sleeps_is_not() {
        let thread = this_thread();
        while clock(thread).is_none_or(|clock| clock.is_zero()) {}
        let before = clock(thread).expect("the system reports CPU time");
        while clock(thread) < Some(before + Duration::from_millis(50)) {}
        let worked = clock(thread).expect("the system reports CPU time");
        std::thread::sleep(Duration::from_millis(300));
        assert!(clock(thread) < Some(worked + Duration::from_millis(200)));
    }

    #[test]
    fn the_thread_with_the_most_work_counts_while_it_is_listed() {
        let mut worked = Worked::default();
        let mut sample = |threads: &[ThreadNumber], clocks: &[u64]| {
            let clock = |thread: ThreadNumber| Some(SECOND * clocks[thread as usize] as u32);
            worked.sample_by(threads, SECOND, 2 * SECOND, clock).as_secs()
        };
        assert_eq!(sample(&[1, 2], &[0, 10, 20]), 0);
        assert_eq!(sample(&[1, 2], &[0, 11, 20]), 1);
        // The second thread works elsewhere: that time does not count, neither now nor after it comes back.
        assert_eq!(sample(&[1], &[0, 12, 40]), 2);
        assert_eq!(sample(&[1, 2], &[0, 12, 60]), 2);
        assert_eq!(sample(&[1, 2], &[0, 12, 61]), 2);
        // A clock that jumped counts for one sample.
        assert_eq!(sample(&[1, 2], &[0, 1000, 61]), 4);
    }

    #[test]
    fn without_clocks_a_long_slice_counts_as_one() {
        let mut worked = Worked::default();
        let mut sample = |slice| worked.sample_by(&[0], slice, 2 * SECOND, |_| None);
        assert_eq!(sample(SECOND), Duration::ZERO);
        assert_eq!(sample(SECOND), SECOND);
        assert_eq!(sample(1000 * SECOND), 3 * SECOND);
    }
}

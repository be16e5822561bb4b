//! What threads have worked: the processor's time that they got. The time limit counts that and not the time of day, so that a
//! process which was stopped, or gets little of its machine, does not lose its device.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

/// A thread of this process, as the system numbers it. 0 is one whose number is not known.
pub(super) type Thread = u64;

/// The calling thread. Asks the system once for each thread.
pub(super) fn this_thread() -> Thread {
    thread_local! {
        static NUMBER: Cell<Option<Thread>> = const { Cell::new(None) };
    }
    NUMBER.get().unwrap_or_else(|| {
        let number = number().unwrap_or(0);
        NUMBER.set(Some(number));
        number
    })
}

/// `/proc/thread-self` leads to `<process>/task/<thread>`.
fn number() -> Option<Thread> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// The processor's time that a thread has got so far, if the system tells.
fn clock(thread: Thread) -> Option<Duration> {
    if thread == 0 {
        return None;
    }
    let folder = format!("/proc/self/task/{thread}");
    let schedule = fs::read_to_string(format!("{folder}/schedstat")).ok().and_then(|text| of_schedstat(&text));
    let coarse = |path: &str| of_stat(&fs::read_to_string(path).ok()?);
    // A thread that has not worked yet has none; a system that does not count has none for the whole process either.
    schedule.or_else(|| {
        coarse(&format!("{folder}/stat")).filter(|clock| !clock.is_zero() || coarse("/proc/self/stat") > Some(*clock))
    })
}

/// Nanoseconds come first; a system that does not count them writes 0, which no thread that runs has.
fn of_schedstat(text: &str) -> Option<Duration> {
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

/// Of a program and of the system for it, in hundredths of seconds, at the twelfth and thirteenth place behind the name.
fn of_stat(text: &str) -> Option<Duration> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    let ticks = fields.next()??.saturating_add(fields.next()??);
    Some(Duration::from_millis(ticks.saturating_mul(10)))
}

/// What threads have worked on something since the watchdog first saw it.
#[derive(Debug, Default)]
pub(super) struct Worked {
    threads: Vec<Seen>,
}

#[derive(Debug)]
struct Seen {
    thread: Thread,
    /// What its clock said at the last look, unless it was elsewhere then; the inner one if the system tells.
    clock: Option<Option<Duration>>,
    worked: Duration,
}

impl Worked {
    /// Something else is looked at from now on.
    pub(super) fn restart(&mut self) {
        self.threads.clear();
    }

    /// Looks at the threads that work on it, `slice` after the last look. How long the thread worked that worked longest.
    ///
    /// No look counts for more than `most`: where the system does not tell what threads work, the time between looks is taken
    /// for it, and that is long if the process was stopped; a clock jumps, too, where a whole machine was.
    pub(super) fn look(&mut self, threads: &[Thread], slice: Duration, most: Duration) -> Duration {
        self.look_by(threads, slice, most, clock)
    }

    fn look_by(
        &mut self,
        threads: &[Thread],
        slice: Duration,
        most: Duration,
        clock: impl Fn(Thread) -> Option<Duration>,
    ) -> Duration {
        for seen in self.threads.iter_mut().filter(|seen| !threads.contains(&seen.thread)) {
            seen.clock = None;
        }
        for &thread in threads {
            let now = clock(thread);
            let Some(seen) = self.threads.iter_mut().find(|seen| seen.thread == thread) else {
                self.threads.push(Seen { thread, clock: Some(now), worked: Duration::ZERO });
                continue;
            };
            if let Some(before) = seen.clock.replace(now) {
                let worked = now.zip(before).map_or(slice, |(now, before)| now.saturating_sub(before));
                seen.worked += worked.min(most);
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
        let before = clock(thread).expect("the system tells");
        while clock(thread) < Some(before + Duration::from_millis(50)) {}
        let worked = clock(thread).expect("the system tells");
        std::thread::sleep(Duration::from_millis(300));
        assert!(clock(thread) < Some(worked + Duration::from_millis(200)));
    }

    #[test]
    fn the_thread_that_worked_longest_counts_while_it_is_there() {
        let mut worked = Worked::default();
        let mut look = |threads: &[Thread], clocks: &[u64]| {
            let clock = |thread: Thread| Some(SECOND * clocks[thread as usize] as u32);
            worked.look_by(threads, SECOND, 2 * SECOND, clock).as_secs()
        };
        assert_eq!(look(&[1, 2], &[0, 10, 20]), 0);
        assert_eq!(look(&[1, 2], &[0, 11, 20]), 1);
        // The second is elsewhere: what it works there does not count, here or when it comes back.
        assert_eq!(look(&[1], &[0, 12, 40]), 2);
        assert_eq!(look(&[1, 2], &[0, 12, 60]), 2);
        assert_eq!(look(&[1, 2], &[0, 12, 61]), 2);
        // A clock that jumped counts for one look.
        assert_eq!(look(&[1, 2], &[0, 1000, 61]), 4);
    }

    #[test]
    fn without_clocks_a_long_slice_counts_as_one() {
        let mut worked = Worked::default();
        let mut look = |slice| worked.look_by(&[0], slice, 2 * SECOND, |_| None);
        assert_eq!(look(SECOND), Duration::ZERO);
        assert_eq!(look(SECOND), SECOND);
        assert_eq!(look(1000 * SECOND), 3 * SECOND);
    }
}

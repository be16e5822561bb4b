//! A watchdog for hostile inputs: it stops endless kernels, and ends the process, with the name of the input, if
//! anything else hangs or memory grows without bound.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Interval of the watchdog.
const TICK: Duration = Duration::from_millis(4);

/// Ticks after which an input counts as hung: a minute.
const HUNG: u64 = 15_000;

/// Memory limit of the whole process.
const MAX_BYTES: u64 = 3 << 30;

/// A thread that handles inputs.
#[derive(Debug, Default)]
pub struct Watched {
    /// The stop flag for kernels: set when the current one has run for a tick or two.
    pub stop: AtomicU32,
    current: Mutex<String>,
    /// Counts inputs.
    serial: AtomicU64,
    seen: AtomicU64,
    looks: AtomicU64,
    running: AtomicU32,
}

impl Watched {
    /// Starts a new input, named for messages.
    pub fn begin(&self, name: String) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = name;
        self.running.store(0, Relaxed);
        self.stop.store(0, Relaxed);
        self.serial.fetch_add(1, Relaxed);
    }

    /// Reports that the input's kernel runs from now on: the watchdog may stop it.
    pub fn runs(&self) {
        self.running.store(1, Relaxed);
    }

    /// The current input.
    pub fn name(&self) -> String {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look(&self) {
        let serial = self.serial.load(Relaxed);
        if self.seen.swap(serial, Relaxed) != serial {
            self.looks.store(0, Relaxed);
            return;
        }
        let looks = self.looks.fetch_add(1, Relaxed);
        if self.running.load(Relaxed) != 0 {
            self.stop.store(1, Relaxed);
        }
        if looks > HUNG {
            give_up(&format!("hangs: {}", self.name()));
        }
    }
}

/// Runs `work` on as many threads as the machine has, each with its number and its part of the watch.
pub fn run(work: impl Fn(usize, usize, &Watched) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let watched: Vec<Watched> = (0..threads).map(|_| Watched::default()).collect();
    let left = AtomicU64::new(threads as u64);
    std::thread::scope(|scope| {
        for (index, watched) in watched.iter().enumerate() {
            let (work, left) = (&work, &left);
            scope.spawn(move || {
                let _done = Done(left);
                work(index, threads, watched);
            });
        }
        while left.load(Relaxed) != 0 {
            std::thread::sleep(TICK);
            watched.iter().for_each(Watched::look);
            if resident_bytes().is_some_and(|bytes| bytes > MAX_BYTES) {
                let names: Vec<_> = watched.iter().map(Watched::name).collect();
                give_up(&format!("takes more than {MAX_BYTES} bytes: one of {names:?}"));
            }
        }
    });
}

/// Counts a thread as ended, by return or panic.
struct Done<'a>(&'a AtomicU64);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[expect(clippy::print_stderr, reason = "the process ends here, and the user must see why")]
fn give_up(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(101)
}

/// Memory in use, on systems that report it as Linux does.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

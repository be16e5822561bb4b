//! A watchdog for hostile inputs: it stops kernels that loop for ever and ends the process, with the name of the input,
//! when anything else hangs or memory runs away.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often the watchdog looks.
const TICK: Duration = Duration::from_millis(4);

/// Looks after which an input counts as hung: a minute.
const HUNG: u64 = 15_000;

/// Memory of the whole process that no input may reach.
const MAX_BYTES: u64 = 3 << 30;

/// One thread that works through inputs.
#[derive(Debug, Default)]
pub struct Watched {
    /// To be given to kernels: set when the current one has run for a tick or two.
    pub stop: AtomicU32,
    current: Mutex<String>,
    /// Counts inputs.
    serial: AtomicU64,
    seen: AtomicU64,
    looks: AtomicU64,
    running: AtomicU32,
}

impl Watched {
    /// A new input, named for messages.
    pub fn begin(&self, name: String) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = name;
        self.running.store(0, Relaxed);
        self.stop.store(0, Relaxed);
        self.serial.fetch_add(1, Relaxed);
    }

    /// The input's kernel runs from now on: the watchdog may stop it.
    pub fn runs(&self) {
        self.running.store(1, Relaxed);
    }

    /// What is being worked on.
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

/// Counts a thread as ended, whether it returned or panicked.
struct Done<'a>(&'a AtomicU64);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[expect(clippy::print_stderr, reason = "the process ends here, and someone must know why")]
fn give_up(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(101)
}

/// Memory in use, where the system says it the way Linux does.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

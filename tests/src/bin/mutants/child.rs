//! A child: one mutant after the other. A second thread stops endless kernels, and ends the process if a mutant takes
//! too long. A panic is a finding, after which the child continues.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::json;

use crate::mutant::{Corpus, Outcome};
use crate::parent::Counts;
use crate::{Args, BLOCK};

/// Exit status if a mutant takes too long.
pub(crate) const TIMEOUT_STATUS: i32 = 97;

/// Interval of the watchdog: a kernel runs for at least one and at most two of these.
const POLL_INTERVAL: Duration = Duration::from_millis(3);

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Debug, Default)]
struct Watchdog {
    stop: AtomicU32,
    running: AtomicU32,
    serial: AtomicU64,
}

impl Watchdog {
    /// Watches until the process ends.
    fn watch(&self, seconds: u64) {
        let (mut seen, mut since) = (0, cpu_ticks());
        let (mut previous, mut polls) = (0, 0u64);
        loop {
            std::thread::sleep(POLL_INTERVAL);
            let serial = self.serial.load(Relaxed);
            if serial != seen {
                (seen, since, polls) = (serial, cpu_ticks(), 0);
            }
            polls += 1;
            // The second tick of the same run.
            let running = self.running.load(Relaxed);
            if running != 0 && running == previous {
                self.stop.store(1, Relaxed);
            }
            previous = running;
            if polls.is_multiple_of(64) && cpu_ticks().saturating_sub(since) > seconds * 100 {
                std::process::exit(TIMEOUT_STATUS);
            }
        }
    }
}

/// CPU time of the process so far, in hundredths of a second.
fn cpu_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn prepare(args: &Args) -> (&'static Watchdog, Corpus) {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PANIC.set(format!("{place}: {message}"));
    }));
    let watchdog: &'static Watchdog = Box::leak(Box::default());
    let seconds = args.seconds;
    std::thread::spawn(move || watchdog.watch(seconds));
    (watchdog, Corpus::new(args))
}

fn run_mutant(watchdog: &Watchdog, corpus: &Corpus, number: u64) -> Result<Outcome, String> {
    watchdog.running.store(0, Relaxed);
    watchdog.serial.fetch_add(1, Relaxed);
    let runs = || {
        watchdog.stop.store(0, Relaxed);
        // Another number each time, and never 0.
        watchdog.running.fetch_add(1, Relaxed);
    };
    let result = catch_unwind(AssertUnwindSafe(|| corpus.run(number, &watchdog.stop, runs)));
    result.unwrap_or_else(|_| Err(PANIC.take()))
}

/// Runs blocks until standard input ends. A line has the number of a block and that of its first mutant to be run.
pub(crate) fn run(args: &Args, file: &Path) -> ExitCode {
    let Ok(file) = File::options().write(true).open(file) else { return ExitCode::FAILURE };
    let (watchdog, corpus) = prepare(args);
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Some((Ok(block), Ok(first))) = line.split_once(' ').map(|(a, b)| (a.parse::<u64>(), b.parse::<u64>()))
        else {
            return ExitCode::FAILURE;
        };
        let mut counts = Counts::default();
        for number in first..((block + 1) * BLOCK).min(args.count) {
            // If the process ends, this file identifies the mutant, and says what came before it.
            if file.write_at(&counts.note(number), 0).is_err() {
                return ExitCode::FAILURE;
            }
            match run_mutant(watchdog, &corpus, number) {
                Ok(outcome) => {
                    counts.ran += u64::from(outcome != Outcome::Refused);
                    counts.interpreted += u64::from(outcome == Outcome::Interpreted);
                }
                Err(what) => println!("{}", json!({ "finding": number, "what": what })),
            }
            counts.done += 1;
        }
        println!(
            "{}",
            json!({ "block": block, "done": counts.done, "ran": counts.ran, "interpreted": counts.interpreted })
        );
    }
    ExitCode::SUCCESS
}

/// Runs one mutant in this process.
pub(crate) fn run_one(args: &Args, number: u64) -> ExitCode {
    let (watchdog, corpus) = prepare(args);
    let result = run_mutant(watchdog, &corpus, number);
    println!("{} {result:?}", corpus.name(number));
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

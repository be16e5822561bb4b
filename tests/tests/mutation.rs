//! Mutants of every test file: an error or a run, never a panic, a hang or unbounded memory.
//!
//! `SPELTER_MUTANTS=N` makes N mutants of each file (default 64), `SPELTER_SEED=S` starts at another seed. A failure
//! names file and seed; `SPELTER_MUTANT=FILE:SEED` runs that one alone.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;
use spelter_tests::case::Case;
use spelter_tests::trial::Trial;
use spelter_tests::watch::{self, Watched};
use spelter_tests::{corpus, mangle, mutate};

/// Maximal bytes of a mutated text: debug builds check register allocation, in time quadratic in a kernel's size.
const MAX_TEXT_BYTES: usize = 8 << 10;

thread_local! {
    /// The thread's last panic: its message with its position.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

#[test]
fn no_mutant_panics_or_hangs() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PANIC.set(format!("{place}: {message}"));
    }));
    let cases: Vec<Case> = corpus::files().iter().map(|path| Case::read(path).unwrap()).collect();
    let failures = Mutex::new(BTreeMap::<String, Vec<String>>::new());
    watch::run(|index, threads, watched| {
        for case in cases.iter().skip(index).step_by(threads) {
            for (name, panic) in mutants(case, watched) {
                failures.lock().unwrap().entry(panic).or_default().push(name);
            }
        }
    });
    let _ = std::panic::take_hook();
    let failures = failures.into_inner().unwrap();
    let report: Vec<_> =
        failures.iter().map(|(panic, names)| format!("{panic}\n  {} times: {}", names.len(), names[0])).collect();
    assert!(report.is_empty(), "mutants that panicked:\n{}", report.join("\n"));
}

/// Runs the mutants of a file; returns those that panicked, by name, with the panic.
fn mutants(case: &Case, watched: &Watched) -> Vec<(String, String)> {
    let file = corpus::name(&case.path);
    let only = std::env::var("SPELTER_MUTANT").ok();
    let number = |name: &str, default: u64| std::env::var(name).ok().map_or(default, |n| n.parse().unwrap());
    let first = number("SPELTER_SEED", 0);
    let seeds = match only.as_deref().map(|only| only.split_once(':').unwrap()) {
        Some((wanted, seed)) if wanted == file => seed.parse().unwrap()..seed.parse::<u64>().unwrap() + 1,
        Some(_) => 0..0,
        // Most mutants of a rejected file are rejected too.
        None if case.error.is_some() => first..first + number("SPELTER_MUTANTS", 64).div_ceil(16),
        None => first..first + number("SPELTER_MUTANTS", 64),
    };
    let bench = Bench::new(case);
    let mut failures = Vec::new();
    for seed in seeds {
        let name = format!("{file}:{seed}");
        watched.begin(name.clone());
        if catch_unwind(AssertUnwindSafe(|| bench.mutant(case, seed, watched))).is_err() {
            failures.push((name, PANIC.take()));
        }
    }
    failures
}

/// Shared by the mutants of a file: the original's words and its buffers.
struct Bench {
    words: Option<Vec<u32>>,
    trial: Trial,
}

impl Bench {
    fn new(case: &Case) -> Self {
        Self { words: corpus::spirv(case).ok(), trial: Trial::new(case) }
    }

    /// Every second mutant of a WGSL file and every eighth of another one mutates the text, the others the SPIR-V.
    fn mutant(&self, case: &Case, seed: u64, watched: &Watched) {
        let module = match &self.words {
            Some(words) if case.is_wgsl() && seed.is_multiple_of(2) => Module::from_spirv(&mutate::words(words, seed)),
            _ if case.is_wgsl() && seed % 4 == 1 => {
                Module::from_wgsl(&mangle::text(&case.text, &case.text, MAX_TEXT_BYTES, seed))
            }
            _ if case.is_wgsl() => Module::from_wgsl(&mutate::text(&case.text, seed)),
            Some(_) if seed % 8 == 7 => {
                spvasm::assemble(&mutate::text(&case.text, seed)).and_then(|words| Module::from_spirv(&words))
            }
            Some(words) => Module::from_spirv(&mutate::words(words, seed)),
            None => return,
        };
        if let Ok(module) = module {
            self.trial.run(case, &module, &watched.stop, || watched.runs());
        }
    }
}

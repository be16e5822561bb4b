//! Removes one part of the synchronization of each kernel at a time, and runs the copies in checked mode: those that
//! the axioms call racy must be reported, and the kernels themselves must be silent.
//!
//!     cargo run --release -p spelter-tests --bin sync_mutants -- tests/kernels shaders/library
//!
//! A mutant is reported within the first seeds, or the axioms decide about the words that its invocations share. The
//! same seeds give the same orders and contents everywhere.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the command line")]

mod totals;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use spelter_jobs::{JobArgs, JobArray, digest_files, earlier, jobs_left};
use spelter_tests::checked::sync::{Bench, Subject, mutants};
use spelter_tests::corpus;
use spelter_tests::fuzz::quiet_panics;
use spelter_tests::modules::families::Families;
use spelter_tests::modules::memory::Arena;

use totals::{Totals, is_defect};

/// Checks kernels with one part of their synchronization removed.
#[derive(Debug, Parser)]
#[command(name = "sync_mutants")]
struct Args {
    /// Files (.spv, .spvasm, .wgsl), or folders with them; test files with their memory, others with random contents.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Parts of the files, and a file of results.
    #[command(flatten)]
    array: JobArgs,
    /// Orders in which a mutant must be reported.
    #[arg(long, default_value_t = 16)]
    seeds: u64,
    /// Orders in which the axioms decide about a mutant that was not reported.
    #[arg(long, default_value_t = 2)]
    axioms: u64,
    /// Orders in which the kernel itself must be silent.
    #[arg(long, default_value_t = 100)]
    silent: u64,
    /// Workgroups of kernels that are no test files.
    #[arg(long, default_value = "2,2,1", value_parser = groups)]
    groups: [u32; 3],
    /// Contents, push constants, specialization constants and workgroups by names of files (docs/fuzzing.md).
    #[arg(long, value_name = "FILE", value_parser = |path: &str| Families::read(Path::new(path)))]
    families: Option<Families>,
    /// Runs the kernels themselves only.
    #[arg(long)]
    originals: bool,
    /// Seconds after which a run is stopped.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Prints an object for each kernel and each mutant, and one for all, as JSON lines.
    #[arg(long)]
    json: bool,
}

fn groups(text: &str) -> Result<[u32; 3], String> {
    let sizes: Option<Vec<u32>> = text.split(',').map(|size| size.parse().ok().filter(|size| *size > 0)).collect();
    sizes.and_then(|sizes| sizes.try_into().ok()).ok_or_else(|| format!("`{text}` is not X,Y,Z"))
}

fn main() -> ExitCode {
    let args = Args::parse();
    quiet_panics();
    let watch: &'static Watch = Box::leak(Box::default());
    let limit = args.seconds;
    std::thread::spawn(move || watch.watch(limit));
    let begin = || watch.begin();
    let bench = Bench { arena: Arena::default(), groups: args.groups, stop: &watch.stop, begin: &begin };
    let files = files(&args);
    let array = job_array(&args, &files);
    let mut results = match args.array.open(&array) {
        Ok(results) => results,
        Err(error) => return failed(&error),
    };
    let jobs = jobs_left(results.as_ref(), &array, args.array.shard);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} files, {eta} left, {msg}");
    let progress =
        ProgressBar::new(jobs.count_left()).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut totals = Totals::new(args.json);
    if let Err(error) = earlier(results.as_ref(), |result| totals.earlier(result)) {
        return failed(&error);
    }
    for job in jobs {
        let path = &files[job as usize];
        progress.set_message(path.display().to_string());
        let settings = args.families.as_ref().map(|families| families.of(path)).unwrap_or_default();
        match Subject::of_file(path, settings) {
            Err(reason) => totals.file(path, &reason),
            Ok(subjects) => subjects.iter().for_each(|subject| examine(&args, &bench, path, subject, &mut totals)),
        }
        let objects = totals.take_objects();
        if let Some(results) = &mut results
            && let Err(error) = results.record(job, &json!({ "objects": objects }), objects.iter().any(is_defect))
        {
            return failed(&error);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    totals.print()
}

fn failed(error: &spelter_jobs::Error) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}

/// The files as jobs: equal for the same contents and options.
fn job_array(args: &Args, files: &[PathBuf]) -> JobArray {
    let table = args.families.iter().map(|families| &families.path);
    let named = files.iter().chain(table).map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, path.as_path())
    });
    let contents = digest_files(named, |path| std::fs::read(path));
    let settings = json!({ "seeds": args.seeds, "axioms": args.axioms, "silent": args.silent, "groups": args.groups,
        "originals": args.originals, "families": args.families.is_some(), "seconds": args.seconds, "files": contents });
    JobArray { name: "sync_mutants".to_owned(), settings, jobs: files.len() as u64 }
}

/// The files, in the same order everywhere.
fn files(args: &Args) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            files.extend(corpus::files_below(path, &["spv", "spvasm", "wgsl"]));
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    files
}

fn examine(args: &Args, bench: &Bench<'_>, path: &Path, subject: &Subject, totals: &mut Totals) {
    let list = mutants(&subject.words);
    if list.is_empty() && !args.originals {
        return;
    }
    let report = guarded(|| {
        let kernel = subject.kernel(&subject.words)?;
        bench.report(subject, &kernel, &subject.words, args.silent)
    });
    let silent = matches!(&report, Ok(report) if report.reported.is_none());
    totals.original(path, &subject.entry, &report);
    if !silent || args.originals {
        return;
    }
    for mutant in &list {
        let verdict = guarded(|| bench.judge(subject, mutant, args.seeds, args.axioms));
        totals.mutant(path, &subject.entry, mutant, &verdict);
    }
}

/// Turns a panic into an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("PANIC".into()))
}

/// Stops runs that take too long.
#[derive(Debug, Default)]
struct Watch {
    stop: AtomicU32,
    /// Counts runs.
    run: AtomicU64,
}

impl Watch {
    fn begin(&self) {
        self.run.fetch_add(1, Relaxed);
        self.stop.store(0, Relaxed);
    }

    /// Watches until the process ends.
    fn watch(&self, seconds: u64) {
        let (mut seen, mut polls) = (0, 0);
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let run = self.run.load(Relaxed);
            if run != seen {
                (seen, polls) = (run, 0);
            }
            polls += 1;
            if polls > seconds * 10 {
                self.stop.store(1, Relaxed);
            }
        }
    }
}

//! Runs broken WGSL texts through the whole pipeline: each ends with an error or a run, in its time and its memory.
//!
//! A child process works, since running out of memory and out of stack end a process; it says which mutant it is at, and after one
//! that ended it another child goes on behind it. Cap the memory with `ulimit -v`. Mutants are numbered, and the same seed, number
//! and files give the same text everywhere; `--show N` prints it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the command line")]

use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clap::Parser;
use spelter_shaders::compile::Module;
use spelter_tests::case::Case;
use spelter_tests::trial::Trial;
use spelter_tests::{corpus, mangle};

/// Runs mutants of the WGSL files of the tests, and of others.
#[derive(Clone, Debug, Parser)]
#[command(name = "mutants")]
struct Args {
    /// Mutants, of all shards together.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// The same numbers give the same mutants.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Takes mutants I, I + N, I + 2N, …
    #[arg(long, default_value = "0/1", value_parser = shard)]
    shard: (u64, u64),
    /// Seconds of the processor's time that one may take, and six times as many of any.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Prints a mutant and does nothing else.
    #[arg(long)]
    show: Option<u64>,
    /// Does the work from this mutant on.
    #[arg(long, hide = true)]
    child: Option<u64>,
    /// More WGSL files to make mutants of.
    files: Vec<PathBuf>,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    parts.filter(|(i, n)| i < n).ok_or_else(|| "a shard is I/N, with I below N".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let cases = cases(&args.files);
    if cases.is_empty() {
        eprintln!("no WGSL files");
        return ExitCode::FAILURE;
    }
    if let Some(number) = args.show {
        print!("{}", mutant(&cases, &args, number));
        return ExitCode::SUCCESS;
    }
    match args.child {
        Some(from) => child(&cases, &args, from),
        None => parent(&args),
    }
}

/// The test files in WGSL, and those of the command line.
fn cases(files: &[PathBuf]) -> Vec<Case> {
    let own = corpus::files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "wgsl"));
    let case = |path: PathBuf| match Case::read(&path) {
        Ok(case) => Some(case),
        Err(_) => {
            let text = std::fs::read_to_string(&path).ok()?;
            let bare: String = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .map(|line| format!("{line}\n"))
                .collect();
            Case::parse(Path::new("other.wgsl"), bare).ok()
        }
    };
    own.chain(files.iter().cloned()).filter_map(case).collect()
}

fn mutant(cases: &[Case], args: &Args, number: u64) -> String {
    let seed = args.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
    let other = &cases[(seed / 7 % cases.len() as u64) as usize];
    mangle::text(&cases[(number % cases.len() as u64) as usize].text, &other.text, seed)
}

/// Starts children until all mutants are done, and tells what ended one.
fn parent(args: &Args) -> ExitCode {
    let (mut from, mut findings) = (args.shard.0, 0u32);
    while from < args.count {
        let own: Vec<_> = std::env::args_os().skip(1).collect();
        let program = std::env::current_exe().unwrap_or_else(|_| "mutants".into());
        let spawned = Command::new(program).arg(format!("--child={from}")).args(own).stdout(Stdio::piped()).spawn();
        let Ok(mut process) = spawned else {
            eprintln!("no child process can be started");
            return ExitCode::FAILURE;
        };
        let mut has_begun = false;
        for line in process.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok)
        {
            match line.strip_prefix("at ").and_then(|number| number.parse().ok()) {
                Some(number) => (from, has_begun) = (number, true),
                None => {
                    // A panic of naga's that became an error is only told.
                    findings += u32::from(!line.starts_with("note "));
                    println!("{line}");
                }
            }
        }
        match process.wait() {
            Ok(status) if status.success() => break,
            _ if !has_begun => {
                eprintln!("the child process ends before its first mutant");
                return ExitCode::FAILURE;
            }
            status => {
                findings += 1;
                println!("mutant {from} ended its process: {status:?}");
            }
        }
        from += args.shard.1;
    }
    println!("{} mutants, {findings} findings", args.count.saturating_sub(args.shard.0).div_ceil(args.shard.1));
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the watch looks at.
#[derive(Default)]
struct Watched {
    started: AtomicU64,
    runs: AtomicU32,
    stop: AtomicU32,
}

fn child(cases: &[Case], args: &Args, from: u64) -> ExitCode {
    let trials: Vec<Trial> = cases.iter().map(Trial::new).collect();
    let watched = Arc::new(Watched::default());
    let (seconds, watches) = (args.seconds, watched.clone());
    std::thread::spawn(move || watch(&watches, seconds));
    std::panic::set_hook(Box::new(|_| {}));
    for number in (from..args.count).step_by(args.shard.1 as usize) {
        let text = mutant(cases, args, number);
        say(&format!("at {number}"));
        watched.stop.store(0, Relaxed);
        watched.runs.store(0, Relaxed);
        watched.started.fetch_add(1, Relaxed);
        let at = (number % cases.len() as u64) as usize;
        let ended = catch_unwind(AssertUnwindSafe(|| match Module::from_wgsl(&text) {
            Ok(module) => trials[at].run(&cases[at], &module, &watched.stop, || watched.runs.store(1, Relaxed)),
            Err(error) if error.message.starts_with("naga failed inside") => say(&format!("note {number}: {error}")),
            Err(_) => {}
        }));
        if let Err(panic) = ended {
            let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            say(&format!("mutant {number} panicked: {}", message.unwrap_or_default()));
        }
    }
    ExitCode::SUCCESS
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Stops runs soon, and the process where a mutant takes too long. Other programs do not make a mutant slow: what counts is the
/// processor's time, where the system tells it.
fn watch(watched: &Watched, seconds: u64) {
    const TICK: Duration = Duration::from_millis(10);
    let (mut seen, mut ticks, mut runs, mut worked) = (0, 0, 0, 0);
    loop {
        std::thread::sleep(TICK);
        let started = watched.started.load(Relaxed);
        if started != seen {
            (seen, ticks, runs, worked) = (started, 0, 0, processor_ticks().unwrap_or(0));
        }
        ticks += 1;
        runs = if watched.runs.load(Relaxed) != 0 { runs + 1 } else { 0 };
        if runs > 1 {
            watched.stop.store(1, Relaxed);
        }
        let took = if ticks % 64 == 0 { processor_ticks().map(|now| now - worked) } else { Some(0) };
        if took.unwrap_or(ticks) > seconds * 100 || ticks > seconds * 600 {
            say(&format!("a mutant takes more than {seconds} seconds"));
            std::process::exit(101);
        }
    }
}

/// Hundredths of seconds that the process has worked, where the system says it the way Linux does.
fn processor_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

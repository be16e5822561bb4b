//! Runs random programs of commands in checked mode and compares what is reported with the axioms of the memory model.
//!
//!     cargo run --release -p spelter-tests --bin commands -- --programs 100000
//!
//! The same seed gives the same program everywhere, so a job array of millions of them is divided by `--shard` and
//! continued from `--results` (docs/scale.md): a job is a block of programs. What differs is printed as a script.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the command line")]

use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use spelter_driver::check::CheckOptions;
use spelter_jobs::{JobArgs, JobArray, earlier, jobs_left};
use spelter_tests::commands::{Comparison, Machine, Program};

/// Compares checked mode between commands with the axioms of the memory model, on random programs.
#[derive(Debug, Parser)]
struct Args {
    /// Number of programs.
    #[arg(long, default_value_t = 10_000)]
    programs: u64,
    /// Seed of the first program.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Parts of the programs, and a file of results.
    #[command(flatten)]
    array: JobArgs,
    /// Writes the result as JSON.
    #[arg(long)]
    json: bool,
    /// Accesses that the log of commands has before it is cleaned: with few, in the middle of programs, too.
    #[arg(long, default_value_t = CheckOptions::default().log_accesses)]
    log_accesses: usize,
    /// Number of programs that are printed of those that differ.
    #[arg(long, default_value_t = 3)]
    show: u64,
}

/// Programs of a job.
const BLOCK: u64 = 64;

/// What was compared.
#[derive(Default)]
struct Sum {
    programs: u64,
    race_free: u64,
    pairs: u64,
    races: u64,
    hidden: u64,
    missed: u64,
    wrong: u64,
    silent: u64,
    strange: u64,
    too_large: u64,
    rejected: u64,
    /// The seeds of the programs that differ, or were rejected.
    differing: Vec<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(&args).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

/// Runs the programs of this shard that the file of results lacks.
fn run(args: &Args) -> Result<ExitCode, spelter_jobs::Error> {
    let array = JobArray {
        name: "commands".to_owned(),
        settings: json!({ "programs": args.programs, "seed": args.seed, "log_accesses": args.log_accesses }),
        jobs: args.programs.div_ceil(BLOCK),
    };
    let mut results = args.array.open(&array)?;
    let mut sum = Sum::default();
    earlier(results.as_ref(), Sum::of_json)?.into_iter().for_each(|(_, block)| sum.join(block));
    let check = CheckOptions { log_accesses: args.log_accesses, ..CheckOptions::default() };
    let machine = match Machine::new(check) {
        Ok(machine) => machine,
        Err(error) => {
            eprintln!("error: the device could not be created: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let jobs = jobs_left(results.as_ref(), &array, args.array.shard);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} programs, {eta} left, {msg}");
    let progress = ProgressBar::new(jobs.count_left() * BLOCK);
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut shown = 0;
    for job in jobs {
        let mut block = Sum::default();
        for number in job * BLOCK..((job + 1) * BLOCK).min(args.programs) {
            let seed = args.seed.saturating_add(number);
            let Some(text) = block.program(&machine, seed) else { continue };
            if shown < args.show && !args.json {
                shown += 1;
                progress.suspend(|| println!("seed {seed}\n{text}\n"));
            }
        }
        if let Some(results) = &mut results {
            results.record(job, &block.json(), !block.differing.is_empty())?;
        }
        sum.join(block);
        progress.inc(BLOCK);
    }
    progress.finish_and_clear();
    sum.print(args.json);
    Ok(if sum.differing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Sum {
    /// Runs a program and counts it. A text if it differs or is rejected.
    fn program(&mut self, machine: &Machine, seed: u64) -> Option<String> {
        let program = Program::random(seed);
        let text = match Comparison::of(machine, &program) {
            Ok(comparison) => {
                self.add(&comparison);
                (!comparison.agrees()).then(|| format!("{program}{comparison:#?}"))
            }
            Err(error) => {
                self.rejected += 1;
                Some(format!("{program}{error}"))
            }
        };
        if text.is_some() {
            self.differing.push(seed);
        }
        text
    }

    fn add(&mut self, of: &Comparison) {
        self.programs += 1;
        self.race_free += u64::from(of.races == 0);
        self.pairs += of.pairs as u64;
        self.races += of.races as u64;
        self.hidden += of.hidden as u64;
        self.missed += of.missed.len() as u64;
        self.wrong += of.wrong.len() as u64;
        self.silent += of.silent.len() as u64;
        self.strange += of.strange.len() as u64;
        self.too_large += of.too_large as u64;
    }

    /// Adds the numbers of another block.
    fn join(&mut self, block: Self) {
        self.programs += block.programs;
        self.race_free += block.race_free;
        self.pairs += block.pairs;
        self.races += block.races;
        self.hidden += block.hidden;
        self.missed += block.missed;
        self.wrong += block.wrong;
        self.silent += block.silent;
        self.strange += block.strange;
        self.too_large += block.too_large;
        self.rejected += block.rejected;
        self.differing.extend(block.differing);
        self.differing.sort_unstable();
    }

    fn json(&self) -> Value {
        json!({
            "programs": self.programs, "race_free": self.race_free, "pairs": self.pairs, "races": self.races,
            "hidden": self.hidden, "missed": self.missed, "false": self.wrong, "silent": self.silent,
            "strange": self.strange, "too_large": self.too_large, "rejected": self.rejected,
            "differing_seeds": self.differing,
        })
    }

    /// What [`Sum::json`] has written.
    fn of_json(value: &Value) -> Option<Self> {
        let count = |name: &str| value[name].as_u64();
        Some(Self {
            programs: count("programs")?,
            race_free: count("race_free")?,
            pairs: count("pairs")?,
            races: count("races")?,
            hidden: count("hidden")?,
            missed: count("missed")?,
            wrong: count("false")?,
            silent: count("silent")?,
            strange: count("strange")?,
            too_large: count("too_large")?,
            rejected: count("rejected")?,
            differing: value["differing_seeds"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?,
        })
    }

    fn print(&self, as_json: bool) {
        if as_json {
            println!("{}", self.json());
            return;
        }
        let Self {
            programs,
            race_free,
            pairs,
            races,
            hidden,
            missed,
            wrong,
            silent,
            strange,
            too_large,
            rejected,
            differing,
        } = self;
        println!("{programs} programs, {race_free} of them without a race; {rejected} were rejected");
        println!("{pairs} pairs of accesses that conflict, {races} of them race by the axioms");
        println!("{missed} races missed, {wrong} false reports, {hidden} races hidden by others");
        println!("{silent} ranges with a race and no report, {strange} strange reports, {too_large} pairs too large");
        if let Some(seed) = differing.first() {
            println!("{} programs differ; the first of them has seed {seed}", differing.len());
        }
    }
}

//! Runs random programs and compares the detector of data races with the axioms: no race may be missed.
//!
//!     cargo run --release -p spelter-tests --bin races -- --programs 1000000
//!
//! With `--engines` the programs are kernels, and what checked mode reports about them on each engine of the machine is
//! compared, too.
//!
//! Each program runs twice, invocation by invocation and step by step. The same seed gives the same program everywhere,
//! so a job array of millions of them is divided by `--shard` and continued from `--results` (docs/scale.md): a job is
//! a block of programs.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the command line")]

mod engines;

use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use spelter_jobs::{JobArgs, JobArray, earlier, jobs_left};
use spelter_tests::checked::{Detection, Program, Schedule};

/// Compares the detector of data races with the axioms of the memory model, on random programs.
#[derive(Debug, Parser)]
struct Args {
    /// Number of programs.
    #[arg(long, default_value_t = 10_000)]
    programs: u64,
    /// Seed of the first program.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Runs random SPIR-V kernels in checked mode on the interpreter and on machine code for each instruction set, and
    /// compares what is reported with the axioms on the execution of each.
    #[arg(long)]
    engines: bool,
    /// Parts of the programs, and a file of results.
    #[command(flatten)]
    array: JobArgs,
    /// Writes the result as JSON.
    #[arg(long)]
    json: bool,
    /// Shows the events of the first executions in which a race is missed or a candidate is refuted; with `--engines`
    /// the first kernels with a defect.
    #[arg(long, default_value_t = 0)]
    show: u64,
}

/// Programs of a job.
const BLOCK: u64 = 256;

#[derive(Default)]
struct Sum {
    executions: u64,
    race_free: u64,
    alarms: u64,
    races: u64,
    missed: u64,
    hidden: u64,
    candidates: u64,
    refuted: u64,
    shown: u64,
    first_missed: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.engines {
        return engines::run(&args);
    }
    let progress = ProgressBar::new(args.programs).with_style(style());
    let array = JobArray {
        name: "races".to_owned(),
        settings: json!({ "programs": args.programs, "from": args.from }),
        jobs: args.programs.div_ceil(BLOCK),
    };
    let mut results = match args.array.open(&array) {
        Ok(results) => results,
        Err(error) => return failed(&error),
    };
    let mut sum = match earlier(results.as_ref(), Sum::of_json) {
        Ok(blocks) => blocks.into_iter().fold(Sum::default(), |sum, (_, block)| sum.join(block)),
        Err(error) => return failed(&error),
    };
    let jobs = jobs_left(results.as_ref(), &array, args.array.shard);
    progress.set_length(jobs.count_left() * BLOCK);
    for job in jobs {
        let mut block = Sum { shown: sum.shown, ..Sum::default() };
        for number in job * BLOCK..((job + 1) * BLOCK).min(args.programs) {
            let seed = args.from.saturating_add(number);
            let program = Program::random(seed);
            for schedule in [Schedule::new(seed), Schedule::fine(seed)] {
                block.add(&args, seed, &program, schedule);
            }
        }
        if let Some(results) = &mut results
            && let Err(error) = results.record(job, &block.json(), block.missed > 0)
        {
            return failed(&error);
        }
        sum = sum.join(block);
        progress.set_message(format!("{} missed", sum.missed));
        progress.inc(BLOCK);
    }
    progress.finish_and_clear();
    sum.print(args.json);
    if sum.missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} programs, {eta} left, {msg}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn failed(error: &spelter_jobs::Error) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}

impl Sum {
    /// With the numbers of another block.
    fn join(mut self, block: Self) -> Self {
        self.executions += block.executions;
        self.race_free += block.race_free;
        self.alarms += block.alarms;
        self.races += block.races;
        self.missed += block.missed;
        self.hidden += block.hidden;
        self.candidates += block.candidates;
        self.refuted += block.refuted;
        self.shown = block.shown;
        self.first_missed = self.first_missed.into_iter().chain(block.first_missed).min();
        self
    }

    /// What [`Sum::json`] has written.
    fn of_json(value: &Value) -> Option<Self> {
        let count = |name: &str| value[name].as_u64();
        Some(Self {
            executions: count("executions")?,
            race_free: count("race_free")?,
            alarms: count("false_alarms")?,
            races: count("races")?,
            missed: count("missed")?,
            hidden: count("hidden")?,
            candidates: count("candidates")?,
            refuted: count("refuted")?,
            shown: 0,
            first_missed: count("first_missed_seed"),
        })
    }

    fn json(&self) -> Value {
        json!({
            "executions": self.executions, "race_free": self.race_free, "false_alarms": self.alarms,
            "races": self.races, "missed": self.missed, "hidden": self.hidden,
            "candidates": self.candidates, "refuted": self.refuted,
            "first_missed_seed": self.first_missed,
        })
    }

    fn add(&mut self, args: &Args, seed: u64, program: &Program, schedule: Schedule) {
        let (detection, execution) = Detection::of(program, schedule);
        self.executions += 1;
        self.race_free += u64::from(detection.races == 0);
        self.alarms += u64::from(detection.races == 0 && detection.candidates > 0);
        self.races += detection.races as u64;
        self.missed += detection.missed.len() as u64;
        self.hidden += detection.hidden.len() as u64;
        self.candidates += detection.candidates as u64;
        self.refuted += detection.refuted.len() as u64;
        if !detection.missed.is_empty() && self.first_missed.is_none() {
            self.first_missed = Some(seed);
        }
        let remarkable = !detection.missed.is_empty() || detection.races == 0 && detection.candidates > 0;
        if remarkable && self.shown < args.show {
            self.shown += 1;
            println!("seed {seed}, {schedule:?}: {:?}", program.shape);
            for (at, event) in execution.trace.events.iter().enumerate() {
                let (by, site) = (execution.by[at], execution.sites[at]);
                println!(
                    "{at:3} {}.{} {site} {:?} {:?} {:?} source {:?}",
                    by.workgroup,
                    by.local,
                    program.sites[site].action,
                    execution.targets[at].map(|target| (target.memory, target.bytes, target.reference)),
                    event.instance,
                    execution.sources[at],
                );
            }
            println!("missed {:?}", detection.missed);
            println!("refuted {:#?}", detection.refuted);
        }
    }

    fn print(&self, as_json: bool) {
        if as_json {
            println!("{}", self.json());
            return;
        }
        println!("{} executions, {} races, {} missed", self.executions, self.races, self.missed);
        println!("{} races at events with refuted candidates only", self.hidden);
        println!("{} candidates, {} of them refuted", self.candidates, self.refuted);
        println!("{} race-free executions, {} of them with candidates", self.race_free, self.alarms);
        if let Some(seed) = self.first_missed {
            println!("the first race was missed with seed {seed}");
        }
    }
}

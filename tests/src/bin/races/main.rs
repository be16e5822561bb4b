//! Runs random programs and compares the detector of data races with the axioms: no race may be missed.
//!
//!     cargo run --release -p spelter-tests --bin races -- --programs 1000000
//!
//! Each program runs twice, invocation by invocation and step by step. The same seed gives the same program everywhere.

#![expect(clippy::print_stdout, reason = "this is a program for the command line")]

use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
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
    /// Writes the result as JSON.
    #[arg(long)]
    json: bool,
    /// Shows the events of the first executions in which a race is missed or a candidate is refuted.
    #[arg(long, default_value_t = 0)]
    show: u64,
}

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
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} programs, {eta} left, {msg}");
    let progress = ProgressBar::new(args.programs).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut sum = Sum::default();
    for seed in args.from..args.from.saturating_add(args.programs) {
        let program = Program::random(seed);
        for schedule in [Schedule::new(seed), Schedule::fine(seed)] {
            sum.add(&args, seed, &program, schedule);
        }
        if seed % 256 == 0 {
            progress.set_message(format!("{} missed", sum.missed));
            progress.set_position(seed - args.from);
        }
    }
    progress.finish_and_clear();
    sum.print(args.json);
    if sum.missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Sum {
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
            let result = json!({
                "executions": self.executions, "race_free": self.race_free, "false_alarms": self.alarms,
                "races": self.races, "missed": self.missed, "hidden": self.hidden,
                "candidates": self.candidates, "refuted": self.refuted,
                "first_missed_seed": self.first_missed,
            });
            println!("{result}");
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

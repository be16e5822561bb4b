//! Runs random programs of commands in checked mode and compares what is reported with the axioms of the memory model.
//!
//!     cargo run --release -p spelter-tests --bin commands -- --programs 100000
//!
//! The same seed gives the same program everywhere. What differs is printed as a script.

#![expect(clippy::print_stdout, reason = "this is a program for the command line")]

use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use spelter_driver::check::CheckOptions;
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

#[derive(Default)]
struct Sum {
    programs: u64,
    race_free: u64,
    pairs: usize,
    races: usize,
    hidden: usize,
    missed: usize,
    wrong: usize,
    silent: usize,
    strange: usize,
    too_large: usize,
    rejected: u64,
    first: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let check = CheckOptions { log_accesses: args.log_accesses, ..CheckOptions::default() };
    let machine = match Machine::new(check) {
        Ok(machine) => machine,
        Err(error) => {
            println!("the device could not be created: {error}");
            return ExitCode::FAILURE;
        }
    };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} programs, {eta} left, {msg}");
    let progress = ProgressBar::new(args.programs).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let (mut sum, mut shown) = (Sum::default(), 0);
    for seed in args.seed..args.seed.saturating_add(args.programs) {
        let program = Program::random(seed);
        match Comparison::of(&machine, &program) {
            Ok(comparison) => {
                sum.add(&comparison);
                if !comparison.agrees() {
                    sum.first = sum.first.or(Some(seed));
                    if shown < args.show {
                        shown += 1;
                        progress.suspend(|| println!("seed {seed}\n{program}{comparison:#?}\n"));
                    }
                }
            }
            Err(error) => {
                sum.rejected += 1;
                sum.first = sum.first.or(Some(seed));
                progress.suspend(|| println!("seed {seed}\n{program}{error}\n"));
            }
        }
        progress.set_position(seed - args.seed);
    }
    progress.finish_and_clear();
    sum.print(args.json);
    if sum.first.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Sum {
    fn add(&mut self, of: &Comparison) {
        self.programs += 1;
        self.race_free += u64::from(of.races == 0);
        self.pairs += of.pairs;
        self.races += of.races;
        self.hidden += of.hidden;
        self.missed += of.missed.len();
        self.wrong += of.wrong.len();
        self.silent += of.silent.len();
        self.strange += of.strange.len();
        self.too_large += of.too_large;
    }

    fn print(&self, as_json: bool) {
        let Self {
            programs, race_free, pairs, races, hidden, missed, wrong, silent, strange, too_large, rejected, ..
        } = self;
        if as_json {
            let result = json!({
                "programs": programs, "race_free": race_free, "pairs": pairs, "races": races, "hidden": hidden,
                "missed": missed, "false": wrong, "silent": silent, "strange": strange, "too_large": too_large,
                "rejected": rejected, "first_seed": self.first,
            });
            println!("{result}");
            return;
        }
        println!("{programs} programs, {race_free} of them without a race; {rejected} were rejected");
        println!("{pairs} pairs of accesses that conflict, {races} of them race by the axioms");
        println!("{missed} races missed, {wrong} false reports, {hidden} races hidden by others");
        println!("{silent} ranges with a race and no report, {strange} strange reports, {too_large} pairs too large");
        if let Some(seed) = self.first {
            println!("the first program that differs has seed {seed}");
        }
    }
}

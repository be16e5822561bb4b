//! Runs random programs on every engine for a given time, writes programs with differences to small files, and reports
//! coverage.
//!
//! Child processes do the work, since wrong code may end its process. `--shard I/N` selects every Nth program;
//! programs are numbered, and the same seed and number give the same program everywhere.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the command line")]

mod args;
mod child;
mod crash;
mod parent;
mod report;

use std::process::ExitCode;

use spelter_tests::fuzz::{quiet_panics, stages, text};

use args::{Args, Mode};

fn main() -> ExitCode {
    let args = Args::of_process();
    match args.mode() {
        Mode::Parent => parent::run(&args),
        Mode::Child { job } => child::run(&args, job),
        Mode::Check { tape } => crash::check(&args, &tape),
        Mode::Files => files(&args),
    }
}

/// Runs programs from files.
fn files(args: &Args) -> ExitCode {
    quiet_panics();
    let mut bench = args.bench();
    let mut good = true;
    for path in &args.files {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        let result = text.and_then(|text| text::read(&text)).and_then(|program| {
            if args.show {
                println!("{}", stages(&program.kernel));
            }
            bench.check(&program).map_err(|finding| format!("{}: {}", finding.what, finding.detail))
        });
        match result {
            Ok(()) => println!("{}: all agree", path.display()),
            Err(error) => {
                println!("{}: {error}", path.display());
                good = false;
            }
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

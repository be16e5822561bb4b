//! Runs broken shaders through reader, optimiser, every back end and an execution: none may end the process, panic,
//! hang or use unbounded memory.
//!
//! Child processes with a memory cap do the work; each makes many mutants. A mutant depends on its number only, so the
//! one that ended a child is made again and written to a file, and another child continues after it. Blocks of mutants
//! are the jobs of a job array (docs/scale.md).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the command line")]

mod child;
mod mutant;
mod parent;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use spelter_jobs::JobArgs;

/// Mutants of a block.
pub(crate) const BLOCK: u64 = 512;

/// The kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Words of SPIR-V modules.
    Spirv,
    /// WGSL texts.
    Wgsl,
}

/// Runs broken shaders through the whole pipeline.
#[derive(Clone, Debug, Parser)]
#[command(name = "mutants")]
pub(crate) struct Args {
    /// Mutants, of all shards together.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) count: u64,
    /// Parts of the mutants, and a file of results. A job is a block of mutants.
    #[command(flatten)]
    pub(crate) array: JobArgs,
    /// Processes.
    #[arg(long, default_value_t = 1)]
    pub(crate) jobs: u64,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The kind of input.
    #[arg(long, value_enum, default_value_t = Kind::Spirv)]
    pub(crate) kind: Kind,
    /// Memory of a process, in MiB.
    #[arg(long, default_value_t = 2048)]
    pub(crate) memory: u64,
    /// Seconds of work for one mutant.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// The folder for findings.
    #[arg(long, default_value = "mutants-found")]
    pub(crate) out: PathBuf,
    /// Prints an object for each finding, and one for all, as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Runs this mutant alone, in this process.
    #[arg(long)]
    pub(crate) only: Option<u64>,
    /// Runs the blocks that standard input names, and records the current mutant in this file.
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) child: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match (&args.child, args.only) {
        (Some(child), _) => child::run(&args, child),
        (None, Some(number)) => child::run_one(&args, number),
        (None, None) => parent::run(&args),
    }
}

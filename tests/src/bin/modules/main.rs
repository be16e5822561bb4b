//! Runs the compute entry points of other projects' modules on every engine, with random memory, and reports rejected
//! modules, kernels without machine code, differences between engines, and long compile times.
//!
//! Child processes do the work, since wrong code may end its process. A child gets one file at a time; one that has
//! ended with a file is replaced, and that file is a finding.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the command line")]

mod child;
mod parent;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use spelter_jobs::JobArgs;
use spelter_tests::modules::collect;
use spelter_tests::modules::families::Families;

/// Runs the compute shaders of public projects on every engine and compares.
#[derive(Clone, Debug, Parser)]
#[command(name = "modules")]
pub(crate) struct Args {
    /// The job array: a job is a file.
    #[command(flatten)]
    pub(crate) array: JobArgs,
    /// Processes.
    #[arg(long, default_value_t = 1)]
    pub(crate) jobs: usize,
    /// Contents of memory for each kernel; more for one that writes nothing.
    #[arg(long, default_value_t = 3)]
    pub(crate) seeds: u64,
    /// Workgroups of each dispatch.
    #[arg(long, default_value = "2,2,1", value_parser = groups)]
    pub(crate) groups: [u32; 3],
    /// Sets a specialization constant, of every module that has it.
    #[arg(long, value_name = "ID=VALUE", value_parser = constant)]
    pub(crate) spec: Vec<(u32, u64)>,
    /// A table of push constants, specialization constants and workgroups by names of files (docs/fuzzing.md).
    #[arg(long, value_name = "FILE", value_parser = |path: &str| Families::read(Path::new(path)))]
    pub(crate) families: Option<Families>,
    /// Runs only the interpreters and the compiled engines whose name contains this.
    #[arg(long, default_value = "")]
    pub(crate) engine: String,
    /// Prints an object for each entry point, and one for all, as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Modules (.spv, .spvasm, .wgsl), or folders with them.
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Examines the files whose numbers are lines of standard input.
    #[arg(long, hide = true)]
    pub(crate) child: bool,
}

fn constant(text: &str) -> Result<(u32, u64), String> {
    let parse = || {
        let (id, value) = text.split_once('=')?;
        Some((id.parse().ok()?, value.parse().ok()?))
    };
    parse().ok_or_else(|| format!("`{text}` is not ID=VALUE with numbers"))
}

fn groups(text: &str) -> Result<[u32; 3], String> {
    let sizes: Option<Vec<u32>> = text.split(',').map(|size| size.parse().ok().filter(|size| *size > 0)).collect();
    sizes.and_then(|sizes| sizes.try_into().ok()).ok_or_else(|| format!("`{text}` is not X,Y,Z"))
}

impl Args {
    /// The files, in the same order everywhere.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        self.paths.iter().for_each(|path| collect(path, &mut files));
        files.sort();
        files
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.child {
        return child::run(&args);
    }
    parent::run(&args).unwrap_or_else(|problem| {
        eprintln!("error: {problem}");
        ExitCode::FAILURE
    })
}

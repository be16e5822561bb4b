//! Runs the compute entry points of other projects' modules on every engine, with random memory, and reports rejected
//! modules, kernels without machine code, differences between engines, and long compile times.
//!
//! Child processes do the work, since wrong code may end its process. A child handles every Nth file and reports which
//! one it is at; after a crash another one continues after that file.

#![expect(clippy::print_stdout, reason = "this is a program for the command line")]

mod child;
mod parent;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use spelter_jobs::Shard;
use spelter_tests::modules::collect;
use spelter_tests::modules::families::Families;

/// Runs the compute shaders of public projects on every engine and compares.
#[derive(Clone, Debug, Parser)]
#[command(name = "modules")]
pub(crate) struct Args {
    /// Runs only part I of N equal parts of the files: files I - 1, I - 1 + N, I - 1 + 2N, …
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = shard)]
    pub(crate) shard: (usize, usize),
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
    /// Starts with this file of the shard.
    #[arg(long, hide = true)]
    pub(crate) child: Option<usize>,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let (index, count) = text.parse::<Shard>()?.numbers();
    match (usize::try_from(index), usize::try_from(count)) {
        (Ok(index), Ok(count)) => Ok((index, count)),
        _ => Err("a shard is two numbers, I/N".to_owned()),
    }
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
    /// The files of a shard, in the same order everywhere.
    pub(crate) fn files(&self, (index, count): (usize, usize)) -> Vec<PathBuf> {
        let mut files = Vec::new();
        self.paths.iter().for_each(|path| collect(path, &mut files));
        files.sort();
        files.into_iter().skip(index).step_by(count).collect()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.child {
        Some(first) => child::run(&args, first),
        None => parent::run(&args),
    }
}

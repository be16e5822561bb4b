//! The census of passes: how many shaders of which projects each pass and each access pattern changes, and how many
//! lines of code it has. A pass that changes shaders of one project only is tuned to that project, and one that changes
//! this repository's kernels only is tuned to its tests and benchmarks.

#![expect(clippy::print_stdout, reason = "this is a program for the command line")]

mod kernel;
mod report;
mod subject;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use report::{OWN, Project, Report};
use spelter_tests::modules::collect;

/// Counts the shaders that each pass of the compiler changes, by project.
///
/// The modules of a folder whose names are equal up to the first dot are variants of one shader: `blur.hlsl.spv` and
/// `blur.glsl.spv`. A shader has one kernel for each entry point, and counts once if any of its variants is changed.
#[derive(Debug, Parser)]
#[command(name = "census")]
struct Args {
    /// Modules (.spv, .spvasm, .wgsl) of a project: a name and a file, or a folder.
    #[arg(required = true, value_name = "NAME=PATH", value_parser = project)]
    projects: Vec<(String, PathBuf)>,
    /// Modules of this repository: a file, or a folder. They have a column, but make no part general.
    #[arg(long, value_name = "PATH")]
    own: Vec<PathBuf>,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

fn project(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((OWN, _)) => Err(format!("`{OWN}` is the column of `--own`")),
        Some((name, path)) if !name.is_empty() && Path::new(path).exists() => Ok((name.into(), path.into())),
        Some((_, path)) => Err(format!("there is no `{path}`")),
        None => Err(format!("`{text}` is not NAME=PATH")),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut files = Vec::new();
    let foreign = args.projects.iter().map(|(name, path)| (name.as_str(), path));
    for (name, path) in foreign.chain(args.own.iter().map(|path| (OWN, path))) {
        let mut found = Vec::new();
        collect(path, &mut found);
        found.sort();
        files.extend(found.into_iter().map(|path| (name, path)));
    }
    let bar = ProgressBar::new(files.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").unwrap_or(ProgressStyle::default_bar()));
    let projects: Mutex<BTreeMap<&str, Project>> = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            // Kernels of a thousand nested constructs need more than the default stack.
            let worker = std::thread::Builder::new().stack_size(64 << 20);
            let run = || {
                // A ticket counter: no other memory is published through it.
                while let Some((name, path)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = subject::census(path);
                    if let Ok(mut projects) = projects.lock() {
                        projects.entry(name).or_default().add(found);
                    }
                    bar.inc(1);
                }
            };
            if worker.spawn_scoped(scope, run).is_err() {
                run();
            }
        }
    });
    bar.finish_and_clear();
    let projects = projects.into_inner().unwrap_or_default();
    let report = Report::new(projects);
    if args.json {
        println!("{}", report.json());
    } else {
        print!("{}", report.markdown());
    }
    ExitCode::SUCCESS
}

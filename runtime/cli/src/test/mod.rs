//! `spelter test`: runs AmberScript files and reports for each whether it passed, failed, or why it was skipped.

mod compare;
mod features;
mod find;
mod objects;
mod probe;
mod report;
mod run;
mod shader;
mod tool;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::amber::{self, Stop};
use crate::args::TestArgs;
use crate::failure::Failure;
use crate::file;
use crate::output::Output;
use report::{Report, Verdict};

/// The largest script in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Runs the scripts of the files and folders. An error after all of them have run, if one failed.
pub(crate) fn run(args: &TestArgs, output: &mut Output) -> Result<(), Failure> {
    let scripts = find::scripts(&args.paths)?;
    let scripts: Vec<_> = args.shard.pick(scripts.into_iter()).collect();
    let bar = progress(scripts.len(), args.json);
    let mut reports = Vec::new();
    for path in &scripts {
        bar.set_message(path.display().to_string());
        let start = Instant::now();
        let verdict = verdict(path, args);
        let report = Report { path: path.clone(), verdict, time: start.elapsed() };
        if !args.json {
            bar.suspend(|| report.print(args.quiet, output).and_then(|()| output.flush()))?;
        }
        bar.inc(1);
        reports.push(report);
    }
    bar.finish_and_clear();
    report::summary(&reports, args.json, output)
}

/// The verdict on one script, whatever goes wrong.
fn verdict(path: &Path, args: &TestArgs) -> Verdict {
    // A panic of the driver fails this script; the others still run.
    let ended = catch_unwind(AssertUnwindSafe(|| judge(path, args)));
    match ended {
        Ok(Ok(())) => Verdict::Pass,
        Ok(Err(Stop::Fail(message))) => Verdict::Fail(message),
        Ok(Err(Stop::Skip(reason))) => Verdict::Skip(reason),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            Verdict::Fail(format!("the driver panicked: {text}"))
        }
    }
}

fn judge(path: &Path, args: &TestArgs) -> Result<(), Stop> {
    let bytes = file::read(path, MAX_BYTES).map_err(|failure| Stop::Fail(failure.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| Stop::Fail("the script is not UTF-8".to_owned()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let script = amber::parse(&text, folder)?;
    features::check(&script.needs)?;
    run::script(&script, folder, &args.device)
}

/// A progress bar on standard error if that is a terminal, hidden otherwise.
fn progress(scripts: usize, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(scripts as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}

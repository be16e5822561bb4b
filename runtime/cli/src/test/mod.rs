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

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use spelter_jobs::{JobArray, digest, earlier, jobs_left};

use crate::amber::script::{Action, Command};
use crate::amber::{self, Stop};
use crate::args::TestArgs;
use crate::failure::Failure;
use crate::file;
use crate::output::{self, Output};
use report::{Report, Verdict};

/// The largest script in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Runs the scripts of the files and folders, without those whose results a file has. An error after all of them have
/// run, if one failed, in an earlier run too.
pub(crate) fn run(args: &TestArgs, output: &mut Output) -> Result<(), Failure> {
    let scripts = find::scripts(&args.paths)?;
    let array = job_array(&scripts, args);
    let wrong = |error: spelter_jobs::Error| Failure::new(error.to_string());
    let mut results = args.array.open(&array).map_err(wrong)?;
    let mut reports: BTreeMap<_, _> =
        earlier(results.as_ref(), Report::of_result).map_err(wrong)?.into_iter().collect();
    let before = reports.len();
    let left = jobs_left(results.as_ref(), &array, args.array.shard);
    let bar = progress(left.len(), args.json);
    for job in left {
        let Some(path) = usize::try_from(job).ok().and_then(|job| scripts.get(job)) else { continue };
        bar.set_message(path.display().to_string());
        let start = Instant::now();
        let verdict = verdict(path, args);
        let report = Report { path: path.clone(), verdict, time: start.elapsed() };
        if !args.json {
            bar.suspend(|| report.print(args.quiet, output).and_then(|()| output.flush()))?;
        }
        bar.inc(1);
        if let Some(results) = &mut results {
            let failed = matches!(report.verdict, Verdict::Fail(_));
            results.record(job, &report.result(), failed).map_err(wrong)?;
        }
        reports.insert(job, report);
    }
    bar.finish_and_clear();
    if before > 0 {
        output::note(format_args!("{before} of these results are those of an earlier run"));
    }
    report::summary(&reports.into_values().collect::<Vec<_>>(), args.json, output)
}

/// The scripts as a job array: equal for the same scripts, by their paths and contents, and the same device.
fn job_array(scripts: &[PathBuf], args: &TestArgs) -> JobArray {
    let named = scripts.iter().map(|path| (path.display().to_string(), path.as_path()));
    let device = digest(&format!("{:?}", args.device));
    let settings = json!({ "scripts": file::digest(named, MAX_BYTES), "device": device });
    JobArray { name: "test".to_owned(), settings, jobs: scripts.len() as u64 }
}

/// The verdict on one script, whatever goes wrong.
fn verdict(path: &Path, args: &TestArgs) -> Verdict {
    // A panic of the driver fails this script; the others still run.
    let ended = catch_unwind(AssertUnwindSafe(|| judge(path, args)));
    match ended {
        Ok(Ok(true)) => Verdict::Pass(None),
        Ok(Ok(false)) => Verdict::Pass(Some("nothing is asserted: the script has no EXPECT".to_owned())),
        Ok(Err(Stop::Fail(message))) => Verdict::Fail(message),
        Ok(Err(Stop::Skip(reason))) => Verdict::Skip(reason),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            Verdict::Fail(format!("the driver panicked: {text}"))
        }
    }
}

/// Runs a script. Returns whether it asserts something.
fn judge(path: &Path, args: &TestArgs) -> Result<bool, Stop> {
    let bytes = file::read(path, MAX_BYTES).map_err(|failure| Stop::Fail(failure.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| Stop::Fail("the script is not UTF-8".to_owned()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let script = amber::parse(&text, folder)?;
    features::check(&script.needs)?;
    if script.commands.is_empty() {
        // A truncated script, or one whose commands another program adds, is no test that passed.
        return Err(Stop::Fail("the script has no command: nothing is run, and nothing is asserted".to_owned()));
    }
    run::script(&script, folder, &args.device)?;
    Ok(script.commands.iter().any(asserts))
}

/// Whether a command compares something.
fn asserts(command: &Command) -> bool {
    match &command.what {
        Action::Run { .. } | Action::Copy { .. } => false,
        Action::Repeat(count, inside) => *count > 0 && inside.iter().any(asserts),
        Action::ExpectValues(_) | Action::ExpectTexels(_) | Action::ExpectBuffer(_) => true,
    }
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

//! `spelter test`: runs AmberScript files, and in checked mode shaders, and reports for each whether it passed, failed,
//! or why it was skipped.

mod cases;
mod compare;
mod features;
mod launch;
mod list;
mod objects;
mod probe;
mod report;
mod run;
mod shader;
mod tool;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use indicatif::ProgressBar;
use serde_json::json;
use spelter::Schedule;
use spelter::check::report::Filter;
use spelter_jobs::{JobArray, digest, earlier, jobs_left};

use crate::amber::script::{Action, AmberCommand};
use crate::amber::{self, Stop};
use crate::args::TestArgs;
use crate::bar::bar;
use crate::check;
use crate::device;
use crate::failure::Failure;
use crate::file;
use crate::output::{self, Output};
use cases::{Case, CaseKind};
use launch::{JobFindings, Launches};
use report::{JobReport, Verdict};

/// The largest script or shader in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Runs the jobs of the files and folders, without those whose results a file has. Returns the exit status; an error
/// after all of them have run, if one failed, in an earlier run too.
pub(crate) fn run(args: &TestArgs, output: &mut Output) -> Result<u8, Failure> {
    let cases = cases::find(&args.paths, args.check.check.is_some())?;
    let filter = check::with_files(args.check.filter(), &args.check.suppressions)?;
    let array = job_array(&cases, args, &filter);
    let wrong = |error: spelter_jobs::Error| Failure::new(error.to_string());
    let mut results = args.array.open(&array).map_err(wrong)?;
    let mut reports: BTreeMap<_, _> =
        earlier(results.as_ref(), JobReport::of_result).map_err(wrong)?.into_iter().collect();
    let before = reports.len();
    if !args.json {
        report::print_earlier(reports.values(), output)?;
    }
    let left = jobs_left(results.as_ref(), &array, args.array.shard);
    let bar = progress(left.count_left(), args.json);
    let mut runner = JobRunner { args, filter, latest: None };
    let mut shown = report::AlreadyPrinted::default();
    for job in left {
        let (at, order) = (job / args.check.orders(), job % args.check.orders());
        let Some(case) = usize::try_from(at).ok().and_then(|at| cases.get(at)) else { continue };
        bar.set_message(case.name.clone());
        let report = runner.report(case, order);
        if !args.json {
            bar.suspend(|| report.print(args.quiet, &mut shown, output).and_then(|()| output.flush()))?;
        }
        bar.inc(1);
        if let Some(results) = &mut results {
            let is_partial = args.check.status_without_error(report.is_partial()) != 0;
            let failed = matches!(report.verdict, Verdict::Fail { .. }) || is_partial;
            results.record(job, &report.result(), failed).map_err(wrong)?;
        }
        reports.insert(job, report);
    }
    bar.finish_and_clear();
    if before > 0 {
        output::note(format_args!("{before} of these results are those of an earlier run"));
    }
    report::summary(&reports.into_values().collect::<Vec<_>>(), args, output)
}

/// The scripts as a job array: equal for the same scripts, by their paths and contents, the same device and checks.
fn job_array(cases: &[Case], args: &TestArgs, filter: &Filter) -> JobArray {
    // Only a file of results needs it, and each shader is compiled for it.
    let contents = args.array.results.as_ref().map(|_| digest(&cases.iter().map(Case::digest).collect::<String>()));
    let device = device::settings(&args.device, args.check.options());
    let mut settings = json!({ "scripts": contents, "device": device });
    if args.check.many_seeds > 1 {
        settings["orders"] = args.check.many_seeds.into();
    }
    if let Some(profile) = args.check.check {
        let options = (filter, args.check.check_memory, args.check.groups, args.check.deny_order);
        settings["profile"] = profile.name().into();
        settings["options"] = digest(&format!("{options:?}")).into();
    }
    JobArray { name: "test".to_owned(), settings, jobs: cases.len() as u64 * args.check.orders() }
}

/// Runs jobs.
struct JobRunner<'a> {
    args: &'a TestArgs,
    filter: Filter,
    /// The shader of the latest job, which the next one may need again.
    latest: Option<(String, Launches)>,
}

impl JobRunner<'_> {
    /// The report of a case in one order.
    fn report(&mut self, case: &Case, order: u64) -> JobReport {
        let start = Instant::now();
        let mut found = JobFindings::default();
        let verdict = self.verdict(case, order, &mut found);
        if let Some((_, launches)) = self.latest.as_ref().filter(|(name, _)| *name == case.name) {
            found.findings.iter_mut().for_each(|finding| check::in_file(finding, launches.shader()));
        }
        let order = (self.args.check.many_seeds > 1).then_some(order);
        let is_partial = found.stats.is_partial() || found.is_unchecked;
        let checked = self.args.check.check.map(|_| report::CheckedJob::new(found.findings, &self.filter, is_partial));
        let verdict = report::with_check(verdict, checked.as_ref());
        JobReport {
            has_run: found.has_run,
            is_of_all_orders: !found.has_run && !matches!(verdict, Verdict::Pass(_)),
            time: start.elapsed(),
            ..JobReport::new(case.name.clone(), order, verdict, checked)
        }
    }

    /// The verdict without that of checked mode, whatever goes wrong.
    fn verdict(&mut self, case: &Case, order: u64, found: &mut JobFindings) -> Verdict {
        // A panic of the driver fails this job; the others still run.
        match catch_unwind(AssertUnwindSafe(|| self.judge(case, order, found))) {
            Ok(Ok(())) => Verdict::Pass(found.note.take()),
            Ok(Err(Stop::Fail(message))) => {
                let by_check = message.starts_with(report::BY_ORDER);
                Verdict::Fail { message, by_check }
            }
            Ok(Err(Stop::Skip(reason))) => Verdict::Skip(reason),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
                Verdict::Fail { message: format!("the driver panicked: {text}"), by_check: false }
            }
        }
    }

    fn judge(&mut self, case: &Case, order: u64, found: &mut JobFindings) -> Result<(), Stop> {
        if matches!(case.kind, CaseKind::Script) {
            return judge_script(&case.path, order, self.args, found);
        }
        let mut launches = match self.latest.take() {
            Some((name, launches)) if name == case.name => launches,
            _ => Launches::new(case, self.args, found)?,
        };
        let ended = launches.run(order, self.args, found);
        self.latest = Some((case.name.clone(), launches));
        ended
    }
}

/// The schedule of an order: the first one is the usual one.
fn schedule(order: u64) -> Schedule {
    if order == 0 { Schedule::Ascending } else { Schedule::Random(order) }
}

/// Runs a script.
fn judge_script(path: &Path, order: u64, args: &TestArgs, found: &mut JobFindings) -> Result<(), Stop> {
    let bytes = file::read(path, MAX_BYTES).map_err(|failure| Stop::Fail(failure.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| Stop::Fail("the script is not UTF-8".to_owned()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let script = amber::parse(&text, folder)?;
    features::check(&script.needs)?;
    if script.commands.is_empty() {
        // A truncated script, or one whose commands another program adds, is no test that passed.
        return Err(Stop::Fail("the script has no command: nothing is run, and nothing is asserted".to_owned()));
    }
    let mut device = args.device.clone();
    if order > 0 {
        device.schedule = Some(schedule(order));
    }
    run::script(&script, path, (&device, args.check.options()), found)?;
    // In checked mode it asserts that there is no error.
    if args.check.check.is_none() && !script.commands.iter().any(asserts) {
        found.note = Some("nothing is asserted: the script has no EXPECT".to_owned());
    }
    Ok(())
}

/// Whether a command compares something.
fn asserts(command: &AmberCommand) -> bool {
    match &command.what {
        Action::Run { .. } | Action::Copy { .. } => false,
        Action::Repeat(count, inside) => *count > 0 && inside.iter().any(asserts),
        Action::ExpectValues(_) | Action::ExpectTexels(_) | Action::ExpectBuffer(_) => true,
    }
}

/// A progress bar on standard error if that is a terminal, hidden otherwise.
fn progress(jobs: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    bar(jobs, "{bar:32} {pos}/{len} {elapsed} {wide_msg}")
}

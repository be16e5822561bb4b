//! `spelter run --check`: the findings of a run, and runs in other orders (`--many-seeds`).

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value as Json, json};
use spelter::check::report::{fingerprint, stats_json};
use spelter::check::{CheckStats, Finding, Severity};
use spelter::{Context, Schedule};
use spelter_jobs::{JobArray, JobsLeft, Results, digest, earlier};

use super::bind::BoundResources;
use crate::args::{CheckArgs, RunArgs};
use crate::bar::bar;
use crate::check::{Merged, Report, with_files};
use crate::device;
use crate::failure::Failure;
use crate::file;
use crate::output::{self, Output};
use crate::shader::Shader;

/// The largest file of an option in bytes.
const MAX_INPUT: u64 = 4 << 30;

/// What checked mode found.
pub(super) struct Checked {
    /// What this process found.
    report: Report,
    /// That, and what the file of results has of orders that an earlier process ran.
    all: Merged,
    orders: Orders,
}

/// What `--many-seeds` adds to the first run.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// That results depend on the order, in a sentence.
    differs: Option<String>,
    /// The orders that lost the device, and why, those of an earlier process included.
    failed: BTreeMap<u64, String>,
    /// The results of the orders that an earlier process ran.
    earlier: Vec<Json>,
}

impl Orders {
    /// The failure of the first order that failed.
    fn failure(&self) -> Option<Failure> {
        let reason = self.failed.values().next()?;
        Some(Failure::device_lost(match self.failed.len() {
            1 => reason.clone(),
            2 => format!("{reason}; 1 other order failed, too"),
            count => format!("{reason}; {} other orders failed, too", count - 1),
        }))
    }

    /// The number of orders that ran earlier of which a part was not checked.
    fn earlier_partial(&self) -> usize {
        self.earlier.iter().filter(|result| result["partial"] == true).count()
    }

    /// The number of errors of orders that ran earlier.
    fn earlier_errors(&self) -> usize {
        let findings = self.earlier.iter().flat_map(|result| result["findings"].as_array().into_iter().flatten());
        findings.filter(|finding| finding["severity"] == Severity::Error.name()).count()
    }

    /// Whether something was not checked that this process did not count.
    fn is_partial(&self) -> bool {
        self.earlier_partial() > 0 || !self.failed.is_empty()
    }
}

impl Checked {
    fn new(report: Report, orders: Orders) -> Self {
        let mut all = Merged::from_result(&json!({ "findings": report.json() }));
        orders.earlier.iter().for_each(|result| all.append(Merged::from_result(result)));
        Self { report, all, orders }
    }

    /// The exit status: 0, or that of the options if there is an error in this process or in the file of results.
    pub(super) fn status(&self, args: &CheckArgs) -> u8 {
        match self.all.count(Severity::Error) {
            0 if self.denied(args).is_none() => {
                args.status_without_error(self.report.stats.is_partial() || self.orders.is_partial())
            }
            _ => args.error_status(),
        }
    }

    /// The objects of all findings.
    pub(super) fn findings(&self) -> &[Json] {
        &self.all.findings
    }

    /// That results depend on the order, if the options deny that.
    pub(super) fn denied(&self, args: &CheckArgs) -> Option<Failure> {
        let differs = self.orders.differs.as_ref().filter(|_| args.deny_order)?;
        Some(Failure::new(format!("{differs} (--deny-order)")))
    }

    /// Notes about the orders, without what is denied.
    pub(super) fn notes(&self, args: &CheckArgs) -> Vec<String> {
        let mut notes: Vec<String> = self.orders.differs.iter().filter(|_| !args.deny_order).cloned().collect();
        let Some(path) = args.results.as_ref().map(|path| path.display()) else { return notes };
        match (self.orders.earlier_errors(), self.orders.earlier_partial()) {
            (0, 0) => {}
            (0, partial) => {
                notes.push(format!("{path} has orders that ran earlier of which a part was not checked: {partial}"));
            }
            (errors, _) => notes.push(format!("{path} has errors of orders that ran earlier: {errors}")),
        }
        notes
    }

    /// Members of the JSON object of a run.
    pub(super) fn json(&self) -> Map<String, Json> {
        let failed = self.orders.failed.iter().map(|(order, reason)| json!({ "order": order, "reason": reason }));
        [
            ("findings".to_owned(), self.findings().into()),
            ("suppressed".to_owned(), self.report.suppressed.into()),
            ("not_shown".to_owned(), self.report.not_shown.into()),
            ("depends_on_order".to_owned(), json!(self.orders.differs)),
            ("failed_orders".to_owned(), failed.collect()),
            ("checked".to_owned(), stats_json(&self.report.stats)),
            ("recorded_errors".to_owned(), self.orders.earlier_errors().into()),
            ("recorded_partial".to_owned(), self.orders.earlier_partial().into()),
        ]
        .into_iter()
        .collect()
    }

    /// Writes the findings to standard error, and a summary. Of findings of earlier processes alone there is a line,
    /// since a file of results has no source. `is_whole` if all that was to run has ended.
    pub(super) fn print(&self, is_whole: bool) {
        self.report.print_findings();
        let own: HashSet<String> = self.report.findings.iter().map(fingerprint).collect();
        for finding in self.findings() {
            let text = |name: &str| finding[name].as_str().unwrap_or_default();
            if !own.contains(text("fingerprint")) {
                let (severity, id, title) = (text("severity"), text("id"), text("title"));
                output::note(format_args!("of an order that ran earlier: {severity}[{id}]: {title}"));
            }
        }
        let is_partial = !is_whole || self.report.stats.is_partial() || self.orders.is_partial();
        self.report.print_summary(|severity| self.all.count(severity), is_partial);
    }
}

/// The result of a shard that has no order of --many-seeds to run: nothing. The file of results is made, for `spelter
/// merge`.
pub(super) fn without_orders(shader: &Shader, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    check_results(shader, args)?;
    let (shard, orders) = (args.check.orders(), args.check.many_seeds.unwrap_or(0));
    let note = format!("shard {shard} has none of the {orders} orders of --many-seeds: nothing ran");
    if args.json {
        let report = Report::new(Vec::new(), CheckStats::default(), (shader, args))?;
        let checked = Checked::new(report, Orders::default());
        let mut object = json!({ "file": args.file.display().to_string(), "notes": [note] });
        if let Some(object) = object.as_object_mut() {
            object.extend(checked.json());
        }
        output.json(&object)?;
    }
    output::note(note);
    Ok(0)
}

/// The first run has failed: the failure of the command. An order that loses the device is one of several that are
/// checked, so the others run all the same. In checked mode, `found` is what was found before.
pub(super) fn after_a_failure(
    context: &Context,
    shader: &Shader,
    args: &RunArgs,
    failure: Failure,
    found: &mut Option<Checked>,
) -> Failure {
    if args.check.check.is_none() {
        return failure;
    }
    let mut all = Vec::new();
    context.device().take_findings().into_iter().for_each(|finding| add(&mut all, finding));
    match with_other_orders((shader, args), (all, context.check_stats()), Err(&failure)) {
        Ok((checked, of_orders)) => {
            *found = Some(checked);
            of_orders.unwrap_or(failure)
        }
        Err(unreported) => unreported,
    }
}

/// The findings of the run that has ended, and of the runs with other seeds; `None` if checked mode is off. If it
/// fails, `found` is what was found before.
pub(super) fn report(
    context: &Context,
    shader: &Shader,
    bound: &BoundResources,
    args: &RunArgs,
    found: &mut Option<Checked>,
) -> Result<Option<Checked>, Failure> {
    if args.check.check.is_none() {
        return Ok(None);
    }
    let all = context.findings().map_err(|error| shader.failed(error))?;
    let contents = if args.check.many_seeds.is_some() { results(context, bound)? } else { Vec::new() };
    match with_other_orders((shader, args), (all, context.check_stats()), Ok(contents.as_slice()))? {
        (checked, None) => Ok(Some(checked)),
        (checked, Some(failure)) => {
            *found = Some(checked);
            Err(failure)
        }
    }
}

/// Adds the runs with other seeds to the first one, which ended with these contents, or with a failure. Returns what
/// all of them found, with the failure of the orders if there is one. An error if that cannot be reported.
fn with_other_orders(
    (shader, args): (&Shader, &RunArgs),
    (mut all, mut stats): (Vec<Finding>, CheckStats),
    first: Result<&[Vec<u8>], &Failure>,
) -> Result<(Checked, Option<Failure>), Failure> {
    let can_go_on = first.map_or_else(Failure::is_device_lost, |_| true);
    let mut orders = Orders::default();
    let ended = match args.check.many_seeds {
        Some(seeds) if can_go_on => in_other_orders((shader, args), first, seeds, (&mut all, &mut stats), &mut orders),
        _ => Ok(()),
    };
    let failure = ended.err().or_else(|| orders.failure());
    Ok((Checked::new(Report::new(all, stats, (shader, args))?, orders), failure))
}

/// The orders of a run as a job array; order 0 is the usual one. Results are of the contents of files, not of their
/// names.
fn job_array(shader: &Shader, args: &RunArgs, seeds: u32) -> Result<JobArray, Failure> {
    let RunArgs { entry, groups, invocations, bind, uniform, images, push, spec, repeat, .. } = args;
    let CheckArgs { check, check_memory, deny_order, .. } = &args.check;
    let filter = with_files(args.check.filter(), &args.check.suppressions)?;
    let launch = (entry, groups, invocations, bind, uniform, images, push, spec, repeat);
    // Whether a job failed depends on what is denied.
    let options = digest(&format!("{launch:?}{:?}", (check, check_memory, filter, deny_order)));
    let file = args.file.file_name().unwrap_or_default().to_string_lossy();
    // By their numbers: the options have their names.
    let inputs = (0..).zip(args.input_files()).map(|(number, path): (u32, _)| (number.to_string(), path));
    Ok(JobArray {
        name: "run --many-seeds".to_owned(),
        settings: json!({
            "file": file, "shader": shader.digest(), "options": options, "inputs": file::digest(inputs, MAX_INPUT),
            "device": device::settings(&args.device, args.check.options()),
        }),
        jobs: seeds.into(),
    })
}

/// Checks that the file of results can be continued, before a long run.
pub(super) fn check_results(shader: &Shader, args: &RunArgs) -> Result<(), Failure> {
    open(shader, args).map(drop)
}

/// The file of results, if one is wanted.
fn open(shader: &Shader, args: &RunArgs) -> Result<Option<Results>, Failure> {
    let (Some(path), Some(seeds)) = (&args.check.results, args.check.many_seeds) else { return Ok(None) };
    let results = Results::open(path, &job_array(shader, args, seeds)?, args.check.orders(), args.check.any_build);
    results.map(Some).map_err(|error| Failure::new(error.to_string()))
}

/// Writes what an order found. One that lost the device has a reason, and failed.
fn record(
    to: &mut Option<Results>,
    order: u64,
    findings: Vec<Finding>,
    (differs, partial, reason): (Option<&String>, bool, Option<&String>),
    (shader, args): (&Shader, &RunArgs),
) -> Result<(), Failure> {
    let Some(to) = to else { return Ok(()) };
    let report = Report::new(findings, CheckStats::default(), (shader, args))?;
    let status = match report.count(Severity::Error) {
        0 if differs.is_none() || !args.check.deny_order => args.check.status_without_error(partial),
        _ => args.check.error_status(),
    };
    let result =
        json!({ "findings": report.json(), "depends_on_order": differs, "partial": partial, "reason": reason });
    to.record(order, &result, status != 0 || reason.is_some()).map_err(|error| Failure::new(error.to_string()))
}

/// Runs with random orders, also after one that loses the device: others tell why. Adds their findings and counts.
/// The results of each are compared with those of the first run, unless that failed.
fn in_other_orders(
    (shader, args): (&Shader, &RunArgs),
    expected: Result<&[Vec<u8>], &Failure>,
    seeds: u32,
    (all, stats): (&mut Vec<Finding>, &mut CheckStats),
    to: &mut Orders,
) -> Result<(), Failure> {
    let mut file = open(shader, args)?;
    let of_order = |result: &Json| result["findings"].is_array().then(|| result.clone());
    let earlier = earlier(file.as_ref(), of_order).map_err(|error| Failure::new(error.to_string()))?;
    // Order 0 runs again in each process.
    for (order, result) in earlier.into_iter().filter(|(order, _)| *order > 0) {
        to.failed.extend(result["reason"].as_str().map(|reason| (order, reason.to_owned())));
        if to.differs.is_none() {
            to.differs = result["depends_on_order"].as_str().map(str::to_owned);
        }
        to.earlier.push(result);
    }
    to.failed.extend(expected.err().map(|failure| (0, failure.to_string())));
    let mut orders = match &file {
        Some(file) => file.left(),
        None => JobsLeft::of(args.check.orders(), seeds.into()),
    };
    if orders.clone().next() == Some(0) {
        orders.next();
        record(&mut file, 0, all.clone(), (None, stats.is_partial(), to.failed.get(&0)), (shader, args))?;
    }
    if orders.count_left() == 0 {
        return Ok(());
    }
    let bar = bar(orders.count_left(), "{bar:30} {pos}/{len} orders");
    for seed in orders {
        let mut args = args.clone();
        args.device.schedule = Some(Schedule::Random(seed));
        // Messages of the kernel are those of the first run.
        let ran = super::once(shader, &args, output::silent())?;
        ran.findings.iter().for_each(|finding| add(all, finding.clone()));
        *stats += ran.stats;
        let mut differs = None;
        match ran.failure.map(|failure| failure.with_order(format_args!("--schedule random:{seed}"))) {
            Some(failure) if failure.is_device_lost() => _ = to.failed.insert(seed, failure.to_string()),
            Some(failure) => {
                bar.finish_and_clear();
                return Err(failure);
            }
            None => {
                let difference = expected.ok().and_then(|first| super::difference(&ran.names, first, &ran.contents));
                differs = difference.map(|difference| {
                    format!("the result depends on the order: {difference} with --schedule random:{seed}")
                });
            }
        }
        let outcome = (differs.as_ref(), ran.stats.is_partial(), to.failed.get(&seed));
        record(&mut file, seed, ran.findings, outcome, (shader, &args))?;
        if to.differs.is_none() {
            to.differs = differs;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Adds a finding, or counts it if another run had it.
fn add(all: &mut Vec<Finding>, finding: Finding) {
    let identity = finding.identity();
    match all.iter_mut().find(|known| known.identity() == identity) {
        Some(known) => known.count = known.count.saturating_add(finding.count),
        None => all.push(finding),
    }
}

/// The final contents of all buffers and images.
pub(super) fn results(context: &Context, bound: &BoundResources) -> Result<Vec<Vec<u8>>, Failure> {
    let buffers = bound.buffers.iter().map(|buffer| Ok(context.read(&buffer.buffer)?));
    let images = bound.images.iter().map(|image| image.texels(context));
    buffers.chain(images).collect()
}

//! The orders of `spelter run --check --many-seeds`: a job array, whose runs a file of results may keep.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use spelter::Schedule;
use spelter::check::{CheckStats, Finding, Severity};
use spelter_jobs::{JobArray, JobsLeft, Results, digest, earlier};

use crate::args::{CheckArgs, RunArgs};
use crate::bar::bar;
use crate::check::{Report, with_files};
use crate::device;
use crate::failure::Failure;
use crate::file;
use crate::output;
use crate::shader::Shader;

/// The largest file of an option in bytes.
const MAX_INPUT: u64 = 4 << 30;

/// What `--many-seeds` adds to the first run.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// That results depend on the order, in a sentence.
    pub(super) differs: Option<String>,
    /// The orders that lost the device, and why, those of an earlier process included.
    pub(super) failed: BTreeMap<u64, String>,
    /// The results of the orders that an earlier process ran.
    pub(super) earlier: Vec<Json>,
}

impl Orders {
    /// The failure of the first order that failed.
    pub(super) fn failure(&self) -> Option<Failure> {
        let reason = self.failed.values().next()?;
        Some(Failure::device_lost(match self.failed.len() {
            1 => reason.clone(),
            2 => format!("{reason}; 1 other order failed, too"),
            count => format!("{reason}; {} other orders failed, too", count - 1),
        }))
    }

    /// The number of orders that ran earlier of which a part was not checked.
    pub(super) fn earlier_partial(&self) -> usize {
        self.earlier.iter().filter(|result| result["partial"] == true).count()
    }

    /// The number of errors of orders that ran earlier.
    pub(super) fn earlier_errors(&self) -> usize {
        let findings = self.earlier.iter().flat_map(|result| result["findings"].as_array().into_iter().flatten());
        findings.filter(|finding| finding["severity"] == Severity::Error.name()).count()
    }

    /// Whether something was not checked that this process did not count.
    pub(super) fn is_partial(&self) -> bool {
        self.earlier_partial() > 0 || !self.failed.is_empty()
    }
}

/// The orders of a run as a job array; order 0 is the usual one. Results are of the contents of files, not of their
/// names.
fn job_array(shader: &Shader, args: &RunArgs, seeds: u32) -> Result<JobArray, Failure> {
    let RunArgs { entry, groups, invocations, bind, uniform, images, push, spec, repeat, .. } = args;
    let CheckArgs { check, check_memory, deny_order, .. } = &args.check;
    let filter = with_files(args.check.reported.filter(), &args.check.reported.suppressions)?;
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
pub(super) fn run(
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
    if orders.remove(0) {
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

/// The time that a kernel which did not end may run in another order.
const MAX_OTHER_ORDER: Duration = Duration::from_secs(5);

/// A failure of a single order, with an order in which the kernel ends, if one is found. Without it the findings of the
/// kernel are those up to its wait.
pub(super) fn with_ending_order((shader, args): (&Shader, &RunArgs), failure: Failure) -> Failure {
    if !failure.is_device_lost() || args.check.many_seeds.is_some() {
        return failure;
    }
    let own = args.device.schedule.unwrap_or_default();
    let mut others = [Schedule::Reverse, Schedule::Ascending].into_iter().filter(|other| *other != own);
    let ends = |order: &Schedule| {
        let mut args = args.clone();
        args.device.schedule = Some(*order);
        args.device.time_limit = Some(args.device.time_limit().min(MAX_OTHER_ORDER));
        super::once(shader, &args, output::silent()).is_ok_and(|ran| ran.failure.is_none())
    };
    match others.find(ends) {
        Some(order) => failure.with_order(format_args!(
            "--schedule {order} it ends: in checked mode workgroups run one after another, and the subgroups of each up \
             to the next barrier, and one waits for a later one"
        )),
        None => failure,
    }
}

/// Adds a finding, or counts it if another run had it.
pub(super) fn add(all: &mut Vec<Finding>, finding: Finding) {
    let identity = finding.identity();
    match all.iter_mut().find(|known| known.identity() == identity) {
        Some(known) => known.count = known.count.saturating_add(finding.count),
        None => all.push(finding),
    }
}

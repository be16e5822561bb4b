//! `spelter run --check`: the findings of a run, and runs in other orders (`--many-seeds`).

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value as Json, json};
use spelter::check::report::stats_json;
use spelter::check::{CheckStats, Finding, Severity};
use spelter::{Context, Schedule};
use spelter_jobs::{JobArray, Results, digest, earlier, jobs_left};

use super::bind::BoundResources;
use crate::args::{CheckArgs, RunArgs};
use crate::check::Report;
use crate::device;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::shader::Shader;

/// What checked mode found.
pub(super) struct Checked {
    pub(super) report: Report,
    /// That results depend on the order, in a sentence.
    pub(super) order: Option<String>,
    /// What the file of results has of orders that an earlier process ran.
    pub(super) recorded: Recorded,
}

/// Orders that an earlier process ran.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recorded {
    errors: usize,
    /// Those of which a part was not checked.
    partial: usize,
}

impl Checked {
    /// The exit status: 0, or that of the options if there is an error in this process or in the file of results.
    pub(super) fn status(&self, args: &CheckArgs) -> u8 {
        match self.recorded {
            Recorded { errors: 1.., .. } => args.error_status(),
            Recorded { partial: 1.., .. } if self.report.count(Severity::Error) == 0 => args.status_without_error(true),
            _ => self.report.status(args),
        }
    }

    /// A note about the orders in the file of results.
    pub(super) fn recorded_note(&self, args: &CheckArgs) -> Option<String> {
        let path = args.results.as_ref()?.display();
        match self.recorded {
            Recorded { errors: 0, partial: 0 } => None,
            Recorded { errors: 0, partial } => {
                Some(format!("{path} has orders that ran earlier of which a part was not checked: {partial}"))
            }
            Recorded { errors, .. } => Some(format!("{path} has errors of orders that ran earlier: {errors}")),
        }
    }

    /// Members of the JSON object of a run.
    pub(super) fn json(&self) -> Map<String, Json> {
        let findings = self.report.json();
        [
            ("findings".to_owned(), findings.into()),
            ("suppressed".to_owned(), self.report.suppressed.into()),
            ("not_shown".to_owned(), self.report.not_shown.into()),
            ("depends_on_order".to_owned(), json!(self.order)),
            ("checked".to_owned(), stats_json(&self.report.stats)),
            ("recorded_errors".to_owned(), self.recorded.errors.into()),
            ("recorded_partial".to_owned(), self.recorded.partial.into()),
        ]
        .into_iter()
        .collect()
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
        let checked = Checked { report, order: None, recorded: Recorded::default() };
        let mut object = json!({ "file": args.file.display().to_string(), "notes": [note] });
        if let Some(object) = object.as_object_mut() {
            object.extend(checked.json());
        }
        output.json(&object)?;
    }
    output::note(note);
    Ok(0)
}

/// What was found before a failure, added to what other orders have found; `None` if checked mode is off.
pub(super) fn before_a_failure(
    context: &Context,
    (shader, args): (&Shader, &RunArgs),
    mut all: Vec<Finding>,
) -> Result<Option<Checked>, Failure> {
    if args.check.check.is_none() {
        return Ok(None);
    }
    for finding in context.device().take_findings() {
        add(&mut all, finding);
    }
    Ok(Some(Checked {
        report: Report::new(all, context.check_stats(), (shader, args))?,
        order: None,
        recorded: Recorded::default(),
    }))
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
    let mut all = context.findings().map_err(|error| shader.failed(error))?;
    let (mut recorded, mut stats) = (Recorded::default(), context.check_stats());
    let order = match args.check.many_seeds {
        None => None,
        Some(seeds) => match in_other_orders(shader, &results(context, bound)?, args, seeds, (&mut all, &mut stats)) {
            Ok((differs, earlier)) => {
                recorded = earlier;
                differs
            }
            Err(failure) => {
                *found = before_a_failure(context, (shader, args), all)?;
                return Err(failure);
            }
        },
    };
    Ok(Some(Checked { report: Report::new(all, stats, (shader, args))?, order, recorded }))
}

/// What the file of results has of orders that an earlier process ran. Order 0 runs again in each process.
fn recorded(file: Option<&Results>) -> Result<Recorded, Failure> {
    let of_order = |result: &Json| {
        let findings = result["findings"].as_array()?.iter();
        let errors = findings.filter(|finding| finding["severity"] == Severity::Error.name()).count();
        Some(Recorded { errors, partial: usize::from(result["partial"] == true) })
    };
    let orders = earlier(file, of_order).map_err(|error| Failure::new(error.to_string()))?;
    let others = orders.into_iter().filter(|(order, _)| *order > 0);
    Ok(others.fold(Recorded::default(), |sum, (_, order)| Recorded {
        errors: sum.errors + order.errors,
        partial: sum.partial + order.partial,
    }))
}

/// The orders of a run as a job array; order 0 is the usual one.
fn job_array(shader: &Shader, args: &RunArgs, seeds: u32) -> JobArray {
    let RunArgs { entry, groups, invocations, bind, uniform, images, push, spec, repeat, .. } = args;
    let CheckArgs { check, check_memory, only, suppress, .. } = &args.check;
    let launch = (entry, groups, invocations, bind, uniform, images, push, spec, repeat);
    let options = digest(&format!("{launch:?}{:?}", (check, check_memory, only, suppress)));
    let file = args.file.file_name().unwrap_or_default().to_string_lossy();
    JobArray {
        name: "run --many-seeds".to_owned(),
        settings: json!({
            "file": file, "shader": shader.digest(), "options": options,
            "device": device::settings(&args.device, args.check.options()),
        }),
        jobs: seeds.into(),
    }
}

/// Checks that the file of results can be continued, before a long run.
pub(super) fn check_results(shader: &Shader, args: &RunArgs) -> Result<(), Failure> {
    open(shader, args).map(drop)
}

/// The file of results, if one is wanted.
fn open(shader: &Shader, args: &RunArgs) -> Result<Option<Results>, Failure> {
    let (Some(path), Some(seeds)) = (&args.check.results, args.check.many_seeds) else { return Ok(None) };
    let results = Results::open(path, &job_array(shader, args, seeds), args.check.orders(), args.check.any_build);
    results.map(Some).map_err(|error| Failure::new(error.to_string()))
}

/// Writes what an order found.
fn record(
    to: &mut Option<Results>,
    order: u64,
    findings: Vec<Finding>,
    (differs, partial): (Option<&String>, bool),
    (shader, args): (&Shader, &RunArgs),
) -> Result<(), Failure> {
    let Some(to) = to else { return Ok(()) };
    let report = Report::new(findings, CheckStats::default(), (shader, args))?;
    let status = match report.count(Severity::Error) {
        0 => args.check.status_without_error(partial),
        _ => args.check.error_status(),
    };
    let result = json!({ "findings": report.json(), "depends_on_order": differs, "partial": partial });
    to.record(order, &result, status != 0).map_err(|error| Failure::new(error.to_string()))
}

/// Runs with random orders. Adds their findings and counts, and returns how their results differ from the first run's,
/// if they do, with what the file of results has of orders that ran earlier.
fn in_other_orders(
    shader: &Shader,
    expected: &[Vec<u8>],
    args: &RunArgs,
    seeds: u32,
    (all, stats): (&mut Vec<Finding>, &mut CheckStats),
) -> Result<(Option<String>, Recorded), Failure> {
    let (array, shard) = (job_array(shader, args, seeds), args.check.orders());
    let mut file = open(shader, args)?;
    let recorded = recorded(file.as_ref())?;
    let mut orders = jobs_left(file.as_ref(), &array, shard);
    if orders.first() == Some(&0) {
        orders.remove(0);
        record(&mut file, 0, all.clone(), (None, stats.is_partial()), (shader, args))?;
    }
    if orders.is_empty() {
        return Ok((None, recorded));
    }
    let bar = ProgressBar::new(orders.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} orders").unwrap_or(ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut differs = None;
    for &seed in &orders {
        let mut args = args.clone();
        args.device.schedule = Some(Schedule::Random(seed));
        // Messages of the kernel are those of the first run.
        let ran = super::once(shader, &args, output::silent())?;
        ran.findings.iter().for_each(|finding| add(all, finding.clone()));
        *stats += ran.stats;
        if let Some(failure) = ran.failure {
            bar.finish_and_clear();
            return Err(failure.with_order(format_args!("--schedule random:{seed}")));
        }
        let here = super::difference(&ran.names, expected, &ran.contents)
            .map(|difference| format!("the result depends on the order: {difference} with --schedule random:{seed}"));
        record(&mut file, seed, ran.findings, (here.as_ref(), ran.stats.is_partial()), (shader, &args))?;
        differs = differs.or(here);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((differs, recorded))
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

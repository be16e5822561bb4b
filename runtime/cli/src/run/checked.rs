//! Findings of checked mode in a run and in its runs in other orders: as JSON, as text, and as the exit status.

use std::collections::HashSet;

use serde_json::{Map, Value as Json, json};
use spelter::Context;
use spelter::check::report::{fingerprint, stats_json};
use spelter::check::{CheckStats, Finding, Severity};

use super::bind::BoundResources;
use super::orders::{self, Orders, add};
use crate::args::{CheckArgs, RunArgs};
use crate::check::{Merged, Report};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::shader::Shader;

/// What checked mode found.
pub(super) struct Checked {
    /// What this process found.
    report: Report,
    /// That, and what the file of results has of orders that an earlier process ran.
    all: Merged,
    orders: Orders,
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
            0 if self.denied(args).is_none() => args.status_without_error(self.is_partial()),
            _ => args.error_status(),
        }
    }

    /// Whether something was not checked, or nothing ran: then a run without findings proves nothing.
    fn is_partial(&self) -> bool {
        let stats = &self.report.stats;
        let has_run = stats.dispatches + stats.skipped > 0 || !self.orders.earlier.is_empty();
        !has_run || stats.is_partial() || self.orders.is_partial()
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
        let is_partial = !is_whole || self.is_partial();
        self.report.print_summary(|severity| self.all.count(severity), is_partial);
    }
}

/// The result of a shard that has no order of --many-seeds to run: nothing. The file of results is made, for `spelter
/// merge`.
pub(super) fn without_orders(shader: &Shader, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    orders::check_results(shader, args)?;
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
    let failure = orders::with_ending_order((shader, args), failure);
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
    let contents = if args.check.many_seeds.is_some() { bound.contents(context)? } else { Vec::new() };
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
        Some(seeds) if can_go_on => orders::run((shader, args), first, seeds, (&mut all, &mut stats), &mut orders),
        _ => Ok(()),
    };
    let failure = ended.err().or_else(|| orders.failure());
    Ok((Checked::new(Report::new(all, stats, (shader, args))?, orders), failure))
}

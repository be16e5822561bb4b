//! Reports on scripts and shaders: a line for each and a summary, or one JSON object.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value as Json, json};
use spelter::Schedule;
use spelter::check::report::{self, Filter, ShownGroups};
use spelter::check::{Finding, Severity};
use vulkan_spelter::options::EXIT_STATUS;

use crate::args::TestArgs;
use crate::failure::Failure;
use crate::output::{self, Output};

/// What a message about results of a shader in several orders begins with.
pub(super) const BY_ORDER: &str = "the result depends on the order: ";

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All expectations hold. With a reason why that says little, if there is one.
    Pass(Option<String>),
    /// An expectation does not hold, the script is wrong, or checked mode has an error; `by_check`: only the last, of
    /// which results that depend on the order are one.
    Fail { message: String, by_check: bool },
    /// The script needs something that is missing.
    Skip(String),
}

impl Verdict {
    /// Its name in JSON, and the reason.
    fn parts(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Pass(note) => ("pass", note.as_deref()),
            Self::Fail { message, .. } => ("fail", Some(message)),
            Self::Skip(reason) => ("skipped", Some(reason)),
        }
    }

    fn of_parts(name: &str, reason: Option<&str>, by_check: bool) -> Option<Self> {
        let reason = reason.map(str::to_owned);
        match name {
            "pass" => Some(Self::Pass(reason)),
            "fail" => Some(Self::Fail { message: reason.unwrap_or_default(), by_check }),
            "skipped" => Some(Self::Skip(reason.unwrap_or_default())),
            _ => None,
        }
    }
}

/// The verdict on a job with what checked mode found: one that passed otherwise fails if there is an error.
pub(super) fn with_check(verdict: Verdict, checked: Option<&CheckedJob>) -> Verdict {
    let errors = checked.iter().flat_map(|checked| &checked.texts).filter(|found| found.severity == Severity::Error);
    let (mut count, mut rules) = (0, BTreeSet::new());
    errors.for_each(|finding| {
        count += 1;
        rules.insert(finding.rule.name());
    });
    let of_check = || {
        let rules = rules.iter().copied().collect::<Vec<_>>().join(", ");
        format!("{count} {} of checked mode: {rules}", if count == 1 { "error" } else { "errors" })
    };
    match verdict {
        Verdict::Pass(_) if count > 0 => Verdict::Fail { message: of_check(), by_check: true },
        Verdict::Fail { message, by_check: true } if count > 0 => {
            Verdict::Fail { message: format!("{message}\n{}", of_check()), by_check: true }
        }
        verdict => verdict,
    }
}

/// What checked mode found in a job.
#[derive(Debug, Default)]
pub(super) struct CheckedJob {
    /// The objects of the findings, in an order that does not depend on how they were found.
    findings: Vec<Json>,
    /// Findings that a suppression matches, and those of other rules than `--only` names.
    suppressed: u64,
    not_shown: u64,
    partial: bool,
    /// The findings, unless they are those of an earlier run.
    texts: Vec<Finding>,
}

impl CheckedJob {
    pub(super) fn new(mut texts: Vec<Finding>, filter: &Filter, partial: bool) -> Self {
        let before = texts.len();
        texts.retain(|finding| filter.wants(finding));
        let wanted = texts.len();
        texts.retain(|finding| !filter.suppresses(finding));
        texts.sort_by_key(report::fingerprint);
        Self {
            findings: texts.iter().map(report::json).collect(),
            suppressed: (wanted - texts.len()) as u64,
            not_shown: (before - wanted) as u64,
            partial,
            texts,
        }
    }
}

/// A job and its result.
#[derive(Debug)]
pub(super) struct JobReport {
    pub(super) name: String,
    /// The order of --many-seeds.
    pub(super) order: Option<u64>,
    pub(super) verdict: Verdict,
    pub(super) checked: Option<CheckedJob>,
    /// Whether a kernel ran. Of results of an earlier run that is not known.
    pub(super) has_run: bool,
    /// Whether nothing ran before the verdict, as after an error of the compiler: it is that of each order.
    pub(super) is_of_all_orders: bool,
    /// Whether a file of results has it.
    pub(super) is_earlier: bool,
    pub(super) time: Duration,
}

/// What was printed of files: it is not printed again for each of their orders.
#[derive(Debug, Default)]
pub(super) struct AlreadyPrinted {
    /// By name, fingerprints of findings.
    findings: BTreeSet<(String, String)>,
    /// By name, the reasons of verdicts of all orders.
    verdicts: BTreeSet<(String, String)>,
}

impl JobReport {
    pub(super) fn new(name: String, order: Option<u64>, verdict: Verdict, checked: Option<CheckedJob>) -> Self {
        let (has_run, is_of_all_orders, is_earlier) = (true, false, false);
        Self { name, order, verdict, checked, has_run, is_of_all_orders, is_earlier, time: Duration::ZERO }
    }

    /// Whether checked mode is on and a part was not checked.
    pub(super) fn is_partial(&self) -> bool {
        self.checked.as_ref().is_some_and(|checked| checked.partial)
    }

    /// Whether it failed by errors of checked mode only, of which results that depend on the order are one.
    fn failed_by_check(&self) -> bool {
        matches!(self.verdict, Verdict::Fail { by_check: true, .. })
    }

    /// What a file of results keeps: what is the same on every machine.
    pub(super) fn result(&self) -> Json {
        let (verdict, reason) = self.verdict.parts();
        let mut result = json!({ "script": self.name, "verdict": verdict, "reason": reason });
        if let Some(order) = self.order {
            // A text, since numbers are added up.
            result["schedule"] = super::schedule(order).to_string().into();
        }
        if let Some(checked) = &self.checked {
            result["findings"] = checked.findings.clone().into();
            result["suppressed"] = checked.suppressed.into();
            result["not_shown"] = checked.not_shown.into();
            result["partial"] = checked.partial.into();
            result["by_check"] = self.failed_by_check().into();
        }
        result
    }

    /// The report of [`Self::result`].
    pub(super) fn of_result(result: &Json) -> Option<Self> {
        let (verdict, by_check) = (result["verdict"].as_str()?, result["by_check"] == true);
        let verdict = Verdict::of_parts(verdict, result["reason"].as_str(), by_check)?;
        let checked = result["findings"].as_array().map(|findings| CheckedJob {
            findings: findings.clone(),
            suppressed: result["suppressed"].as_u64().unwrap_or(0),
            not_shown: result["not_shown"].as_u64().unwrap_or(0),
            partial: result["partial"] == true,
            texts: Vec::new(),
        });
        let name = result["script"].as_str()?.to_owned();
        let order = match result["schedule"].as_str().map(str::parse) {
            None => None,
            Some(Ok(Schedule::Random(order))) => Some(order),
            Some(_) => Some(0),
        };
        Some(Self { is_earlier: true, ..Self::new(name, order, verdict, checked) })
    }

    /// Prints a line, and the findings that no other job of the case had; with `quiet` only for jobs that did not pass.
    pub(super) fn print(&self, quiet: bool, shown: &mut AlreadyPrinted, output: &mut Output) -> Result<(), Failure> {
        if let (true, (_, Some(reason))) = (self.is_of_all_orders, self.verdict.parts())
            && !shown.verdicts.insert((self.name.clone(), reason.to_owned()))
        {
            return Ok(());
        }
        let name = match self.order {
            Some(order @ 1..) if !self.is_of_all_orders => format!("{}, order {order}", self.name),
            _ => self.name.clone(),
        };
        match &self.verdict {
            Verdict::Pass(None) if quiet => Ok(()),
            Verdict::Pass(None) => output.line(format!("{}  {name}", output.good("pass"))),
            Verdict::Pass(Some(note)) => output.line(format!("{}  {name}: {note}", output.good("pass"))),
            Verdict::Fail { message, .. } => output.line(failed(&name, message, output)),
            Verdict::Skip(reason) => output.line(format!("{}  {name}: {reason}", output.faint("skip"))),
        }?;
        let findings = self.checked.iter().flat_map(|checked| &checked.texts);
        let mut groups = ShownGroups::default();
        for finding in findings.filter(|finding| finding.severity == Severity::Error) {
            let is_new = shown.findings.insert((self.name.clone(), report::fingerprint(finding)));
            if is_new && groups.shows(finding) {
                output.line(report::text(finding, &[], false).trim_end())?;
            }
        }
        Ok(())
    }

    fn json(&self) -> Json {
        let mut object = self.result();
        object["seconds"] = self.time.as_secs_f64().into();
        object["earlier"] = self.is_earlier.into();
        object
    }
}

/// The lines of a failure.
fn failed(name: &str, message: &str, output: &Output) -> String {
    format!("{}  {name}\n      {}", output.strong("FAIL"), message.replace('\n', "\n      "))
}

/// Prints the failures of an earlier run: each once, with all its orders. Of a finding there is a line, since a file of
/// results has no source.
pub(super) fn print_earlier<'a>(
    reports: impl Iterator<Item = &'a JobReport>,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut groups: Vec<(&str, &str, Vec<&JobReport>)> = Vec::new();
    for report in reports {
        let Verdict::Fail { message, .. } = &report.verdict else { continue };
        // The orders of a file follow each other.
        let mut of_file = groups.iter_mut().rev().take_while(|(name, ..)| *name == report.name);
        match of_file.find(|(_, known, _)| known == message) {
            Some((.., same)) => same.push(report),
            None => groups.push((&report.name, message, vec![report])),
        }
    }
    for (name, message, reports) in groups {
        let orders: Vec<_> = reports.iter().filter_map(|report| report.order).map(|order| order.to_string()).collect();
        let orders = match orders.len() {
            0 => String::new(),
            1 => format!(", order {}", orders[0]),
            _ => format!(", orders {}", orders.join(", ")),
        };
        output.line(failed(&format!("{name}, of an earlier run{orders}"), message, output))?;
        let findings = reports.iter().filter_map(|report| report.checked.as_ref()).flat_map(|all| &all.findings);
        let mut shown = BTreeSet::new();
        for finding in findings.filter(|finding| finding["severity"] == Severity::Error.name()) {
            let text = |name: &str| finding[name].as_str().unwrap_or_default();
            if shown.insert(text("fingerprint")) {
                output.line(format!("      error[{}]: {}", text("id"), text("title")))?;
            }
        }
    }
    Ok(())
}

/// Prints the summary. An error if a job failed otherwise than by checked mode; else returns the exit status.
pub(super) fn summary(reports: &[JobReport], args: &TestArgs, output: &mut Output) -> Result<u8, Failure> {
    let count = |is: fn(&Verdict) -> bool| reports.iter().filter(|report| is(&report.verdict)).count();
    let passed = count(|verdict| matches!(verdict, Verdict::Pass(_)));
    let failed = count(|verdict| matches!(verdict, Verdict::Fail { .. }));
    let skipped = count(|verdict| matches!(verdict, Verdict::Skip(_)));
    let partial = reports.iter().filter(|report| report.is_partial()).count();
    if args.json {
        output.json(&json!({
            "scripts": reports.iter().map(JobReport::json).collect::<Vec<_>>(),
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
        }))?;
    } else {
        output.line(format!("{passed} passed, {failed} failed, {skipped} skipped"))?;
    }
    output.flush()?;
    if args.check.check.is_some() {
        output::note(format_args!("checked: {}", found(reports)));
    }
    let what = if args.check.check.is_some() || args.check.many_seeds > 1 { "runs" } else { "scripts" };
    let failure = || Failure::new(format!("{failed} of {} {what} failed", reports.len()));
    match failed {
        0 => {}
        _ if reports.iter().filter(|report| report.failed_by_check()).count() == failed => {
            output::report(&failure());
            return Ok(EXIT_STATUS);
        }
        _ => return Err(failure()),
    }
    if partial > 0 {
        output::note(format_args!(
            "of {partial} of {} runs a part was not checked, or stayed undecided",
            reports.len()
        ));
    }
    Ok(args.check.status_without_error(partial > 0))
}

/// The numbers of different findings, by their severities.
fn found(reports: &[JobReport]) -> String {
    let mut all = BTreeSet::new();
    for report in reports {
        for finding in report.checked.iter().flat_map(|checked| &checked.findings) {
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            all.insert((report.name.clone(), text("fingerprint"), text("severity")));
        }
    }
    let count = |severity: Severity| all.iter().filter(|(.., other)| other == severity.name()).count();
    let sum =
        |of: fn(&CheckedJob) -> u64| reports.iter().filter_map(|report| report.checked.as_ref()).map(of).sum::<u64>();
    let [suppressed, not_shown] = [sum(|checked| checked.suppressed), sum(|checked| checked.not_shown)];
    if !reports.iter().any(|report| report.has_run) {
        return "no kernel ran".to_owned();
    }
    report::summary(count, suppressed as usize, not_shown as usize, reports.iter().any(JobReport::is_partial))
}

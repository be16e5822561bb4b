//! Reports on scripts: a line for each and a summary, or one JSON object.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::output::Output;

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All expectations hold. With a reason why that says little, if there is one.
    Pass(Option<String>),
    /// An expectation does not hold, or the script is wrong.
    Fail(String),
    /// The script needs something that is missing.
    Skip(String),
}

impl Verdict {
    /// Its name in JSON, and the reason.
    fn parts(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Pass(note) => ("pass", note.as_deref()),
            Self::Fail(message) => ("fail", Some(message)),
            Self::Skip(reason) => ("skipped", Some(reason)),
        }
    }

    fn of_parts(name: &str, reason: Option<&str>) -> Option<Self> {
        let reason = reason.map(str::to_owned);
        match name {
            "pass" => Some(Self::Pass(reason)),
            "fail" => Some(Self::Fail(reason.unwrap_or_default())),
            "skipped" => Some(Self::Skip(reason.unwrap_or_default())),
            _ => None,
        }
    }
}

/// A script and its result.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) path: PathBuf,
    pub(super) verdict: Verdict,
    pub(super) time: Duration,
}

impl Report {
    /// What a file of results keeps: what is the same on every machine.
    pub(super) fn result(&self) -> Json {
        let (verdict, reason) = self.verdict.parts();
        json!({ "script": self.path.display().to_string(), "verdict": verdict, "reason": reason })
    }

    /// The report of [`Self::result`].
    pub(super) fn of_result(result: &Json) -> Option<Self> {
        let verdict = Verdict::of_parts(result["verdict"].as_str()?, result["reason"].as_str())?;
        Some(Self { path: result["script"].as_str()?.into(), verdict, time: Duration::ZERO })
    }

    /// Prints a line; with `quiet` only for scripts that did not pass.
    pub(super) fn print(&self, quiet: bool, output: &mut Output) -> Result<(), Failure> {
        let path = self.path.display();
        match &self.verdict {
            Verdict::Pass(None) if quiet => Ok(()),
            Verdict::Pass(None) => output.line(format!("{}  {path}", output.good("pass"))),
            Verdict::Pass(Some(note)) => output.line(format!("{}  {path}: {note}", output.good("pass"))),
            Verdict::Fail(message) => {
                output.line(format!("{}  {path}\n      {}", output.strong("FAIL"), message.replace('\n', "\n      ")))
            }
            Verdict::Skip(reason) => output.line(format!("{}  {path}: {reason}", output.faint("skip"))),
        }
    }

    fn json(&self) -> Json {
        let (verdict, reason) = self.verdict.parts();
        json!({
            "script": self.path.display().to_string(),
            "verdict": verdict,
            "reason": reason,
            "seconds": self.time.as_secs_f64(),
        })
    }
}

/// Prints the summary. An error if a script failed.
pub(super) fn summary(reports: &[Report], json: bool, output: &mut Output) -> Result<(), Failure> {
    let count = |is: fn(&Verdict) -> bool| reports.iter().filter(|report| is(&report.verdict)).count();
    let passed = count(|verdict| matches!(verdict, Verdict::Pass(_)));
    let failed = count(|verdict| matches!(verdict, Verdict::Fail(_)));
    let skipped = count(|verdict| matches!(verdict, Verdict::Skip(_)));
    if json {
        output.json(&json!({
            "scripts": reports.iter().map(Report::json).collect::<Vec<_>>(),
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
        }))?;
    } else {
        output.line(format!("{passed} passed, {failed} failed, {skipped} skipped"))?;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::new(format!("{failed} of {} scripts failed", reports.len()))) }
}

//! Reports on scripts: a line for each and a summary, or one JSON object.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::output::Output;

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All expectations hold.
    Pass,
    /// An expectation does not hold, or the script is wrong.
    Fail(String),
    /// The script needs something that is missing.
    Skip(String),
}

/// A script and its result.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) path: PathBuf,
    pub(super) verdict: Verdict,
    pub(super) time: Duration,
}

impl Report {
    /// Prints a line; with `quiet` only for scripts that did not pass.
    pub(super) fn print(&self, quiet: bool, output: &mut Output) -> Result<(), Failure> {
        let path = self.path.display();
        match &self.verdict {
            Verdict::Pass if quiet => Ok(()),
            Verdict::Pass => output.line(format!("{}  {path}", output.good("pass"))),
            Verdict::Fail(message) => {
                output.line(format!("{}  {path}\n      {}", output.strong("FAIL"), message.replace('\n', "\n      ")))
            }
            Verdict::Skip(reason) => output.line(format!("{}  {path}: {reason}", output.faint("skip"))),
        }
    }

    fn json(&self) -> Json {
        let (verdict, reason) = match &self.verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Fail(message) => ("fail", Some(message)),
            Verdict::Skip(reason) => ("skipped", Some(reason)),
        };
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
    let passed = count(|verdict| matches!(verdict, Verdict::Pass));
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

//! Checked mode on the command line: reports of `spelter run --check`, files of findings, and `spelter check`.

pub(crate) mod command;
mod dot;
mod files;
mod folder;
mod merge;
mod orders;
mod places;
mod sarif;

use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::Value as Json;
use spelter::check::report::{self, Filter, ShownGroups};
use spelter::check::{CheckStats, Finding, Severity};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output;
use crate::shader::Shader;
pub(crate) use files::{check_targets, write_files};
pub(crate) use merge::Merged;
pub(crate) use places::in_file;

/// The findings of a run, without those that are suppressed.
#[derive(Debug)]
pub(crate) struct Report {
    /// The worst first.
    pub(crate) findings: Vec<Finding>,
    /// The number of suppressed findings.
    pub(crate) suppressed: usize,
    /// The number of findings of other rules than those of --only.
    pub(crate) not_shown: usize,
    /// What was checked, and what was not.
    pub(crate) stats: CheckStats,
}

impl Report {
    /// Sorts findings and leaves out those that the options do not ask for or suppress.
    pub(crate) fn new(
        mut all: Vec<Finding>,
        stats: CheckStats,
        (shader, args): (&Shader, &RunArgs),
    ) -> Result<Self, Failure> {
        let (repeat, args) = (args.repeat, &args.check);
        for finding in &mut all {
            in_file(finding, shader);
            // The place of the only dispatch tells nothing.
            if repeat == 1 {
                finding.dispatch = None;
            }
        }
        let filter = with_files(args.reported.filter(), &args.reported.suppressions)?;
        let observed = all.len();
        all.retain(|finding| filter.wants(finding));
        let count = all.len();
        let mut findings: Vec<_> = all.into_iter().filter(|finding| !filter.suppresses(finding)).collect();
        // Races first: they may be why a barrier is in divergent control flow.
        findings.sort_by_key(|finding| (Reverse(finding.severity), finding.rule));
        Ok(Self { suppressed: count - findings.len(), not_shown: observed - count, findings, stats })
    }

    /// Number of findings of this severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The objects of the findings.
    pub(crate) fn json(&self) -> Vec<Json> {
        self.findings.iter().map(report::json).collect()
    }

    /// Writes the findings to standard error, with quoted source.
    pub(crate) fn print_findings(&self) {
        let mut groups = ShownGroups::default();
        for finding in self.findings.iter().filter(|finding| groups.shows(finding)) {
            let text = report::text(finding, &[], output::is_stderr_colored());
            // A closed standard error is ignored, as for all messages.
            let _ = io::stderr().lock().write_all(text.as_bytes());
        }
    }

    /// Writes what was not checked, and a summary of findings with these counts.
    pub(crate) fn print_summary(&self, count: impl Fn(Severity) -> usize, is_partial: bool) {
        note_gaps(&self.stats);
        let summary = report::summary(count, self.suppressed, self.not_shown, is_partial);
        output::note(format_args!("checked: {summary}"));
    }
}

/// A filter with the suppressions of files.
pub(crate) fn with_files(mut filter: Filter, files: &[PathBuf]) -> Result<Filter, Failure> {
    for path in files {
        filter.add_file(path).map_err(|problem| Failure::file(path, problem))?;
    }
    Ok(filter)
}

/// Notes what was not checked or not kept.
fn note_gaps(stats: &CheckStats) {
    report::gaps(stats, "--check-memory").iter().for_each(output::note);
}

//! Reports of checked mode: quoted source as rustc quotes it, or JSON lines; suppressions and the exit status.

mod json;
mod suppress;
mod text;

use std::cmp::Reverse;
use std::path::Path;

use spelter::check::{CheckStats, Finding, Severity};

use crate::args::CheckArgs;
use crate::failure::Failure;
pub(crate) use json::{json, stats};
pub(crate) use suppress::Suppression;
use suppress::Suppressions;

/// The exit status if there are errors, by default.
pub(crate) const EXIT_STATUS: u8 = 66;

/// The findings of a run, without those that are suppressed.
#[derive(Debug)]
pub(crate) struct Report {
    /// The worst first.
    pub(crate) findings: Vec<Finding>,
    /// The number of suppressed findings.
    pub(crate) suppressed: usize,
    /// What was checked, and what was not.
    pub(crate) stats: CheckStats,
}

impl Report {
    /// Sorts findings and leaves out those that the options suppress.
    pub(crate) fn new(all: Vec<Finding>, stats: CheckStats, args: &CheckArgs) -> Result<Self, Failure> {
        let suppressions = Suppressions::new(&args.suppress, &args.suppressions)?;
        let count = all.len();
        let mut findings: Vec<_> = all.into_iter().filter(|finding| !suppressions.has(finding)).collect();
        // Races first: they may be why a barrier is in divergent control flow.
        findings.sort_by_key(|finding| (Reverse(finding.severity), finding.rule));
        Ok(Self { suppressed: count - findings.len(), findings, stats })
    }

    /// Number of findings of this severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The exit status: 0, or that of the options if there is an error.
    pub(crate) fn status(&self, args: &CheckArgs) -> u8 {
        if self.count(Severity::Error) > 0 { args.error_exitcode } else { 0 }
    }

    /// Writes the findings to standard error, with quoted source, and a summary. `file` is the shader's path: the reader
    /// calls a WGSL text `wgsl`.
    pub(crate) fn print(&self, file: &Path) {
        self.findings.iter().for_each(|finding| text::print(finding, file));
        text::summary(self);
    }
}

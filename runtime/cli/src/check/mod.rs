//! Reports of checked mode: quoted source as rustc quotes it, or JSON lines; suppressions and the exit status.

mod json;
mod suppress;
mod text;

use std::cmp::Reverse;

use spelter::check::{CheckStats, Finding, Severity};
use spelter_shaders::ir::SourceLine;

use crate::args::{CheckArgs, RunArgs};
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
    pub(crate) fn new(mut all: Vec<Finding>, stats: CheckStats, args: &RunArgs) -> Result<Self, Failure> {
        let (file, args) = (args.file.display().to_string(), &args.check);
        all.iter_mut().for_each(|finding| name_file(finding, &file));
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

    /// Writes the findings to standard error, with quoted source, and a summary.
    pub(crate) fn print(&self) {
        self.findings.iter().for_each(text::print);
        text::summary(self);
    }
}

/// The reader's name of a WGSL text.
const WGSL: &str = "wgsl";

/// Gives lines of a WGSL text the path of the shader.
fn name_file(finding: &mut Finding, file: &str) {
    let named = |line: &mut SourceLine| {
        if &*line.file == WGSL {
            line.file = file.into();
        }
    };
    let accesses = finding.first.iter_mut().chain([&mut finding.second]);
    accesses.flat_map(|access| access.line.iter_mut().chain(&mut access.inlined_at)).for_each(named);
    finding.repairs.iter_mut().filter_map(|repair| repair.line.as_mut()).for_each(named);
    let texts = finding.repairs.iter_mut().map(|repair| &mut repair.text).chain(&mut finding.reasons);
    texts.for_each(|text| *text = text.replace(&format!(" at {WGSL}:"), &format!(" at {file}:")));
}

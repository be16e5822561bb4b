//! A finding as text: both lines quoted with labels, then reasons, repairs and how to see it again.

use std::sync::Arc;

use codespan_reporting::diagnostic::{self, Diagnostic, Label};
use codespan_reporting::files::{Files, SimpleFiles};
use codespan_reporting::term::termcolor::{ColorChoice, StandardStream};
use codespan_reporting::term::{self, Config};
use spelter::Schedule;
use spelter::check::{Finding, FoundAccess, Severity};

use super::Report;
use crate::output;

/// Prints a finding to standard error. A closed standard error is ignored, as for all messages.
pub(super) fn print(finding: &Finding) {
    let choice = if output::is_stderr_colored() { ColorChoice::Always } else { ColorChoice::Never };
    let mut files = Sources { files: SimpleFiles::new(), known: Vec::new() };
    let diagnostic = files.diagnostic(finding);
    let stream = StandardStream::stderr(choice);
    let mut stream = stream.lock();
    let _ = term::emit_to_write_style(&mut stream, &Config::default(), &files.files, &diagnostic);
}

/// Prints how many findings there are.
pub(super) fn summary(report: &Report) {
    let counted = |severity, one: &str| match report.count(severity) {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {one}s")),
    };
    let kinds = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let mut parts: Vec<_> = kinds.into_iter().filter_map(|(severity, name)| counted(severity, name)).collect();
    if parts.is_empty() {
        parts.push("no data race was observed".to_owned());
    }
    if report.suppressed > 0 {
        parts.push(format!("{} suppressed", report.suppressed));
    }
    let stats = &report.stats;
    if stats.accesses_not_checked > 0 {
        let problem = "accesses were not checked, since the shadow of the memory exceeds --check-memory";
        output::note(format_args!("{} {problem}", stats.accesses_not_checked));
    }
    if stats.commands_forgotten > 0 {
        output::note(format_args!(
            "{} accesses of commands were forgotten before the host waited for them, and later commands were not \
             compared with them",
            stats.commands_forgotten
        ));
    }
    if stats.findings_dropped > 0 {
        output::note(format_args!("{} more findings were not kept", stats.findings_dropped));
    }
    output::note(format_args!("checked: {}", parts.join(", ")));
}

/// The source texts of a finding.
struct Sources {
    files: SimpleFiles<String, Arc<str>>,
    known: Vec<(String, Option<usize>)>,
}

impl Sources {
    fn diagnostic(&mut self, finding: &Finding) -> Diagnostic<usize> {
        let severity = match finding.severity {
            Severity::Error => diagnostic::Severity::Error,
            Severity::Warning => diagnostic::Severity::Warning,
            Severity::Note => diagnostic::Severity::Note,
        };
        let mut diagnostic = Diagnostic::new(severity).with_code(finding.rule.name()).with_message(finding.title());
        diagnostic = self.labelled(diagnostic, &finding.second, true);
        if let Some(first) = &finding.first {
            diagnostic = self.labelled(diagnostic, first, false);
        }
        let reasons = finding.reasons.iter().map(|reason| format!("because {reason}"));
        let repairs = finding.repairs.iter().map(|repair| format!("repair: {}", repair.text));
        let seen = (finding.count > 1).then(|| format!("observed {} times", finding.count));
        let again = (finding.schedule != Schedule::Ascending)
            .then(|| format!("to see it again: --schedule {}", finding.schedule));
        diagnostic.with_notes(reasons.chain(repairs).chain(seen).chain(again).collect())
    }

    /// Adds the label of an access; a note, if its source is not known.
    fn labelled(
        &mut self,
        mut diagnostic: Diagnostic<usize>,
        access: &FoundAccess,
        primary: bool,
    ) -> Diagnostic<usize> {
        let label = match access.agent() {
            Some(agent) => format!("{} by {agent}", access.action),
            None => access.action.clone(),
        };
        let range = access.line.as_ref().and_then(|line| {
            let file = self.file(&line.file, access.source.as_ref())?;
            let row = self.files.line_range(file, (line.line as usize).checked_sub(1)?).ok()?;
            let text = self.files.source(file).ok()?.get(row.clone())?;
            let indent = text.len() - text.trim_start().len();
            let column = text.char_indices().nth((line.column as usize).saturating_sub(1)).map_or(0, |(at, _)| at);
            let start = column.max(indent);
            let rest = text.get(start..)?;
            // Only the start is known: up to the end of the statement, or of the code on the line.
            let ends = [rest.find(';'), rest.find('{'), rest.find("//")];
            let len = rest[..ends.into_iter().flatten().min().unwrap_or(rest.len())].trim_end().len();
            (len > 0).then_some((file, row.start + start..row.start + start + len))
        });
        match range {
            Some((file, range)) => {
                let label = if primary {
                    Label::primary(file, range).with_message(label)
                } else {
                    Label::secondary(file, range).with_message(label)
                };
                diagnostic.labels.push(label);
            }
            None => diagnostic.notes.push(match access.position() {
                Some(position) => format!("{label}: {position}"),
                None => label,
            }),
        }
        for call in access.inlined_at.iter().rev() {
            let position = access.position().unwrap_or_default();
            diagnostic.notes.push(format!("{position} was inlined from a call at {call}"));
        }
        diagnostic
    }

    /// The text of a file: from the module, or else read from the file system.
    fn file(&mut self, name: &str, text: Option<&Arc<str>>) -> Option<usize> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| known == name) {
            return *known;
        }
        let read = || std::fs::read_to_string(name).ok().map(Arc::from);
        let file = text.cloned().or_else(read).map(|text| self.files.add(name.to_owned(), text));
        self.known.push((name.to_owned(), file));
        file
    }
}

//! A finding as text: both lines quoted with labels, then reasons, repairs and how to see it again.

use std::sync::Arc;

use codespan_reporting::diagnostic::{self, Diagnostic, Label};
use codespan_reporting::files::{Files, SimpleFiles};
use codespan_reporting::term::termcolor::Buffer;
use codespan_reporting::term::{self, Config};
use spelter_shaders::schedule::Schedule;

use super::super::{CheckStats, Finding, FindingGroup, FoundAccess, Severity};

/// The report of a finding, with more `notes` at its end, and with escape sequences of terminals if it is `colored`. It
/// ends with an empty line.
pub fn text(finding: &Finding, notes: &[String], colored: bool) -> String {
    let mut files = Sources { files: SimpleFiles::new(), known: Vec::new() };
    let mut diagnostic = files.diagnostic(finding);
    diagnostic.notes.extend_from_slice(notes);
    let mut to = if colored { Buffer::ansi() } else { Buffer::no_color() };
    match term::emit_to_write_style(&mut to, &Config::default(), &files.files, &diagnostic) {
        Ok(()) => String::from_utf8_lossy(to.as_slice()).into_owned(),
        // The quoted lines are not as expected.
        Err(_) => format!("{finding}\n"),
    }
}

/// The groups of findings that were shown: of each the first finding stands for the others.
#[derive(Debug, Default)]
pub struct ShownGroups(Vec<Arc<FindingGroup>>);

impl ShownGroups {
    /// Whether a finding is to be shown: it is in no group, or the first one of its group.
    pub fn shows(&mut self, finding: &Finding) -> bool {
        match &finding.group {
            Some(group) if self.0.contains(group) => false,
            Some(group) => {
                self.0.push(Arc::clone(group));
                true
            }
            None => true,
        }
    }
}

/// How many findings of each severity there are, how many were suppressed, and how many are of rules that are not asked
/// for: `2 errors, 1 note, 3 suppressed, 4 findings not shown (--only)`. `is_partial` if not all accesses were checked.
pub fn summary(count: impl Fn(Severity) -> usize, suppressed: usize, not_shown: usize, is_partial: bool) -> String {
    let counted = |severity, one: &str| match count(severity) {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {one}s")),
    };
    let kinds = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let mut parts: Vec<_> = kinds.into_iter().filter_map(|(severity, name)| counted(severity, name)).collect();
    if parts.is_empty() {
        let other = if suppressed > 0 { "other " } else { "" };
        parts.push(match (not_shown, is_partial) {
            (1.., _) => "none of the rules of --only was broken".to_owned(),
            (_, true) => format!("no {other}data race was observed in what was checked"),
            _ => format!("no {other}data race was observed"),
        });
    }
    if suppressed > 0 {
        parts.push(format!("{suppressed} suppressed"));
    }
    match not_shown {
        0 => {}
        1 => parts.push("1 finding not shown (--only)".to_owned()),
        count => parts.push(format!("{count} findings not shown (--only)")),
    }
    parts.join(", ")
}

/// What was not checked or not kept, a sentence for each reason. `memory` is the option that bounds the shadow.
pub fn gaps(stats: &CheckStats, memory: &str) -> Vec<String> {
    let CheckStats { undecided, lines_not_compared, notes_not_searched, .. } = *stats;
    let CheckStats { accesses_not_checked, commands_forgotten, signals_forgotten, .. } = *stats;
    let CheckStats { findings_dropped, epochs_used_up, records_forgotten, refuted_in_part, .. } = *stats;
    let of = |count: u64, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {several}")),
    };
    let shadow = format!("not checked, since the shadow of the memory exceeds {memory}");
    let until = "before the host waited for";
    let compared = "so that no later command was compared with";
    let later = "of a semaphore or a queue that more than 4096 later ones had followed";
    let beside = "beside a race there: repair what is reported, and check again";
    let less = "so that more is suspected";
    let less_of_them = "more of those before is suspected";
    let all = [
        of(accesses_not_checked, &format!("access was {shadow}"), &format!("accesses were {shadow}")),
        of(
            commands_forgotten,
            &format!("access was forgotten {until} it, {compared} it"),
            &format!("accesses were forgotten {until} them, {compared} them"),
        ),
        of(
            signals_forgotten,
            &format!("wait was for a signal {later}: it counted as a wait for a later one"),
            &format!("waits were for signals {later}: each counted as a wait for a later one"),
        ),
        of(findings_dropped, "more finding was not kept", "more findings were not kept"),
        of(undecided, "suspicion was given up: it is a warning", "suspicions were given up: each is a warning"),
        of(
            lines_not_compared,
            &format!("pair of lines was not compared at each word that the two access, {beside}"),
            &format!("pairs of lines were not compared at each word that they access, {beside}"),
        ),
        of(
            epochs_used_up,
            &format!(
                "restart of the detector's epochs, whose numbers were used up: of accesses before it less is known, \
                 {less}"
            ),
            &format!(
                "restarts of the detector's epochs, whose numbers were used up: of accesses before one it knows less, \
                 {less}"
            ),
        ),
        of(
            records_forgotten,
            &format!("time the detector forgot what orders accesses, for which it had no memory: {less_of_them}"),
            &format!("times the detector forgot what orders accesses, for which it had no memory: {less_of_them}"),
        ),
        of(
            refuted_in_part,
            "suspicion was refuted wherever it was compared, and not compared at each word",
            "suspicions were refuted wherever they were compared, and not compared at each word",
        ),
        of(
            notes_not_searched,
            "dispatch was not searched for notes to its end: that would take too long",
            "dispatches were not searched for notes to their end: that would take too long",
        ),
    ];
    all.into_iter().flatten().collect()
}

/// The end of the operand with which a text begins: a name with its members, elements and arguments. `None` if it
/// begins with something else, such as an assignment.
fn operand(text: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let mut end = word(text);
    if end == 0 || text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    loop {
        let rest = &text[end..];
        end += match rest.chars().next() {
            Some('.') => 1 + word(&rest[1..]),
            Some('[' | '(') => closed(rest)?,
            _ => break,
        };
    }
    let rest = text[end..].trim_start();
    let is_assigned = rest.starts_with('=') && !rest.starts_with("==");
    let is_updated = ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"];
    let goes_on = is_assigned || rest.starts_with(is_word) || is_updated.iter().any(|update| rest.starts_with(update));
    (!goes_on).then_some(end)
}

/// The end of the bracket with which a text begins, if it is closed.
fn closed(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from("[(".contains(c)) - i32::from("])".contains(c));
        (depth == 0).then_some(at + c.len_utf8())
    })
}

/// A file that a finding names.
struct SourceFile {
    name: String,
    /// The text that the module has of it.
    text: Option<Arc<str>>,
    /// Its number among the files to quote from, if there is a text.
    number: Option<usize>,
}

/// The source texts of a finding.
struct Sources {
    files: SimpleFiles<String, Arc<str>>,
    known: Vec<SourceFile>,
}

impl Sources {
    fn diagnostic(&mut self, finding: &Finding) -> Diagnostic<usize> {
        let severity = match finding.severity {
            Severity::Error => diagnostic::Severity::Error,
            Severity::Warning => diagnostic::Severity::Warning,
            Severity::Note => diagnostic::Severity::Note,
        };
        let title = finding.group.as_ref().map_or_else(|| finding.title(), |group| group.title.clone());
        let mut diagnostic = Diagnostic::new(severity).with_code(finding.rule.name()).with_message(title);
        diagnostic = self.labelled(diagnostic, &finding.second, finding.first.as_ref(), true);
        if let Some(first) = &finding.first {
            // Accesses that cannot be quoted come in the order in which they happened.
            let notes = std::mem::take(&mut diagnostic.notes);
            diagnostic = self.labelled(diagnostic, first, Some(&finding.second), false);
            diagnostic.notes.extend(notes);
        }
        let (reasons, repairs) = match &finding.group {
            Some(group) => (std::slice::from_ref(&group.reason), std::slice::from_ref(&group.repair)),
            None => (&finding.reasons[..], &finding.repairs[..]),
        };
        let reasons = reasons.iter().map(|reason| format!("because {reason}"));
        let repairs = repairs.iter().map(|repair| format!("repair: {}", repair.text));
        let of_group = finding.group.as_ref().map(|group| {
            format!("this is the first of {}: --json has each of them, with a repair of its own", group.count)
        });
        let commands = [finding.first.as_ref(), Some(&finding.second)].map(|access| access?.command.as_ref());
        let of_pairs = commands.iter().all(Option::is_some);
        let seen = (finding.count > 1).then(|| match finding.count {
            count if of_pairs => format!("observed between {count} pairs of commands"),
            count => format!("observed {count} times"),
        });
        let again = (finding.schedule != Schedule::Ascending)
            .then(|| format!("to see it again: --schedule {}", finding.schedule));
        let place = finding.dispatch.as_ref().map(|dispatch| dispatch.place());
        diagnostic.with_notes(reasons.chain(repairs).chain(of_group).chain(seen).chain(again).chain(place).collect())
    }

    /// Adds the label of an access, and the calls through which it was inlined; a note, if its source is not known.
    fn labelled(
        &mut self,
        mut diagnostic: Diagnostic<usize>,
        access: &FoundAccess,
        other: Option<&FoundAccess>,
        primary: bool,
    ) -> Diagnostic<usize> {
        let label = match access.agent() {
            Some(agent) => format!("{} by {agent}", access.action),
            None => access.action.clone(),
        };
        let range = access.line.as_ref().and_then(|line| {
            let file = self.file(&line.file, access)?;
            let row = self.files.line_range(file, (line.line as usize).checked_sub(1)?).ok()?;
            let text = self.files.source(file).ok()?.get(row.clone())?;
            let indent = text.len() - text.trim_start().len();
            let column = text.char_indices().nth((line.column as usize).saturating_sub(1)).map_or(0, |(at, _)| at);
            let start = column.max(indent);
            let rest = text.get(start..)?;
            // Only the start is known: up to the end of the statement, or of the code on the line. Compilers of GLSL
            // give no column (0): the whole line, since any of its statements may be meant.
            let ends = || [rest.find(';'), rest.find('{'), rest.find("//")].into_iter().flatten().min();
            let operand = || if access.action.starts_with("write") { None } else { operand(rest) };
            let end = if line.column == 0 { None } else { operand().or_else(ends) };
            let len = rest[..end.unwrap_or(rest.len())].trim_end().len();
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
                Some(position) if access.line.is_none() => {
                    format!("{label}: {position} of kernel `{}`", access.kernel)
                }
                Some(position) => format!("{label}: {position}"),
                None => label,
            }),
        }
        // Two accesses at one position have one path, which is said once, or each its own.
        let beside = other.filter(|other| other.position() == access.position());
        let (is_said, differs) = match beside {
            Some(other) if other.inlined_at == access.inlined_at => (primary, false),
            Some(_) => (false, true),
            None => (false, false),
        };
        if !is_said {
            let of = if differs { format!("the {access}") } else { access.position().unwrap_or_default() };
            let calls = access.inlined_at.iter().rev();
            diagnostic.notes.extend(calls.map(|call| format!("{of} was inlined from a call at {call}")));
        }
        diagnostic
    }

    /// The text of a file: from the module, or else read from the file system. Modules may have different texts under
    /// one name, which may be empty.
    fn file(&mut self, name: &str, access: &FoundAccess) -> Option<usize> {
        let text = &access.source;
        if let Some(known) = self.known.iter().find(|known| known.name == name && known.text == *text) {
            return known.number;
        }
        let read = || std::fs::read_to_string(name).ok().map(Arc::from);
        let title = if name.is_empty() { format!("source of `{}`", access.kernel) } else { name.to_owned() };
        let number = text.clone().or_else(read).map(|text| self.files.add(title, text));
        self.known.push(SourceFile { name: name.to_owned(), text: text.clone(), number });
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operand_of_a_read_ends_before_what_is_done_with_it() {
        let of = |text: &'static str| operand(text).map(|end| &text[..end]);
        assert_eq!(of("tile[max(i, 16u) - 16u];"), Some("tile[max(i, 16u) - 16u]"));
        assert_eq!(of("a[i - 1u] + a[i] + a[i + 1u];"), Some("a[i - 1u]"));
        assert_eq!(of("q.items[slot].x == 1u { }"), Some("q.items[slot].x"));
        assert_eq!(of("atomicAdd(&n, 1u) + 2u"), Some("atomicAdd(&n, 1u)"));
        for statement in ["a[i] = b[i];", "a[i] += 1u;", "n++;", "let x = a[i];", "*p;", "a[i", "7u"] {
            assert_eq!(of(statement), None, "{statement}");
        }
    }
}

//! Results as text.

use std::path::Path;

use spelter_memory_model::answer::{Answer, Summary};
use spelter_memory_model::format::{Question, QuestionKind};
use spelter_memory_model::repair::{Change, Effort, Rewritten};
use spelter_shaders::ir::MemoryModel;

use super::{Decided, Total, edits, undecided};
use crate::args::LitmusArgs;
use crate::failure::Failure;
use crate::output::Output;

/// One test: in full if it is the only one; otherwise a line, and the answers that differ.
pub(crate) fn test(
    path: &Path,
    decided: &Decided,
    args: &LitmusArgs,
    alone: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let none = decided.summary.as_ref().is_ok_and(|summary| summary.executions == 0 && !summary.more);
    let verdict = match &decided.races {
        // A test without executions is race-free only vacuously.
        Ok(false) if none => output.strong("no executions"),
        Ok(true) => output.strong("RACY"),
        Ok(false) => output.good("race-free"),
        Err(error) => format!("undecided: {error}"),
    };
    let counts = match &decided.summary {
        Ok(summary) if summary.racy > 0 && decided.races == Ok(false) => {
            format!("{}, none of them within the filter", executions(summary))
        }
        Ok(summary) => executions(summary),
        // The verdict shows the error already.
        Err(_) if decided.races.is_err() => String::new(),
        Err(error) => error.clone(),
    };
    output.line(format!("{}: {verdict}   {counts}", path.display()).trim_end())?;
    for warning in &decided.test.warnings {
        output.line(format!(" warning    {}:{warning}", path.display()))?;
    }
    if alone {
        decided.listing.iter().try_for_each(|line| output.line(format!("   {line}")))?;
    }
    for (question, answer) in decided.test.questions.iter().zip(&decided.answers) {
        if alone || answer.as_ref().map_or(true, Answer::differs) {
            output.line(format!(
                " line {:<5} {}: {}",
                question.place.line,
                question.text,
                answered(question, answer, decided.races.as_ref().err())
            ))?;
        }
    }
    if let (Ok(races), Some(free)) = (&decided.races, decided.expected_race_free)
        && *races == free
    {
        output.line(format!(" races      expected {}", if free { "race-free" } else { "racy" }))?;
    }
    if let (Ok(summary), true) = (&decided.summary, alone || args.explain) {
        outcomes(summary, output)?;
    }
    if let Some(explanation) = &decided.explanation {
        output.line(format!(" race       {}  ×  {}", explanation.first, explanation.second))?;
        for conjunct in &explanation.conjuncts {
            let holds = if conjunct.holds { "yes" } else { "no " };
            output.line(format!("   {:<17} {holds}: {}", format!("{}?", conjunct.question), conjunct.because))?;
        }
    }
    if let Some(ambiguities) = &decided.depends_on {
        let named = ambiguities.iter().map(|(name, switch, value)| format!("{name} ({switch}={value})"));
        let named: Vec<_> = named.collect();
        let named = if named.is_empty() { "none of A1 to A5".to_owned() } else { named.join(", ") };
        output.line(format!(" depends on {named}"))?;
    }
    match &decided.repair {
        None => {}
        Some(Err(error)) => output.line(format!(" repair     undecided: {error}"))?,
        Some(Ok(None)) if decided.language == Some(MemoryModel::Wgsl) => {
            let apart = "; two dispatches do, since nothing in WGSL orders accesses of different workgroups";
            let apart = if decided.between_workgroups { apart } else { "" };
            output.line(format!(" repair     none found: no control barriers remove the race{apart}"))?;
        }
        Some(Ok(None)) => {
            let max_edits = Effort::default().edits;
            output.line(format!(
                " repair     none found: neither up to {max_edits} edits nor all edits together remove the race"
            ))?;
        }
        Some(Ok(Some(repair))) => {
            let label = if repair.is_smallest() { "smallest repair" } else { "a repair" };
            let edits = edits(decided, repair).join(", ");
            let count = plural(repair.executions);
            output.line(format!(" {label}: {edits} -> {count}, none racy"))?;
            match &decided.rewritten {
                Some(Ok(rewritten)) => changes(rewritten, output)?,
                Some(Err(problem)) => output.line(format!("   {problem}"))?,
                None => {}
            }
            if let Some(bound) = &repair.gave_up {
                output.line(format!("   a smaller one may exist: {}", undecided(bound)))?;
            }
        }
    }
    Ok(())
}

/// The changed operations in the tokens of the file, each with its line.
fn changes(rewritten: &Rewritten, output: &mut Output) -> Result<(), Failure> {
    rewritten.changes.iter().try_for_each(|Change { line, before, after }| {
        let before = if before.is_empty() { "(new)" } else { before };
        output.line(format!("   line {line:<4} {before}  ->  {after}"))
    })
}

fn executions(summary: &Summary) -> String {
    let more = if summary.more { " and more" } else { "" };
    format!("{}{more}, {} racy", plural(summary.executions), summary.racy)
}

fn plural(executions: u64) -> String {
    if executions == 1 { "1 execution".to_owned() } else { format!("{executions} executions") }
}

fn answered(question: &Question, answer: &Result<Answer, String>, shown: Option<&String>) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if shown == Some(error) => return "undecided for the same reason".to_owned(),
        Err(error) => return format!("undecided: {error}"),
    };
    let found = match (&question.kind, answer.holds) {
        (QuestionKind::Satisfiable { .. }, true) => "satisfiable",
        (QuestionKind::Satisfiable { .. }, false) => "no solution",
        (QuestionKind::Final { .. }, true) => "holds",
        (QuestionKind::Final { .. }, false) => "does not hold",
    };
    match answer.expected {
        None => found.to_owned(),
        Some(_) if answer.differs() => format!("{found}, which DIFFERS from what is expected"),
        Some(_) => format!("{found}, as expected"),
    }
}

fn outcomes(summary: &Summary, output: &mut Output) -> Result<(), Failure> {
    const SHOWN: usize = 32;
    let words = |(outcome, race): (&String, &bool)| format!("{outcome}{}", if *race { " RACE" } else { "" });
    let shown: Vec<_> = summary.outcomes.iter().take(SHOWN).map(words).collect();
    if summary.executions == 0 {
        return output
            .line(" outcomes   none: no execution is consistent with the model, or the program breaks a rule");
    }
    if shown.is_empty() && summary.cut.is_some() {
        return output.line(" outcomes   none within the bound");
    }
    if shown.is_empty() {
        return output.line(" outcomes   none: no execution ends");
    }
    let more = summary.outcomes.len().saturating_sub(SHOWN);
    let more = match (more, summary.more || summary.more_outcomes) {
        (0, false) if summary.cut.is_some() => " | … others beyond the bound".to_owned(),
        (0, false) => String::new(),
        (more, false) => format!(" | … {more} more"),
        (more, true) => format!(" | … {more} more that were recorded, and others"),
    };
    output.line(format!(" outcomes   {}{more}", shown.join(" | ")))
}

/// The last line of a run over several files.
pub(crate) fn total(total: &Total, output: &mut Output) -> Result<(), Failure> {
    let as_expected = total.expectations - total.differences;
    output.line(format!(
        "{} tests, {} racy; {} questions in {:.1} ms: {as_expected} answers as expected, {} differ, \
         {} without expectation, {} undecided, {} files unreadable",
        total.tests,
        total.racy,
        total.questions,
        total.deciding.as_secs_f64() * 1e3,
        total.differences,
        total.open,
        total.undecided,
        total.unreadable
    ))?;
    match total.unused_rows {
        0 => Ok(()),
        1 => output.line("1 row of the lists names no test of this run"),
        rows => output.line(format!("{rows} rows of the lists name no test of this run")),
    }
}

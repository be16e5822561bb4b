//! Results as JSON: an object for each test and one for the total.

use std::path::Path;

use serde_json::{Value, json};
use spelter_memory_model::answer::{Execution, Options};
use spelter_memory_model::describe;
use spelter_memory_model::program::Program;
use spelter_memory_model::relations::Source;
use spelter_memory_model::repair::{Change, Rewritten};

use super::{Decided, Total, edits, undecided};

/// One test for a file of results: without its folder and duration, which depend on the machine.
pub(super) fn result(path: &Path, decided: &Decided, options: &Options) -> Value {
    let mut value = test(path, decided, options);
    value["file"] = json!(path.file_name().unwrap_or_default().to_string_lossy());
    // For the sums of `spelter merge`.
    value["differences"] = json!(decided.differences());
    value.as_object_mut().map(|object| object.remove("microseconds"));
    value
}

/// One test.
pub(crate) fn test(path: &Path, decided: &Decided, options: &Options) -> Value {
    let program = &decided.test.program;
    let questions = decided.test.questions.iter().zip(&decided.answers).map(|(question, answer)| match answer {
        Ok(answer) => json!({
            "line": question.place.line,
            "question": question.text,
            "holds": answer.holds,
            "expected": answer.expected,
            "witness": answer.witness.as_ref().map(|witness| execution(program, witness)),
        }),
        Err(error) => json!({ "line": question.place.line, "question": question.text, "undecided": error }),
    });
    let mut value = json!({
        "file": path.display().to_string(),
        "model": options.model.to_string(),
        "questions": questions.collect::<Vec<_>>(),
        "races": decided.races.as_ref().ok(),
        "races_undecided": decided.races.as_ref().err(),
        "expected_race_free": decided.expected_race_free,
        "microseconds": decided.duration.as_micros() as u64,
    });
    if !decided.listing.is_empty() {
        value["threads"] = json!(decided.listing);
    }
    if !decided.test.warnings.is_empty() {
        value["warnings"] = decided.test.warnings.iter().map(ToString::to_string).collect();
    }
    match &decided.summary {
        Ok(summary) => {
            value["executions"] = json!(summary.executions);
            value["racy_executions"] = json!(summary.racy);
            value["complete"] = json!(!summary.more && !summary.more_outcomes && summary.cut.is_none());
            let outcomes = summary.outcomes.iter();
            value["outcomes"] = outcomes.map(|(outcome, race)| json!({ "values": outcome, "race": race })).collect();
            value["race"] = summary.race.as_ref().map_or(Value::Null, |race| execution(program, race));
        }
        Err(error) => value["undecided"] = json!(error),
    }
    if let Some(explanation) = &decided.explanation {
        let conjuncts = explanation.conjuncts.iter().map(
            |conjunct| json!({ "question": conjunct.question, "holds": conjunct.holds, "because": conjunct.because }),
        );
        value["explanation"] = json!({
            "first": explanation.first,
            "second": explanation.second,
            "cause": explanation.cause().map(|cause| cause.question),
            "conjuncts": conjuncts.collect::<Vec<_>>(),
        });
    }
    if let Some(ambiguities) = &decided.depends_on {
        let object =
            |(name, switch, value): &(&str, &str, &str)| json!({ "ambiguity": name, "switch": switch, "value": value });
        value["depends_on"] = ambiguities.iter().map(object).collect();
    }
    match &decided.repair {
        None => {}
        Some(Err(error)) => value["repair"] = json!({ "undecided": error }),
        Some(Ok(None)) => value["repair"] = Value::Null,
        Some(Ok(Some(repair))) => {
            value["repair"] = json!({
                "edits": edits(decided, repair),
                "smallest": repair.is_smallest(),
                "changes": decided.rewritten.as_ref().and_then(|rewritten| rewritten.as_ref().ok()).map(changes),
                "gave_up": repair.gave_up.as_ref().map(undecided),
                "executions": repair.executions,
            });
        }
    }
    value
}

/// The changed operations in the tokens of the file.
fn changes(rewritten: &Rewritten) -> Value {
    let change = |change: &Change| json!({ "line": change.line, "before": change.before, "after": change.after });
    rewritten.changes.iter().map(change).collect()
}

fn execution(program: &Program, execution: &Execution) -> Value {
    let instance = &execution.instance;
    let place = |event: usize| describe::place(program, instance, event);
    let pairs = |pairs: &[(usize, usize)]| pairs.iter().map(|&(a, b)| [place(a), place(b)]).collect::<Vec<_>>();
    let reads = execution.sources.iter().enumerate().filter_map(|(read, source)| {
        let source = match (*source)? {
            Source::Initial => json!("initial"),
            Source::Write(write) => json!(place(write)),
        };
        Some(json!({ "read": place(read), "from": source, "value": execution.values.read[read] }))
    });
    json!({
        "events": (0..instance.trace.len()).map(|event| describe::event(program, instance, &execution.values, event)).collect::<Vec<_>>(),
        "reads": reads.collect::<Vec<_>>(),
        "modification_order": pairs(&execution.modification_order),
        "races": pairs(&execution.races),
    })
}

/// All tests.
pub(crate) fn total(total: &Total, options: &Options) -> Value {
    json!({
        "total": {
            "model": options.model.to_string(),
            "tests": total.tests,
            "racy": total.racy,
            "questions": total.questions,
            "expectations": total.expectations,
            "differences": total.differences,
            "without_expectation": total.open,
            "undecided": total.undecided,
            "rows_without_test": total.unused_rows,
            "unreadable": total.unreadable,
            "microseconds": total.deciding.as_micros() as u64,
        }
    })
}

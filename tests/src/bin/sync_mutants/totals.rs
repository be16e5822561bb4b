//! The verdicts on all mutants, printed as they come and in numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use spelter_driver::check::Finding;
use spelter_tests::checked::sync::{Mutant, Report, Verdict};

/// The name of the verdict on a mutant whose race was reported.
const REPORTED: &str = "reported";

/// Those on a mutant whose race was not.
const DEFECTS: [&str; 2] = ["missed", "warning only"];

/// Whether an object is about a kernel that was not silent, or a mutant that was missed.
pub(crate) fn is_defect(object: &Value) -> bool {
    object["error_seed"].is_u64() || object["verdict"].as_str().is_some_and(|verdict| DEFECTS.contains(&verdict))
}

/// All verdicts.
#[derive(Debug)]
pub(crate) struct Totals {
    json: bool,
    /// What was said about the present file, for a file of results.
    objects: Vec<Value>,
    kernels: u64,
    loud: u64,
    refused: u64,
    /// By verdict, then by change.
    mutants: BTreeMap<String, BTreeMap<String, u64>>,
    /// Mutants that were reported, by the seed.
    seeds: BTreeMap<u64, u64>,
}

impl Totals {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            objects: Vec::new(),
            kernels: 0,
            loud: 0,
            refused: 0,
            mutants: BTreeMap::new(),
            seeds: BTreeMap::new(),
        }
    }

    /// What was said since the last call.
    pub(crate) fn take_objects(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.objects)
    }

    /// Counts and prints what an earlier run said about a file; `None` if it is something else.
    pub(crate) fn earlier(&mut self, result: &Value) -> Option<()> {
        result["objects"].as_array()?.iter().try_for_each(|object| self.line(object))
    }

    /// Counts and prints an object, and keeps it for the file of results, with the name of the file only.
    fn say(&mut self, path: &Path, mut object: Value) {
        self.line(&object);
        object["file"] = json!(path.file_name().unwrap_or_default().to_string_lossy());
        self.objects.push(object);
    }

    /// Counts and prints an object about a file, a kernel or a mutant; `None` if it is about something else.
    fn line(&mut self, object: &Value) -> Option<()> {
        let file = object["file"].as_str()?;
        let entry = object["entry"].as_str().unwrap_or_default();
        let text = if let Some(reason) = object["refused"].as_str() {
            self.refused += 1;
            Some(format!("{file}: rejected: {reason}"))
        } else if let Some(verdict) = object["verdict"].as_str() {
            let (change, detail) = (object["change"].as_str()?, &object["detail"]);
            *self.mutants.entry(verdict.to_owned()).or_default().entry(change.to_owned()).or_default() += 1;
            let is_reported = verdict == REPORTED;
            if is_reported {
                *self.seeds.entry(detail["seed"].as_u64()?).or_default() += 1;
            }
            let word = &object["word"];
            (!is_reported).then(|| format!("{file}, {entry}: {change} at word {word}: {verdict} {detail}"))
        } else {
            self.kernels += 1;
            let stopped = object["stopped"].as_u64()?;
            match object["error_seed"].as_u64() {
                Some(seed) => {
                    self.loud += 1;
                    let errors: Vec<_> = object["errors"].as_array()?.iter().filter_map(Value::as_str).collect();
                    Some(format!("{file}, {entry}: not silent at seed {seed}: {}", errors.join("; ")))
                }
                None => (stopped > 0).then(|| format!("{file}, {entry}: endless")),
            }
        };
        match text {
            _ if self.json => println!("{object}"),
            Some(text) => println!("{text}"),
            None => {}
        }
        Some(())
    }

    /// A file that was rejected.
    pub(crate) fn file(&mut self, path: &Path, reason: &str) {
        self.say(path, json!({ "file": path, "refused": reason }));
    }

    /// What checked mode says to a kernel itself.
    pub(crate) fn original(&mut self, path: &Path, entry: &str, report: &Result<Report, String>) {
        match report {
            Err(reason) => self.file(path, reason),
            Ok(report) => {
                let errors = report.reported.as_ref().map(|(seed, findings)| (*seed, texts(findings)));
                let object = json!({
                    "file": path, "entry": entry, "seeds": report.seeds, "stopped": report.stopped,
                    "error_seed": errors.as_ref().map(|errors| errors.0),
                    "errors": errors.as_ref().map(|errors| &errors.1), "warnings": texts(&report.warnings),
                    "suspicions": report.stats.suspicions, "refuted": report.stats.refuted,
                    "undecided": report.stats.undecided,
                });
                self.say(path, object);
            }
        }
    }

    /// What became of a mutant.
    pub(crate) fn mutant(&mut self, path: &Path, entry: &str, mutant: &Mutant, verdict: &Result<Verdict, String>) {
        let change = mutant.change.name();
        let name = verdict.as_ref().map_or("refused", Verdict::name);
        let detail: Value = match verdict {
            Ok(Verdict::Reported { seed, findings }) => json!({ "seed": seed, "errors": texts(findings) }),
            Ok(Verdict::Missed { seed, .. }) => json!({ "seed": seed }),
            Err(reason) => json!({ "reason": reason }),
            _ => Value::Null,
        };
        let object = json!({ "file": path, "entry": entry, "change": change, "word": mutant.word,
            "verdict": name, "detail": detail });
        self.say(path, object);
    }

    /// Prints the numbers. The status is a failure if a kernel was not silent, or a mutant was missed.
    pub(crate) fn print(&self) -> ExitCode {
        let Self { kernels, loud, refused, mutants, seeds, json, .. } = self;
        if *json {
            let object = json!({ "kernels": kernels, "not_silent": loud, "rejected": refused, "mutants": mutants,
                "reported_by_seed": seeds.iter().map(|(seed, count)| [*seed, *count]).collect::<Vec<_>>() });
            println!("{object}");
        } else {
            println!("{kernels} kernels, {loud} of them not silent; {refused} files rejected");
            for (verdict, changes) in mutants {
                let total: u64 = changes.values().sum();
                let parts: Vec<_> = changes.iter().map(|(change, count)| format!("{count} {change}")).collect();
                println!("{total} {verdict}: {}", parts.join(", "));
            }
        }
        let is_missed = DEFECTS.iter().any(|verdict| mutants.contains_key(*verdict));
        if is_missed || *loud > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// A line for each finding.
fn texts(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| {
            let first = finding.first.as_ref().map_or(0, |access| access.word);
            let reasons = finding.reasons.join("; ");
            format!("{} words {first} and {}: {reasons}", finding.rule, finding.second.word)
        })
        .collect()
}

//! The verdicts on all mutants, printed as they come and in numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use spelter_driver::check::Finding;
use spelter_tests::checked::sync::{Mutant, Report, Verdict};

/// All verdicts.
#[derive(Debug)]
pub(crate) struct Totals {
    json: bool,
    /// What was said about the present file, for a file of results.
    objects: Vec<Value>,
    originals: u64,
    loud: u64,
    refused: u64,
    /// By verdict, then by change.
    mutants: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Mutants that were reported, by the seed.
    seeds: BTreeMap<u64, u64>,
}

impl Totals {
    pub(crate) fn new(json: bool) -> Self {
        let objects = Vec::new();
        Self { json, objects, originals: 0, loud: 0, refused: 0, mutants: BTreeMap::new(), seeds: BTreeMap::new() }
    }

    /// What was said since the last call.
    pub(crate) fn take_objects(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.objects)
    }

    /// Prints an object, and keeps it for the file of results, with the name of the file only.
    fn say(&mut self, path: &Path, mut object: Value) {
        if self.json {
            println!("{object}");
        }
        object["file"] = json!(path.file_name().unwrap_or_default().to_string_lossy());
        self.objects.push(object);
    }

    /// A file that was rejected.
    pub(crate) fn file(&mut self, path: &Path, reason: &str) {
        self.refused += 1;
        self.say(path, json!({ "file": path, "refused": reason }));
        if !self.json {
            println!("{}: rejected: {reason}", path.display());
        }
    }

    /// What checked mode says to a kernel itself.
    pub(crate) fn original(&mut self, path: &Path, entry: &str, report: &Result<Report, String>) {
        match report {
            Err(reason) => self.file(path, reason),
            Ok(report) => {
                self.originals += 1;
                self.loud += u64::from(report.reported.is_some());
                let errors = report.reported.as_ref().map(|(seed, findings)| (*seed, texts(findings)));
                let object = json!({
                    "file": path, "entry": entry, "seeds": report.seeds, "stopped": report.stopped,
                    "error_seed": errors.as_ref().map(|errors| errors.0),
                    "errors": errors.as_ref().map(|errors| &errors.1), "warnings": texts(&report.warnings),
                    "suspicions": report.stats.suspicions, "refuted": report.stats.refuted,
                    "undecided": report.stats.undecided,
                });
                self.say(path, object);
                match errors {
                    _ if self.json => {}
                    Some((seed, errors)) => {
                        println!("{}, {entry}: not silent at seed {seed}: {}", path.display(), errors.join("; "));
                    }
                    None if report.stopped > 0 => println!("{}, {entry}: endless", path.display()),
                    None => {}
                }
            }
        }
    }

    /// What became of a mutant.
    pub(crate) fn mutant(&mut self, path: &Path, entry: &str, mutant: &Mutant, verdict: &Result<Verdict, String>) {
        let change = mutant.change.name();
        let name = verdict.as_ref().map_or("refused", Verdict::name);
        *self.mutants.entry(name).or_default().entry(change).or_default() += 1;
        let detail: Value = match verdict {
            Ok(Verdict::Reported { seed, findings }) => {
                *self.seeds.entry(*seed).or_default() += 1;
                json!({ "seed": seed, "errors": texts(findings) })
            }
            Ok(Verdict::Missed { seed, .. }) => json!({ "seed": seed }),
            Err(reason) => json!({ "reason": reason }),
            _ => Value::Null,
        };
        let object = json!({ "file": path, "entry": entry, "change": change, "word": mutant.word,
            "verdict": name, "detail": detail.clone() });
        self.say(path, object);
        if !self.json && !matches!(verdict, Ok(Verdict::Reported { .. })) {
            println!("{}, {entry}: {change} at word {}: {} {detail}", path.display(), mutant.word, name);
        }
    }

    /// Prints the numbers. The status is a failure if a kernel was not silent, or a mutant was missed.
    pub(crate) fn print(&self) -> ExitCode {
        let Self { originals, loud, refused, mutants, seeds, json, .. } = self;
        if *json {
            let object = json!({ "kernels": originals, "not_silent": loud, "rejected": refused, "mutants": mutants,
                "reported_by_seed": seeds.iter().map(|(seed, count)| [*seed, *count]).collect::<Vec<_>>() });
            println!("{object}");
        } else {
            println!("{originals} kernels, {loud} of them not silent; {refused} files rejected");
            for (verdict, changes) in mutants {
                let total: u64 = changes.values().sum();
                let parts: Vec<_> = changes.iter().map(|(change, count)| format!("{count} {change}")).collect();
                println!("{total} {verdict}: {}", parts.join(", "));
            }
        }
        let bad = mutants.contains_key("missed") || mutants.contains_key("warning only") || *loud > 0;
        if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
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

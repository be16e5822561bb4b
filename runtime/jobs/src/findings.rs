//! Findings of several jobs: those of checked mode that are equal, whichever job and file has them.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::Value;

/// A finding of one or several jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFinding {
    /// Equal for the same finding in all jobs.
    pub fingerprint: String,
    /// The rule.
    pub id: String,
    /// `error`, `warning` or `note`: the severest of all jobs.
    pub severity: String,
    /// What was found, by the first job that has it with this severity.
    pub title: String,
    /// The place in the source by the same job, `FILE:LINE:COLUMN`, if it is known.
    pub place: Option<String>,
    /// How often it was observed in all jobs together.
    pub count: u64,
    /// The number of jobs that have it.
    pub jobs: u64,
    /// The first of them.
    pub first_job: u64,
}

impl SharedFinding {
    /// A finding of a result; `None` for what is no finding of checked mode.
    fn of(job: u64, finding: &Value) -> Option<Self> {
        let text = |name: &str| finding[name].as_str().map(str::to_owned);
        let access = &finding["second"];
        let line = || Some((access["file"].as_str()?, access["line"].as_u64()?, access["column"].as_u64()?));
        Some(Self {
            fingerprint: text("fingerprint")?,
            id: text("id").unwrap_or_default(),
            severity: text("severity").unwrap_or_default(),
            title: text("title").unwrap_or_default(),
            place: line().map(|(file, line, column)| format!("{file}:{line}:{column}")),
            count: finding["count"].as_u64().unwrap_or(1),
            jobs: 1,
            first_job: job,
        })
    }
}

/// A finding of the jobs that were added.
#[derive(Debug)]
struct Known {
    finding: SharedFinding,
    /// The job that its texts are of: the first of those with the highest severity. Another one may be the first job.
    text_of: u64,
}

impl Known {
    /// The finding of one job.
    fn new(finding: SharedFinding) -> Self {
        Self { text_of: finding.first_job, finding }
    }

    /// Adds the same finding of another job. Files come in any order, on which the result does not depend.
    fn add(&mut self, other: SharedFinding) {
        let order = |severity: &str, job: u64| (Reverse(rank(severity)), job);
        let known = &mut self.finding;
        let has_text = order(&other.severity, other.first_job) < order(&known.severity, self.text_of);
        known.count = known.count.saturating_add(other.count);
        known.jobs += 1;
        known.first_job = known.first_job.min(other.first_job);
        if has_text {
            self.text_of = other.first_job;
            let SharedFinding { id, severity, title, place, .. } = other;
            (known.id, known.severity, known.title, known.place) = (id, severity, title, place);
        }
    }
}

/// The higher the worse.
fn rank(severity: &str) -> u8 {
    match severity {
        "error" => 2,
        "warning" => 1,
        _ => 0,
    }
}

/// The findings of the jobs that were added, by their fingerprints.
#[derive(Debug, Default)]
pub(super) struct Findings(HashMap<String, Known>);

impl Findings {
    /// Adds those of a result.
    pub(super) fn add(&mut self, job: u64, result: &Value) {
        let mut own: Vec<SharedFinding> = Vec::new();
        let all = result["findings"].as_array().into_iter().flatten();
        for finding in all.filter_map(|finding| SharedFinding::of(job, finding)) {
            match own.iter_mut().find(|known| known.fingerprint == finding.fingerprint) {
                Some(known) => known.count = known.count.saturating_add(finding.count),
                None => own.push(finding),
            }
        }
        for finding in own {
            match self.0.get_mut(&finding.fingerprint) {
                Some(known) => known.add(finding),
                None => _ = self.0.insert(finding.fingerprint.clone(), Known::new(finding)),
            }
        }
    }

    /// All of them: the severest first, then in the order of their first jobs.
    pub(super) fn sorted(&self) -> Vec<&SharedFinding> {
        let mut all: Vec<_> = self.0.values().map(|known| &known.finding).collect();
        all.sort_by_key(|finding| (Reverse(rank(&finding.severity)), finding.first_job, finding.fingerprint.as_str()));
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_findings_are_one() {
        let one = |print: &str, severity: &str, count: u64, title: &str| {
            let place = json!({ "file": "a.wgsl", "line": 3, "column": 7 });
            json!({ "fingerprint": print, "id": "R", "severity": severity, "count": count, "title": title,
                "second": place })
        };
        let mut findings = Findings::default();
        findings.add(5, &json!({ "findings": [one("a", "warning", 2, "late"), one("b", "error", 1, "b")] }));
        findings.add(1, &json!({ "findings": [one("a", "warning", 3, "early"), one("a", "warning", 4, "early")] }));
        findings.add(7, &json!({ "findings": [one("c", "error", 1, "c"), { "mutant": 3 }] }));
        findings.add(8, &json!({ "ran": 3 }));
        let all: Vec<_> = findings.sorted().into_iter().cloned().collect();
        let shown: Vec<_> = all.iter().map(|f| (&*f.title, &*f.severity, f.count, f.jobs, f.first_job)).collect();
        assert_eq!(shown, [("b", "error", 1, 1, 5), ("c", "error", 1, 1, 7), ("early", "warning", 9, 2, 1)]);
        assert_eq!(all[0].place.as_deref(), Some("a.wgsl:3:7"));
        // The severest counts.
        findings.add(9, &json!({ "findings": [one("a", "error", 1, "worse")] }));
        let a = findings.sorted().into_iter().find(|finding| finding.fingerprint == "a").cloned();
        let a = a.map(|finding| (finding.severity, finding.title, finding.first_job));
        assert_eq!(a, Some(("error".to_owned(), "worse".to_owned(), 1)));
    }

    #[test]
    fn findings_do_not_depend_on_the_order_of_files() {
        let job = |job: u64, severity: &str| {
            let place = json!({ "file": "a.wgsl", "line": job, "column": 1 });
            let finding = json!({ "fingerprint": "a", "id": "R", "severity": severity, "title": format!("job {job}"),
                "second": place });
            (job, json!({ "findings": [finding] }))
        };
        let jobs = [job(0, "warning"), job(3, "error"), job(7, "error"), job(9, "note")];
        let expected = SharedFinding {
            fingerprint: "a".to_owned(),
            id: "R".to_owned(),
            severity: "error".to_owned(),
            title: "job 3".to_owned(),
            place: Some("a.wgsl:3:1".to_owned()),
            count: 4,
            jobs: 4,
            first_job: 0,
        };
        // All orders, and numbers that are none.
        for number in 0..256_usize {
            let order = [number % 4, number / 4 % 4, number / 16 % 4, number / 64];
            if (0..4).all(|job| order.contains(&job)) {
                let mut findings = Findings::default();
                order.iter().for_each(|at| findings.add(jobs[*at].0, &jobs[*at].1));
                assert_eq!(findings.sorted(), [&expected], "{order:?}");
            }
        }
    }
}

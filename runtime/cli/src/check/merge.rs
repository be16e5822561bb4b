//! The findings of all processes of a program, and of all its runs, from the lines that the driver wrote.

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};
use spelter::check::{CheckStats, Rule, Severity};

/// What the processes found, each finding once.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// In the order in which they were found.
    pub(crate) findings: Vec<Json>,
    /// Processes that created a device.
    pub(super) processes: usize,
    /// Those of them that did not write their counts: they were killed, or ended by `_exit`.
    pub(super) without_counts: usize,
    /// Those that ended before all that they submitted had run.
    pub(super) unfinished: usize,
    /// Findings that were suppressed.
    pub(super) suppressed: usize,
    /// Findings of other rules than those of --only.
    pub(super) not_shown: usize,
    /// Sums of the counts.
    checked: Map<String, Json>,
    /// Runs of the program.
    pub(super) runs: u64,
}

/// The summary of one process.
#[derive(Debug, Default)]
struct Process {
    summary: Option<Json>,
}

impl Merged {
    /// Merges the lines of one run. Incomplete ones, of a process that was killed, are left out.
    pub(super) fn new(lines: &str) -> Self {
        let mut merged = Self { runs: 1, ..Self::default() };
        let mut processes: Vec<Process> = Vec::new();
        // A later process may get the same process ID: the latest process with an ID is meant.
        let mut latest: HashMap<u64, usize> = HashMap::new();
        let mut by_fingerprint: HashMap<String, usize> = HashMap::new();
        let mut counts: HashMap<(usize, String), u64> = HashMap::new();
        for object in lines.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
            if let Some(id) = object["started"]["process"].as_u64() {
                latest.insert(id, processes.len());
                processes.push(Process::default());
            } else if let Some(process) = object["summary"]["process"].as_u64().and_then(|id| latest.get(&id)) {
                processes[*process].summary = Some(object["summary"].clone());
            } else if let Some(fingerprint) = object["fingerprint"].as_str() {
                let process = object["process"].as_u64().and_then(|id| latest.get(&id)).copied();
                let count = object["count"].as_u64().unwrap_or(1);
                *counts.entry((process.unwrap_or(usize::MAX), fingerprint.to_owned())).or_default() += count;
                merged.add(&mut by_fingerprint, fingerprint, object.clone());
            }
        }
        for (index, process) in processes.iter().enumerate() {
            let Some(summary) = &process.summary else {
                merged.without_counts += 1;
                continue;
            };
            // The counts of the summary replace those of the lines: they include what was found again later.
            for (fingerprint, count) in summary["counts"].as_object().into_iter().flatten() {
                counts.insert((index, fingerprint.clone()), count.as_u64().unwrap_or(0));
            }
            merged.unfinished += usize::from(summary["unfinished"] == true);
            merged.suppressed += summary["suppressed"].as_u64().unwrap_or(0) as usize;
            merged.not_shown += summary["not_shown"].as_u64().unwrap_or(0) as usize;
            for (name, count) in summary["checked"].as_object().into_iter().flatten() {
                let sum = merged.checked(name) + count.as_u64().unwrap_or(0);
                merged.checked.insert(name.clone(), sum.into());
            }
        }
        for finding in &mut merged.findings {
            let fingerprint = finding["fingerprint"].as_str().unwrap_or_default().to_owned();
            let of_finding = counts.iter().filter(|((_, other), _)| *other == fingerprint);
            finding["count"] = of_finding.map(|(_, count)| count).sum::<u64>().into();
        }
        merged.processes = processes.len();
        merged
    }

    /// Adds a finding, unless it is there. A confirmed one says more than a suspicion.
    fn add(&mut self, by_fingerprint: &mut HashMap<String, usize>, fingerprint: &str, mut finding: Json) {
        if let Some(members) = finding.as_object_mut() {
            // Those differ between processes.
            members.remove("process");
            members.remove("submission");
        }
        match by_fingerprint.get(fingerprint) {
            Some(&known) if rank(&finding) > rank(&self.findings[known]) => self.findings[known] = finding,
            Some(_) => {}
            None => {
                by_fingerprint.insert(fingerprint.to_owned(), self.findings.len());
                self.findings.push(finding);
            }
        }
    }

    /// A count of what was checked, by its name.
    pub(super) fn checked(&self, name: &str) -> u64 {
        self.checked.get(name).and_then(Json::as_u64).unwrap_or(0)
    }

    /// The counts of what was not checked or not kept.
    pub(super) fn stats(&self) -> CheckStats {
        CheckStats {
            undecided: self.checked("undecided"),
            lines_not_compared: self.checked("lines_not_compared"),
            notes_not_searched: self.checked("notes_not_searched"),
            accesses_not_checked: self.checked("accesses_not_checked"),
            commands_forgotten: self.checked("commands_forgotten"),
            signals_forgotten: self.checked("signals_forgotten"),
            findings_dropped: self.checked("findings_dropped"),
            epochs_used_up: self.checked("epochs_used_up"),
            records_forgotten: self.checked("records_forgotten"),
            refuted_in_part: self.checked("refuted_in_part"),
            ..CheckStats::default()
        }
    }

    /// Whether no command that accesses memory ran on a device of Spelter, although the program ran.
    pub(super) fn is_without_commands(&self) -> bool {
        let commands = ["dispatches", "skipped", "transfers"].map(|name| self.checked(name));
        self.runs > 0 && commands.iter().sum::<u64>() == 0
    }

    /// The number of notes that the host reads memory without a barrier to it, of which each process prints only its
    /// first.
    pub(super) fn host_notes(&self) -> usize {
        let is_one =
            |finding: &&Json| finding["id"] == Rule::Host.name() && finding["severity"] == Severity::Note.name();
        self.findings.iter().filter(is_one).count()
    }

    /// Whether something that ran was not checked, or nothing ran on a device: then a run without findings proves
    /// nothing.
    pub(super) fn is_partial(&self) -> bool {
        self.is_without_commands() || self.without_counts > 0 || self.unfinished > 0 || self.stats().is_partial()
    }

    /// Number of findings of this severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding["severity"] == severity.name()).count()
    }

    /// The result of a run as a job of a job array. Processes write in no certain order, on which a result must not
    /// depend.
    pub(super) fn result(&self) -> Json {
        let mut findings = self.findings.clone();
        findings.sort_by(|a, b| a["fingerprint"].as_str().cmp(&b["fingerprint"].as_str()));
        json!({
            "findings": findings,
            "processes": self.processes,
            "processes_without_counts": self.without_counts,
            "processes_unfinished": self.unfinished,
            "suppressed": self.suppressed,
            "not_shown": self.not_shown,
            "checked": self.checked,
        })
    }

    /// What [`Merged::result`] has written.
    pub(crate) fn from_result(result: &Json) -> Self {
        let count = |name: &str| result[name].as_u64().unwrap_or(0) as usize;
        Self {
            findings: result["findings"].as_array().cloned().unwrap_or_default(),
            processes: count("processes"),
            without_counts: count("processes_without_counts"),
            unfinished: count("processes_unfinished"),
            suppressed: count("suppressed"),
            not_shown: count("not_shown"),
            checked: result["checked"].as_object().cloned().unwrap_or_default(),
            runs: 1,
        }
    }

    /// Adds another run: its new findings, and the counts of those that are known.
    pub(crate) fn append(&mut self, other: Self) {
        let fingerprint_of = |finding: &Json| finding["fingerprint"].as_str().unwrap_or_default().to_owned();
        let at = |(at, finding)| (fingerprint_of(finding), at);
        let mut by_fingerprint: HashMap<_, _> = self.findings.iter().enumerate().map(at).collect();
        for finding in other.findings {
            let (fingerprint, count) = (fingerprint_of(&finding), finding["count"].as_u64().unwrap_or(1));
            let before =
                by_fingerprint.get(&fingerprint).map_or(0, |&at| self.findings[at]["count"].as_u64().unwrap_or(1));
            self.add(&mut by_fingerprint, &fingerprint, finding);
            self.findings[by_fingerprint[&fingerprint]]["count"] = before.saturating_add(count).into();
        }
        for (name, count) in &other.checked {
            let sum = self.checked(name).saturating_add(count.as_u64().unwrap_or(0));
            self.checked.insert(name.clone(), sum.into());
        }
        self.processes += other.processes;
        self.without_counts += other.without_counts;
        self.unfinished += other.unfinished;
        self.suppressed += other.suppressed;
        self.not_shown += other.not_shown;
        self.runs += other.runs;
    }

    /// The object of the counts.
    pub(super) fn summary(&self) -> Json {
        json!({ "summary": {
            "runs": self.runs,
            "processes": self.processes,
            "processes_without_counts": self.without_counts,
            "processes_unfinished": self.unfinished,
            "errors": self.count(Severity::Error),
            "warnings": self.count(Severity::Warning),
            "notes": self.count(Severity::Note),
            "suppressed": self.suppressed,
            "not_shown": self.not_shown,
            "checked": self.checked,
        } })
    }
}

fn rank(finding: &Json) -> Option<Severity> {
    let all = [Severity::Note, Severity::Warning, Severity::Error];
    all.into_iter().find(|severity| finding["severity"] == severity.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_processes_are_merged_with_their_counts() {
        let lines = r#"
            {"started":{"process":7,"program":"a"}}
            {"id":"X","severity":"warning","fingerprint":"aa","count":2,"process":7}
            {"started":{"process":8,"program":"b"}}
            {"id":"X","severity":"error","fingerprint":"aa","count":1,"process":8}
            {"id":"Y","severity":"note","fingerprint":"bb","count":1,"process":8}
            {"summary":{"process":7,"suppressed":1,"counts":{"aa":5},"checked":{"dispatches":3}}}
            {"summary":{"process":7,"suppressed":2,"counts":{"aa":6},"checked":{"dispatches":4}}}
            {"started":{"process":7,"program":"c"}}
            {"summary":{"process":7,"suppressed":0,"unfinished":true,"counts":{},"checked":{"dispatches":10}}}
            {"torn"#;
        let merged = Merged::new(lines);
        assert_eq!((merged.unfinished, Merged::from_result(&merged.result()).unfinished), (1, 1));
        assert_eq!((merged.processes, merged.without_counts, merged.suppressed), (3, 1, 2));
        assert_eq!(merged.checked("dispatches"), 14);
        let found: Vec<_> = merged.findings.iter().map(|f| (&f["id"], &f["severity"], &f["count"])).collect();
        assert_eq!(found, [(&"X".into(), &"error".into(), &7.into()), (&"Y".into(), &"note".into(), &1.into())]);
        assert!(merged.findings[0]["process"].is_null());
        assert_eq!((merged.count(Severity::Error), merged.count(Severity::Warning)), (1, 0));
        assert_eq!(Merged::new("").summary()["summary"]["processes"], 0);
    }

    #[test]
    fn runs_are_added_up_as_they_are_recorded() {
        let first = r#"
            {"started":{"process":7}}
            {"fingerprint":"bb","severity":"warning","count":2,"process":7}
            {"fingerprint":"aa","severity":"note","count":1,"process":7}
            {"summary":{"process":7,"suppressed":1,"counts":{"bb":3},"checked":{"dispatches":3}}}"#;
        let second = r#"
            {"started":{"process":7}}
            {"fingerprint":"bb","severity":"error","count":4,"process":7}"#;
        let mut all = Merged::default();
        for lines in [first, second] {
            let run = Merged::new(lines);
            let again = Merged::from_result(&run.result());
            assert_eq!(again.result(), run.result());
            all.append(again);
        }
        assert_eq!((all.processes, all.without_counts, all.suppressed, all.checked("dispatches")), (2, 1, 1, 3));
        let found: Vec<_> = all.findings.iter().map(|f| (&f["fingerprint"], &f["severity"], &f["count"])).collect();
        assert_eq!(found, [(&"aa".into(), &"note".into(), &1.into()), (&"bb".into(), &"error".into(), &7.into())]);
        assert_eq!(all.summary()["summary"]["runs"], 2);
    }
}

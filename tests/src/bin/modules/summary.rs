//! The output: findings and rejections as they come, counts at the end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Compile times of interest, in milliseconds.
const SLOW_MS: f64 = 20.0;

/// Slowest kernels that are listed.
const SLOWEST: usize = 10;

/// Counts of all entry points.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    json: bool,
    files: BTreeSet<String>,
    modules: BTreeSet<String>,
    entry_points: BTreeSet<(String, String)>,
    kernels: u64,
    refused: BTreeMap<String, u64>,
    interpreted: u64,
    findings: u64,
    /// Kernels whose seeds all agreed (of those that ended), some except for races, and those of which no seed ended.
    agreed: u64,
    raced: u64,
    /// Kernels whose runs have further differences where invocations race.
    raced_apart: u64,
    stopped: u64,
    silent: u64,
    times: Vec<(f64, String)>,
}

impl Summary {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, ..Self::default() }
    }

    /// Handles one line of a child.
    pub(crate) fn line(&mut self, line: &Value) {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let (file, entry) = (text("file"), text("entry"));
        let name = format!("{file} {entry}");
        self.files.insert(file.clone());
        if line["module"].is_string() {
            self.modules.insert(text("module"));
        }
        self.entry_points.insert((file, entry));
        if self.json {
            println!("{line}");
        }
        if let Some(reason) = line["refused"].as_str() {
            // Without the position, so that equal reasons are counted together.
            let kind = reason.split(" (SPIR-V word").next().unwrap_or(reason).lines().next().unwrap_or_default();
            *self.refused.entry(kind.to_owned()).or_default() += 1;
            self.say(&format!("refused: {name}: {reason}"));
            return;
        }
        self.kernels += 1;
        let count = |key: &str| line[key].as_u64().unwrap_or(0);
        if let Some(reason) = line["interpreted"].as_str() {
            self.interpreted += 1;
            self.say(&format!("interpreted only: {name}: {reason}"));
        }
        let findings = line["findings"].as_array().cloned().unwrap_or_default();
        for finding in &findings {
            let (what, detail) = (&finding["what"], &finding["detail"]);
            let (what, detail) = (what.as_str().unwrap_or_default(), detail.as_str().unwrap_or_default());
            self.say(&format!("FOUND: {name} {}: {what}: {detail}", line["workgroup"]));
        }
        self.findings += u64::from(!findings.is_empty());
        match (findings.is_empty(), count("agreed"), count("raced")) {
            (false, ..) => {}
            (true, 0, 0) => self.stopped += u64::from(count("stopped") > 0),
            (true, _, 0) => self.agreed += 1,
            (true, ..) => self.raced += 1,
        }
        self.raced_apart += u64::from(count("raced_apart") > 0);
        self.silent += u64::from(line["wrote"] == false);
        self.times.push((line["compile_ms"].as_f64().unwrap_or(0.0), name));
    }

    fn say(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.findings == 0
    }

    pub(crate) fn print(&mut self) {
        self.times.sort_by(|a, b| b.0.total_cmp(&a.0));
        let slow = self.times.iter().filter(|time| time.0 > SLOW_MS).count();
        let slowest: Vec<_> = self.times.iter().take(SLOWEST).collect();
        let refused: u64 = self.refused.values().sum();
        if self.json {
            let line = json!({
                "files": self.files.len(), "modules": self.modules.len(), "entry_points": self.entry_points.len(),
                "kernels": self.kernels, "refused": refused, "reasons": self.refused, "interpreted": self.interpreted,
                "findings": self.findings, "agreed": self.agreed, "raced": self.raced,
                "raced_apart": self.raced_apart, "stopped": self.stopped,
                "silent": self.silent, "slow": slow, "slowest": slowest,
            });
            println!("{line}");
            return;
        }
        println!(
            "{} files, {} different modules, {} entry points, {} kernels",
            self.files.len(),
            self.modules.len(),
            self.entry_points.len(),
            self.kernels
        );
        println!("refused: {refused}");
        for (reason, count) in &self.refused {
            println!("  {count} {reason}");
        }
        println!("without machine code: {}", self.interpreted);
        println!("engines disagree: {}", self.findings);
        println!("engines agree: {}, and {} where invocations do not race", self.agreed, self.raced);
        println!("other differences where they do: {}", self.raced_apart);
        println!("took too long: {}", self.stopped);
        println!("wrote nothing: {}", self.silent);
        println!("compile above {SLOW_MS} ms: {slow}");
        for (ms, name) in slowest {
            println!("  {ms:.1} ms {name}");
        }
    }
}

//! The combined output of the children: findings to files, counts to a table.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use spelter_tests::fuzz::{Coverage, Feature};

use crate::args::Args;

pub(crate) struct Report<'a> {
    args: &'a Args,
    start: Instant,
    bar: ProgressBar,
    /// By job: the counts of its earlier processes, and of the present one.
    counted: Vec<[Coverage; 2]>,
    findings: u64,
    again: u64,
    /// Programs of an earlier run.
    earlier: u64,
}

impl<'a> Report<'a> {
    pub(crate) fn new(args: &'a Args, jobs: usize) -> Self {
        let bar = args.limit().map_or_else(ProgressBar::no_length, |limit| ProgressBar::new(limit.as_secs()));
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {msg}") {
            bar.set_style(style);
        }
        let counted = (0..jobs).map(|_| [Coverage::default(), Coverage::default()]).collect();
        Self { args, start: Instant::now(), bar, counted, findings: 0, again: 0, earlier: 0 }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.findings == 0
    }

    /// A line of a child.
    pub(crate) fn line(&mut self, job: usize, line: &Value) {
        if let Some(what) = line["finding"].as_str() {
            let number = line["program"].as_u64().unwrap_or(0);
            let text = |name: &str| line[name].as_str().unwrap_or_default();
            self.finding(what, text("detail"), number, text("text"));
        } else if line["again"].is_string() {
            self.again += 1;
        } else if line["programs"].is_u64() {
            self.counted[job][1] = coverage(line);
        }
        let programs = self.coverage().programs;
        let rate = programs as f64 / self.start.elapsed().as_secs_f64();
        let elapsed = self.start.elapsed();
        self.bar.set_position(self.args.limit().map_or(elapsed, |limit| elapsed.min(limit)).as_secs());
        self.bar.set_message(format!("{programs} programs, {rate:.0}/s, {} findings", self.findings));
    }

    /// Adds a block that an earlier run did: its findings are in files. `None` if it is not a result of a block.
    pub(crate) fn earlier(&mut self, result: &Value) -> Option<()> {
        self.earlier += result["programs"].as_u64()?;
        for finding in result["findings"].as_array()? {
            let (what, number) = (finding["what"].as_str()?, finding["program"].as_u64()?);
            self.findings += 1;
            if self.args.json {
                println!("{}", json!({ "finding": what, "program": number, "earlier": true }));
            } else {
                self.bar.suspend(|| println!("{what}\n  program {number}, of an earlier run"));
            }
        }
        Some(())
    }

    /// Called when a child has ended: its counts are kept.
    pub(crate) fn next_life(&mut self, job: usize) {
        let present = std::mem::take(&mut self.counted[job][1]);
        self.counted[job][0].merge(&present);
    }

    /// Keeps a finding.
    pub(crate) fn finding(&mut self, what: &str, detail: &str, number: u64, text: &str) {
        self.findings += 1;
        let slug: String = what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
        let path = self.args.out.join(format!("{slug}-{}-{number}.ir", self.args.seed));
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("{}: {error}", path.display());
        }
        if self.args.json {
            let file = path.display().to_string();
            println!("{}", json!({ "finding": what, "detail": detail, "program": number, "file": file }));
        } else {
            self.bar.suspend(|| println!("{what}: {detail}\n  program {number}: {}", path.display()));
        }
    }

    fn coverage(&self) -> Coverage {
        let mut all = Coverage::default();
        self.counted.iter().flatten().for_each(|counted| all.merge(counted));
        all
    }

    pub(crate) fn print(&self) {
        self.bar.finish_and_clear();
        let coverage = self.coverage();
        let seconds = self.start.elapsed().as_secs_f64();
        let rate = coverage.programs as f64 / seconds;
        if self.args.json {
            let features: serde_json::Map<String, Value> = Feature::ALL
                .iter()
                .map(|&feature| {
                    let (contained, reached) = coverage.percent(feature);
                    let reached = if feature.is_at_a_place() { json!(reached) } else { Value::Null };
                    (feature.name().to_owned(), json!({ "contained_percent": contained, "reached_percent": reached }))
                })
                .collect();
            println!(
                "{}",
                json!({
                    "programs": coverage.programs + self.earlier, "seconds": seconds, "rate": rate, "findings": self.findings,
                    "more_of_the_same": self.again, "seed": self.args.seed,
                    "shard": self.args.array.shard.to_string(), "features": features,
                })
            );
            return;
        }
        println!("{:<48} {:>8} {:>8}", "feature", "has it", "comes to it");
        for &feature in Feature::ALL {
            let (contained, reached) = coverage.percent(feature);
            let reached = if feature.is_at_a_place() { format!("{reached:.0} %") } else { "-".into() };
            println!("{:<48} {contained:>6.1} % {reached:>8}", feature.name());
        }
        println!(
            "{} programs in {seconds:.0} s, {rate:.0} per second: {} findings, {} more of the same",
            coverage.programs + self.earlier,
            self.findings,
            self.again
        );
    }
}

fn coverage(line: &Value) -> Coverage {
    let list = |name: &str| -> Vec<u64> {
        let counts = line[name].as_array().map(Vec::as_slice).unwrap_or_default();
        (0..Feature::ALL.len()).map(|at| counts.get(at).and_then(Value::as_u64).unwrap_or(0)).collect()
    };
    Coverage {
        programs: line["programs"].as_u64().unwrap_or(0),
        looked_at: line["looked_at"].as_u64().unwrap_or(0),
        contained: list("contained"),
        marked: list("marked"),
        reached: list("reached"),
    }
}

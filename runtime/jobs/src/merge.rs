//! Puts the results of shards together.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{Error, JobArray, Shard, from_job_line, job_line};

/// The results of a job array from several files.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    array: JobArray,
    results: BTreeMap<u64, Value>,
}

impl Merged {
    /// Reads the files, each with its name. A file may lack its last jobs, and the end of its last line; files may have
    /// jobs in common, with equal results. An error names the file and line that does not belong to the job array of
    /// the first file, or that contradicts another one.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Error> {
        let mut merged: Option<Self> = None;
        for (name, text) in files {
            let wrong = |problem: String| Error(format!("{name}: {problem}"));
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            let mut lines = whole.lines();
            let Some((array, _)) = lines.next().and_then(JobArray::from_header) else {
                return Err(wrong("not a file of results: it does not begin with a job array".to_owned()));
            };
            let merged = merged.get_or_insert_with(|| Self { array: array.clone(), results: BTreeMap::new() });
            if array != merged.array {
                let [is, wanted] = [&array, &merged.array].map(|array| array.header(Shard::ALL));
                return Err(wrong(format!("it has results of another job array, {is}, not of {wanted}")));
            }
            for (at, line) in lines.enumerate() {
                let Some((job, result)) = from_job_line(line).filter(|(job, _)| *job < array.jobs) else {
                    return Err(wrong(format!("line {}: not a result of one of its jobs", at + 2)));
                };
                match merged.results.get(&job) {
                    Some(known) if *known != result => {
                        let problem = format!("line {}: job {job} has another result in an earlier file", at + 2);
                        return Err(wrong(format!("{problem}: a job must not depend on where it runs")));
                    }
                    _ => _ = merged.results.insert(job, result),
                }
            }
        }
        merged.ok_or_else(|| Error("there are no files".to_owned()))
    }

    /// The job array.
    pub fn array(&self) -> &JobArray {
        &self.array
    }

    /// The results, in the order of their jobs.
    pub fn results(&self) -> impl Iterator<Item = (u64, &Value)> {
        self.results.iter().map(|(job, result)| (*job, result))
    }

    /// The number of jobs that have a result.
    pub fn done(&self) -> u64 {
        self.results.len() as u64
    }

    /// The ranges of jobs without a result: first and last, in ascending order.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let mut next = 0;
        for &job in self.results.keys().chain([&self.array.jobs]) {
            if job > next {
                ranges.push((next, job - 1));
            }
            next = job + 1;
        }
        ranges
    }

    /// Sums of the numbers in the results, by name; of lists, their lengths; how many have each verdict, and an error.
    pub fn totals(&self) -> Map<String, Value> {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, value) in self.results.values().filter_map(Value::as_object).flatten() {
            let (name, count) = match value {
                Value::String(verdict) if name == "verdict" => (verdict, 1),
                Value::String(_) if name == "error" => (name, 1),
                Value::Array(list) => (name, list.len() as u64),
                value => match value.as_u64() {
                    Some(count) => (name, count),
                    None => continue,
                },
            };
            let total = totals.entry(name).or_default();
            *total = total.saturating_add(count);
        }
        totals.into_iter().map(|(name, total)| (name.to_owned(), total.into())).collect()
    }

    /// The text of one file with all results, in the order of the jobs: that of a run without shards.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.array.header(Shard::ALL));
        self.results.iter().for_each(|(job, result)| _ = writeln!(text, "{}", job_line(*job, result)));
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(shard: &str, jobs: &[u64]) -> String {
        let array = JobArray { name: "squares".into(), settings: json!({}), jobs: 6 };
        let mut text = format!("{}\n", array.header(shard.parse().unwrap()));
        jobs.iter()
            .for_each(|job| _ = writeln!(text, "{}", job_line(*job, &json!({ "square": job * job, "odd": [] }))));
        text
    }

    #[test]
    fn shards_together_are_the_whole() {
        let whole = text("1/1", &[0, 1, 2, 3, 4, 5]);
        let merged = Merged::read([("b", &*text("2/2", &[1, 3, 5])), ("a", &*text("1/2", &[0, 2, 4]))]).unwrap();
        assert_eq!((merged.text(), merged.missing()), (whole, vec![]));
        assert_eq!(Value::from(merged.totals()), json!({ "square": 55, "odd": 0 }));
    }

    #[test]
    fn verdicts_and_errors_are_counted() {
        let header = text("1/1", &[]);
        let line = |job: u64, result| format!("{}\n", job_line(job, &result));
        let text = header
            + &line(0, json!({ "verdict": "pass" }))
            + &line(1, json!({ "verdict": "fail", "reason": "2" }))
            + &line(2, json!({ "error": "not a text" }));
        let totals = Value::from(Merged::read([("a", &*text)]).unwrap().totals());
        assert_eq!(totals, json!({ "pass": 1, "fail": 1, "error": 1 }));
    }

    #[test]
    fn what_is_missing_is_named() {
        // The last line of one was being written.
        let torn = format!("{}{{\"job\":4", text("1/2", &[0, 2]));
        let merged = Merged::read([("a", &*torn), ("b", &*text("2/2", &[3]))]).unwrap();
        assert_eq!((merged.done(), merged.missing()), (3, vec![(1, 1), (4, 5)]));
        let empty = text("1/1", &[]);
        assert_eq!(Merged::read([("a", &*empty)]).unwrap().missing(), [(0, 5)]);
    }

    #[test]
    fn contradictions_are_errors() {
        let (a, b) = (text("1/1", &[0, 1]), text("1/1", &[1]));
        assert!(Merged::read([("a", &*a), ("b", &*b)]).is_ok(), "jobs may be in both");
        let error = |b: &str| Merged::read([("a", &*a), ("b", b)]).unwrap_err().to_string();
        let other = b.replace("\"square\":1", "\"square\":2");
        assert!(error(&other).starts_with("b: line 2: job 1 has another result"), "{}", error(&other));
        assert!(error(&b.replace("squares", "cubes")).starts_with("b: it has results of another job array"));
        assert!(error("").starts_with("b: not a file of results"));
    }
}

//! Puts the results of shards together.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

use super::{Error, Header, JobArray, Line, Shard, build_name};

/// The results of a job array from several files.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    array: JobArray,
    /// The build of all results; `None` if it is not known, or if they are of several.
    build: Option<String>,
    /// Those of the files.
    shards: Vec<Shard>,
    /// With what files say of failures.
    results: BTreeMap<u64, (Value, Option<bool>)>,
}

impl Merged {
    /// Reads the files, each with its name. A file may lack its last jobs, and the end of its last line; files may have
    /// jobs in common, with equal results. An error names the file and line that does not belong to the job array of
    /// the first file, or that contradicts another one; so are results of another build, unless that is wanted
    /// (`any_build`).
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>, any_build: bool) -> Result<Self, Error> {
        let mut merged: Option<Self> = None;
        for (name, text) in files {
            let wrong = |problem: String| Error(format!("{name}: {problem}"));
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            let mut lines = whole.lines();
            let Some(Header { array, build, shard }) = lines.next().and_then(Header::parse) else {
                return Err(wrong("not a file of results: it does not begin with a job array".to_owned()));
            };
            let merged = merged.get_or_insert_with(|| Self {
                array: array.clone(),
                build: build.clone(),
                shards: Vec::new(),
                results: BTreeMap::new(),
            });
            if array != merged.array {
                let [is, wanted] = [&array, &merged.array].map(JobArray::json);
                return Err(wrong(format!("it has results of another job array, {is}, not of {wanted}")));
            }
            merged.add_build(build, any_build).map_err(wrong)?;
            merged.shards.push(shard);
            for (at, line) in lines.enumerate() {
                let (job, result) = match Line::parse(line) {
                    Some(Line::Job(job, result, failed)) if job < array.jobs => (job, (result, failed)),
                    Some(Line::Build(build)) => {
                        merged.add_build(Some(build), any_build).map_err(wrong)?;
                        continue;
                    }
                    _ => return Err(wrong(format!("line {}: not a result of one of its jobs", at + 2))),
                };
                match merged.results.get(&job) {
                    Some(known) if differs(known, &result) => {
                        let problem = format!("line {}: job {job} has another result in an earlier file", at + 2);
                        return Err(wrong(format!("{problem}: a job must not depend on where it runs")));
                    }
                    _ => _ = merged.results.insert(job, result),
                }
            }
        }
        merged.ok_or_else(|| Error("there are no files".to_owned()))
    }

    /// What is wrong if results of a build are added.
    fn add_build(&mut self, build: Option<String>, any_build: bool) -> Result<(), String> {
        if any_build {
            self.build = self.build.take().filter(|known| build.as_ref() == Some(known));
        } else if build != self.build {
            let [is, wanted] = [&build, &self.build].map(|build| build_name(build.as_deref()));
            return Err(format!("it has results of another build, {is}, not of {wanted}: --any-build adds them"));
        }
        Ok(())
    }

    /// The build of all results; `None` if it is not known, or if they are of several.
    pub fn build(&self) -> Option<&str> {
        self.build.as_deref()
    }

    /// The job array.
    pub fn array(&self) -> &JobArray {
        &self.array
    }

    /// The results, in the order of their jobs.
    pub fn results(&self) -> impl Iterator<Item = (u64, &Value)> {
        self.results.iter().map(|(job, (result, _))| (*job, result))
    }

    /// The number of jobs that failed.
    pub fn failed(&self) -> u64 {
        self.results.values().filter(|(_, failed)| *failed == Some(true)).count() as u64
    }

    /// The shards that lack jobs, each with their number and whether it has a file. None if the files are not all of
    /// the same number of shards, or of the whole.
    pub fn missing_shards(&self) -> Vec<(Shard, u64, bool)> {
        let Some((_, of)) = self.shards.first().map(|shard| shard.numbers()).filter(|(_, of)| *of > 1) else {
            return Vec::new();
        };
        if self.shards.iter().any(|shard| shard.numbers().1 != of) {
            return Vec::new();
        }
        let mut done: BTreeMap<u64, u64> = BTreeMap::new();
        self.results.keys().for_each(|job| *done.entry(job % of).or_default() += 1);
        let with_file: BTreeSet<u64> = self.shards.iter().map(|shard| shard.numbers().0).collect();
        let lacking = (0..of.min(self.array.jobs)).map(|index| {
            let jobs = (self.array.jobs - index).div_ceil(of);
            let lacks = jobs - done.get(&index).copied().unwrap_or(0);
            (Shard::part(index, of), lacks, with_file.contains(&index))
        });
        lacking.filter(|(_, lacks, _)| *lacks > 0).collect()
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
        for (name, value) in self.results.values().filter_map(|(result, _)| result.as_object()).flatten() {
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
        let mut text = Header { array: self.array.clone(), shard: Shard::ALL, build: self.build.clone() }.line();
        let line = |(job, (result, failed)): (&u64, &(Value, _))| Line::Job(*job, result.clone(), *failed).text();
        self.results.iter().for_each(|result| text += &line(result));
        text
    }
}

/// Whether two lines about a job say different things. Those of earlier versions do not say whether it failed.
fn differs((result, failed): &(Value, Option<bool>), (other, other_failed): &(Value, Option<bool>)) -> bool {
    result != other || failed.is_some() && other_failed.is_some() && failed != other_failed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(shard: &str, jobs: &[u64]) -> String {
        let array = JobArray { name: "squares".into(), settings: json!({}), jobs: 6 };
        let mut text = Header { array, shard: shard.parse().unwrap(), build: Some("1.0 a".into()) }.line();
        let line = |job: u64| Line::Job(job, json!({ "square": job * job, "odd": [] }), Some(job == 4)).text();
        jobs.iter().for_each(|job| text += &line(*job));
        text
    }

    fn read<const N: usize>(files: [(&str, &str); N]) -> Result<Merged, Error> {
        Merged::read(files, false)
    }

    #[test]
    fn results_of_two_builds_are_put_together_only_if_that_is_wanted() {
        let (a, b) = (text("1/2", &[0, 2]), text("2/2", &[1]));
        let other = b.replace("1.0 a", "1.0 b");
        // Continued by another build.
        let both = b.clone()
            + &Line::Build("1.0 b".into()).text()
            + &Line::Job(3, json!({ "square": 9, "odd": [] }), None).text();
        for (b, done) in [(&other, 3), (&b.replace("\"1.0 a\"", "null"), 3), (&both, 4)] {
            let error = read([("a", &*a), ("b", b)]).unwrap_err().to_string();
            assert!(error.starts_with("b: it has results of another build, "), "{error}");
            let merged = Merged::read([("a", &*a), ("b", b)], true).unwrap();
            assert_eq!((merged.done(), merged.build()), (done, None));
            // What is put together does not pass as one build.
            assert!(read([("a", &*a), ("all", &merged.text())]).is_err());
        }
        assert_eq!(read([("a", &*a), ("b", &*b)]).unwrap().build(), Some("1.0 a"));
    }

    #[test]
    fn shards_together_are_the_whole() {
        let whole = text("1/1", &[0, 1, 2, 3, 4, 5]);
        let merged = read([("b", &*text("2/2", &[1, 3, 5])), ("a", &*text("1/2", &[0, 2, 4]))]).unwrap();
        assert_eq!((merged.text(), merged.missing()), (whole, vec![]));
        assert_eq!(Value::from(merged.totals()), json!({ "square": 55, "odd": 0 }));
    }

    #[test]
    fn verdicts_and_errors_are_counted() {
        let header = text("1/1", &[]);
        let line = |job: u64, result| Line::Job(job, result, None).text();
        let text = header
            + &line(0, json!({ "verdict": "pass" }))
            + &line(1, json!({ "verdict": "fail", "reason": "2" }))
            + &line(2, json!({ "error": "not a text" }));
        let totals = Value::from(read([("a", &*text)]).unwrap().totals());
        assert_eq!(totals, json!({ "pass": 1, "fail": 1, "error": 1 }));
    }

    #[test]
    fn what_is_missing_is_named() {
        // The last line of one was being written.
        let torn = format!("{}{{\"job\":4", text("1/2", &[0, 2]));
        let merged = read([("a", &*torn), ("b", &*text("2/2", &[3]))]).unwrap();
        assert_eq!((merged.done(), merged.missing()), (3, vec![(1, 1), (4, 5)]));
        let empty = text("1/1", &[]);
        assert_eq!(read([("a", &*empty)]).unwrap().missing(), [(0, 5)]);
    }

    #[test]
    fn shards_without_a_file_are_named() {
        let (first, second) = (text("1/3", &[0]), text("2/3", &[1, 4]));
        let lacking = |files: &[&str]| {
            let merged = Merged::read(files.iter().map(|text| ("a", *text)), false).unwrap();
            let shards = merged.missing_shards();
            shards.iter().map(|(shard, lacks, has)| (shard.to_string(), *lacks, *has)).collect::<Vec<_>>()
        };
        assert_eq!(lacking(&[&first, &second]), [("1/3".into(), 1, true), ("3/3".into(), 2, false)]);
        assert_eq!(lacking(&[&first, &second, &text("3/3", &[2, 5]), &text("1/3", &[3])]), []);
        // A shard of no job needs no file; which of several numbers of shards lacks a job is not said.
        assert_eq!(lacking(&[&text("2/9", &[1])]).len(), 5);
        assert_eq!(lacking(&[&first, &text("1/2", &[2])]), []);
        assert_eq!(lacking(&[&text("1/1", &[2])]), []);
    }

    #[test]
    fn failures_are_counted_and_kept() {
        let (first, second) = (text("1/2", &[0, 2, 4]), text("2/2", &[1, 3]));
        let merged = read([("a", &*first), ("b", &*second)]).unwrap();
        assert_eq!(merged.failed(), 1);
        assert_eq!(read([("all", &*merged.text())]).unwrap().failed(), 1);
        let other = first.replace("\"failed\":true", "\"failed\":false");
        assert!(read([("a", &*first), ("b", &*other)]).is_err(), "it does not depend on where a job runs");
    }

    #[test]
    fn contradictions_are_errors() {
        let (a, b) = (text("1/1", &[0, 1]), text("1/1", &[1]));
        assert!(read([("a", &*a), ("b", &*b)]).is_ok(), "jobs may be in both");
        let error = |b: &str| read([("a", &*a), ("b", b)]).unwrap_err().to_string();
        let other = b.replace("\"square\":1", "\"square\":2");
        assert!(error(&other).starts_with("b: line 2: job 1 has another result"), "{}", error(&other));
        assert!(error(&b.replace("squares", "cubes")).starts_with("b: it has results of another job array"));
        assert!(error("").starts_with("b: not a file of results"));
    }
}

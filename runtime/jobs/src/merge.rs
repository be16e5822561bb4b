//! Puts the results of shards together. Files of results may be larger than the memory: of each line only its place is
//! kept, and what sums need.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io::{self, BufRead, Read as _, Seek, SeekFrom, Write};

use serde_json::{Map, Value};

use super::findings::{Findings, SharedFinding};
use super::{Error, Header, JobArray, Line, Shard, build_name, hash_of};

/// The longest line of a file of results, in bytes.
const MAX_LINE: u64 = 1 << 30;

/// A file of results.
pub trait Source: BufRead + Seek + Debug {}

impl<T: BufRead + Seek + Debug> Source for T {}

/// The results of a job array from several files.
#[derive(Debug)]
pub struct Merged {
    array: JobArray,
    /// The build of all results; `None` if it is not known, or if they are of several.
    build: Option<String>,
    files: Vec<Input>,
    results: BTreeMap<u64, Place>,
    totals: BTreeMap<String, u64>,
    findings: Findings,
}

/// A file that was read.
#[derive(Debug)]
struct Input {
    source: Box<dyn Source>,
    shard: Shard,
    /// The place of the next byte.
    at: u64,
}

/// Where the line of a job is.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: usize,
    at: u64,
    /// A hash of the result.
    hash: u64,
    /// Files of earlier versions do not say whether it failed.
    failed: Option<bool>,
}

/// The parts that files are of.
#[derive(Debug)]
struct Shards {
    /// Their number.
    of: u64,
    /// Those that have a file.
    with_file: BTreeSet<u64>,
    /// The number of results of each one that has some.
    done: BTreeMap<u64, u64>,
}

impl Input {
    /// The next whole line and its place; `None` at the end, and before a line that was not finished.
    fn line(&mut self) -> io::Result<Option<(u64, String)>> {
        let (at, mut line) = (self.at, Vec::new());
        self.at += self.source.as_mut().take(MAX_LINE).read_until(b'\n', &mut line)? as u64;
        if line.len() as u64 == MAX_LINE {
            return Err(io::Error::other(format!("a line of more than {MAX_LINE} bytes")));
        }
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        let line = String::from_utf8(line).map_err(|_| io::Error::other("not a text"))?;
        Ok(Some((at, line)))
    }

    /// The line at a place.
    fn line_at(&mut self, at: u64) -> io::Result<String> {
        // In the usual order a line is the next one, which a buffer has.
        if self.at != at {
            self.at = self.source.seek(SeekFrom::Start(at))?;
        }
        let line = self.line()?;
        line.map(|(_, line)| line).ok_or_else(|| io::Error::other("a file of results has become shorter"))
    }
}

impl Merged {
    /// Reads the files, each with its name. A file may lack its last jobs, and the end of its last line; files may have
    /// jobs in common, with equal results. An error names the file and line that does not belong to the job array of
    /// the first file, or that contradicts another one; so are results of another build, unless that is wanted
    /// (`any_build`).
    pub fn read(files: impl IntoIterator<Item = (String, Box<dyn Source>)>, any_build: bool) -> Result<Self, Error> {
        let mut merged: Option<Self> = None;
        for (name, source) in files {
            let wrong = |problem: String| Error(format!("{name}: {problem}"));
            let unread = |error: io::Error| wrong(error.to_string());
            let mut input = Input { source, shard: Shard::ALL, at: 0 };
            let first = input.line().map_err(unread)?;
            let Some(Header { array, build, shard }) = first.and_then(|(_, line)| Header::parse(&line)) else {
                return Err(wrong("not a file of results: it does not begin with a job array".to_owned()));
            };
            input.shard = shard;
            let merged = merged.get_or_insert_with(|| Self {
                array: array.clone(),
                build: build.clone(),
                files: Vec::new(),
                results: BTreeMap::new(),
                totals: BTreeMap::new(),
                findings: Findings::default(),
            });
            if array != merged.array {
                return Err(wrong(array.is_not(&merged.array)));
            }
            merged.add_build(build, any_build).map_err(wrong)?;
            let mut number = 1;
            while let Some((at, line)) = input.line().map_err(unread)? {
                number += 1;
                match Line::parse(&line) {
                    Some(Line::Job(job, result, failed)) if job < array.jobs => {
                        let place = Place {
                            file: merged.files.len(),
                            at,
                            hash: hash_of(result.to_string().as_bytes()),
                            failed,
                        };
                        merged
                            .add(job, &result, place)
                            .map_err(|problem| wrong(format!("line {number}: {problem}")))?;
                    }
                    Some(Line::Build(build)) => merged.add_build(Some(build), any_build).map_err(wrong)?,
                    _ => return Err(wrong(format!("line {number}: not a result of one of its jobs"))),
                }
            }
            merged.files.push(input);
        }
        merged.ok_or_else(|| Error("there are no files".to_owned()))
    }

    /// What is wrong if the result of a job is added.
    fn add(&mut self, job: u64, result: &Value, place: Place) -> Result<(), String> {
        let Some(known) = self.results.get(&job) else {
            self.results.insert(job, place);
            self.add_totals(result);
            self.findings.add(job, result);
            return Ok(());
        };
        let says_other = known.failed.is_some() && place.failed.is_some() && known.failed != place.failed;
        if known.hash != place.hash || says_other {
            let problem = format!("job {job} has another result in an earlier file");
            return Err(format!("{problem}: a job must not depend on where it runs"));
        }
        Ok(())
    }

    fn add_totals(&mut self, result: &Value) {
        for (name, value) in result.as_object().into_iter().flatten() {
            let (name, count) = match value {
                Value::String(verdict) if name == "verdict" => (verdict, 1),
                Value::String(_) if name == "error" => (name, 1),
                Value::Array(list) => (name, list.len() as u64),
                value => match value.as_u64() {
                    Some(count) => (name, count),
                    None => continue,
                },
            };
            let total = self.totals.entry(name.clone()).or_default();
            *total = total.saturating_add(count);
        }
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

    /// The number of jobs that failed.
    pub fn failed(&self) -> u64 {
        self.results.values().filter(|place| place.failed == Some(true)).count() as u64
    }

    /// The shards that lack jobs, each with their number and whether it has a file: the first `limit`. Empty if the
    /// files are not all of the same number of shards, or of the whole.
    pub fn missing_shards(&self, limit: usize) -> Vec<(Shard, u64, bool)> {
        let Some(shards) = self.shards() else { return Vec::new() };
        let lacking = (0..shards.of.min(self.array.jobs)).map(|index| {
            (Shard::part(index, shards.of), self.lacks(&shards, index), shards.with_file.contains(&index))
        });
        lacking.filter(|(_, lacks, _)| *lacks > 0).take(limit).collect()
    }

    /// How many shards lack jobs and have no file. [`Self::missing_shards`] lists the first ones; this lists none, so
    /// that their number may be any.
    pub fn count_shards_without_file(&self) -> u64 {
        let Some(shards) = self.shards() else { return 0 };
        // Each shard up to this one has a job.
        let all = shards.of.min(self.array.jobs);
        let with_file = shards.with_file.iter().filter(|index| **index < all).count() as u64;
        let is_done = |index: &&u64| !shards.with_file.contains(*index) && self.lacks(&shards, **index) == 0;
        all - with_file - shards.done.keys().filter(is_done).count() as u64
    }

    /// The shards, if the files are all of the same number of them.
    fn shards(&self) -> Option<Shards> {
        let (_, of) = self.files.first().map(|file| file.shard.numbers()).filter(|(_, of)| *of > 1)?;
        if self.files.iter().any(|file| file.shard.numbers().1 != of) {
            return None;
        }
        let mut done: BTreeMap<u64, u64> = BTreeMap::new();
        self.results.keys().for_each(|job| *done.entry(job % of).or_default() += 1);
        Some(Shards { of, with_file: self.files.iter().map(|file| file.shard.numbers().0).collect(), done })
    }

    /// The number of jobs that a shard lacks.
    fn lacks(&self, shards: &Shards, index: u64) -> u64 {
        Shard::part(index, shards.of).count(self.array.jobs) - shards.done.get(&index).copied().unwrap_or(0)
    }

    /// The number of jobs that have a result.
    pub fn done(&self) -> u64 {
        self.results.len() as u64
    }

    /// The ranges of jobs that failed: first and last, in ascending order.
    pub fn failed_jobs(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let failed = self.results.iter().filter(|(_, place)| place.failed == Some(true));
        for (&job, _) in failed {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == job => *last = job,
                _ => ranges.push((job, job)),
            }
        }
        ranges
    }

    /// What jobs found: the severest first.
    pub fn findings(&self) -> Vec<&SharedFinding> {
        self.findings.sorted()
    }

    /// The ranges of jobs without a result: first and last, in ascending order.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let mut next = 0;
        for &job in self.results.keys().chain([&self.array.jobs]) {
            if job > next {
                ranges.push((next, job - 1));
            }
            // A damaged header may have any number.
            next = job.saturating_add(1);
        }
        ranges
    }

    /// Sums of the numbers in the results, by name; of lists, their lengths; how many have each verdict, and an error.
    pub fn totals(&self) -> Map<String, Value> {
        self.totals.iter().map(|(name, total)| (name.clone(), (*total).into())).collect()
    }

    /// Writes one file with all results, in the order of the jobs: that of a run without shards.
    pub fn write(&mut self, to: &mut impl Write) -> io::Result<()> {
        let header = Header { array: self.array.clone(), shard: Shard::ALL, build: self.build.clone() };
        to.write_all(header.line().as_bytes())?;
        for place in self.results.values() {
            let line = self.files[place.file].line_at(place.at)?;
            writeln!(to, "{line}")?;
        }
        Ok(())
    }
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

    fn read_any<const N: usize>(files: [(&str, &str); N], any_build: bool) -> Result<Merged, Error> {
        let source = |text: &str| Box::new(io::Cursor::new(text.as_bytes().to_vec())) as Box<dyn Source>;
        Merged::read(files.map(|(name, text)| (name.to_owned(), source(text))), any_build)
    }

    fn read<const N: usize>(files: [(&str, &str); N]) -> Result<Merged, Error> {
        read_any(files, false)
    }

    fn written(merged: &mut Merged) -> String {
        let mut bytes = Vec::new();
        merged.write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
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
            let mut merged = read_any([("a", &*a), ("b", b)], true).unwrap();
            assert_eq!((merged.done(), merged.build()), (done, None));
            // What is put together does not pass as one build.
            assert!(read([("a", &*a), ("all", &written(&mut merged))]).is_err());
        }
        assert_eq!(read([("a", &*a), ("b", &*b)]).unwrap().build(), Some("1.0 a"));
    }

    #[test]
    fn shards_together_are_the_whole() {
        let whole = text("1/1", &[0, 1, 2, 3, 4, 5]);
        let mut merged = read([("b", &*text("2/2", &[1, 3, 5])), ("a", &*text("1/2", &[0, 2, 4]))]).unwrap();
        assert_eq!((written(&mut merged), merged.missing()), (whole, vec![]));
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
            let source = |text: &&str| Box::new(io::Cursor::new(text.as_bytes().to_vec())) as Box<dyn Source>;
            let merged = Merged::read(files.iter().map(|text| ("a".to_owned(), source(text))), false).unwrap();
            let shards = merged.missing_shards(9);
            let without_file = shards.iter().filter(|(.., has_file)| !has_file).count() as u64;
            assert_eq!(merged.count_shards_without_file(), without_file);
            shards.iter().map(|(shard, lacks, has)| (shard.to_string(), *lacks, *has)).collect::<Vec<_>>()
        };
        assert_eq!(lacking(&[&first, &second]), [("1/3".into(), 1, true), ("3/3".into(), 2, false)]);
        assert_eq!(lacking(&[&first, &second, &text("3/3", &[2, 5]), &text("1/3", &[3])]), []);
        // A shard of no job needs no file; which of several numbers of shards lacks a job is not said.
        assert_eq!(lacking(&[&text("2/9", &[1])]).len(), 5);
        assert_eq!(lacking(&[&first, &text("1/2", &[2])]), []);
        assert_eq!(lacking(&[&text("1/1", &[2])]), []);
        // Nor a file of its own, if the jobs are in that of another one.
        assert_eq!(lacking(&[&text("1/3", &[0, 3, 2, 5])]), [("2/3".into(), 2, false)]);
    }

    #[test]
    fn damaged_and_huge_numbers_are_only_counted() {
        let huge = text("1/1", &[0]).replace("\"jobs\":6", &format!("\"jobs\":{}", u64::MAX));
        let merged = read([("a", &*huge)]).unwrap();
        assert_eq!(merged.missing(), [(1, u64::MAX - 1)]);
        let shards = huge.replace("1/1", &format!("1/{}", u64::MAX));
        let merged = read([("a", &*shards)]).unwrap();
        assert_eq!((merged.missing_shards(3).len(), merged.count_shards_without_file()), (3, u64::MAX - 1));
    }

    #[test]
    fn failures_are_counted_and_kept() {
        let (first, second) = (text("1/2", &[0, 2, 4]), text("2/2", &[1, 3]));
        let mut merged = read([("a", &*first), ("b", &*second)]).unwrap();
        assert_eq!((merged.failed(), merged.failed_jobs()), (1, vec![(4, 4)]));
        let all = first.replace("\"failed\":false", "\"failed\":true");
        let ranges = read([("a", &*all), ("b", &*second.replace("\"failed\":false", "\"failed\":true"))]);
        assert_eq!(ranges.unwrap().failed_jobs(), [(0, 4)]);
        assert_eq!(read([("a", &*all)]).unwrap().failed_jobs(), [(0, 0), (2, 2), (4, 4)]);
        assert_eq!(read([("all", &*written(&mut merged))]).unwrap().failed(), 1);
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
        assert!(
            error(&b.replace("squares", "cubes"))
                .starts_with("b: it has results of another job array: its command is \"cubes\", not \"squares\"")
        );
        assert!(error("").starts_with("b: not a file of results"));
    }
}

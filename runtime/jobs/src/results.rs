//! The file of results of one shard: a header, and a line of JSON for each job that is done.
//!
//! A line is written at once and handed to the system before the next job starts. A process that is killed leaves at
//! most one line without an end, which the next one removes. The file is locked, so that two processes do not continue
//! the same one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Error, Header, JobArray, JobsLeft, Line, Shard, build, build_name};

/// The file of results of a shard.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: File,
    shard: Shard,
    jobs: u64,
    done: BTreeSet<u64>,
    /// Bytes of the file that an earlier process wrote.
    earlier: u64,
}

impl Results {
    /// Creates the file, or reads it to continue. An error if it cannot be written, if another process writes it, or if
    /// it belongs to another job array or shard, or to another build unless that is wanted (`any_build`).
    pub fn open(path: &Path, array: &JobArray, shard: Shard, any_build: bool) -> Result<Self, Error> {
        Self::open_of_build(path, array, shard, build::own(), any_build)
    }

    /// As [`Self::open`], for results that another program makes, whose file is `program` if it was found: another
    /// build of that is another build, too.
    pub fn open_of_program(
        path: &Path,
        array: &JobArray,
        shard: Shard,
        program: Option<&Path>,
        any_build: bool,
    ) -> Result<Self, Error> {
        Self::open_of_build(path, array, shard, &build::with_program(program), any_build)
    }

    fn open_of_build(path: &Path, array: &JobArray, shard: Shard, own: &str, any_build: bool) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error(format!("{}: {error}", path.display()));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error(format!("{}: another process writes to it", path.display())));
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        // Only what a killed process began to write is removed.
        let header = Header { array: array.clone(), shard, build: Some(own.to_owned()) }.line();
        if whole == 0 && !header.starts_with(&text) {
            return Err(Error(format!(
                "{}: not a file of results: it does not begin with a job array",
                path.display()
            )));
        }
        let (done, last_build) = match whole {
            0 => (BTreeSet::new(), None),
            _ => done_in(path, &text[..whole], (array, shard), (own, any_build))?,
        };
        // A line without an end is that of a process that was killed.
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        let mut results = Self { path: path.to_owned(), file, shard, jobs: array.jobs, done, earlier: whole as u64 };
        if whole == 0 {
            results.write(&header)?;
        } else if last_build.as_deref() != Some(own) {
            results.write(&Line::Build(own.to_owned()).text())?;
        }
        Ok(results)
    }

    /// The number of jobs of the shard that were done before, or are by now.
    pub fn done(&self) -> u64 {
        self.done.len() as u64
    }

    /// The jobs of the shard that are not done, in ascending order.
    pub fn left(&self) -> JobsLeft {
        JobsLeft::new(self.shard, self.jobs, self.done.clone())
    }

    /// The results that an earlier process wrote, in the order of their jobs, as `read` understands them: what a
    /// command reports, and its status, are those of all jobs of its file. An error if one is not a result of it.
    pub fn earlier<T>(&self, mut read: impl FnMut(&Value) -> Option<T>) -> Result<Vec<(u64, T)>, Error> {
        let failed = |error: &dyn std::fmt::Display| Error(format!("{}: {error}", self.path.display()));
        // By the same handle: the file is locked, on some systems against another one of this process, too.
        let (mut file, mut text) = (&self.file, String::new());
        file.rewind().map_err(|error| failed(&error))?;
        file.take(self.earlier).read_to_string(&mut text).map_err(|error| failed(&error))?;
        file.seek(SeekFrom::End(0)).map_err(|error| failed(&error))?;
        let mut results = BTreeMap::new();
        for line in text.lines().skip(1).filter_map(Line::parse) {
            let Line::Job(job, result, _) = line else { continue };
            if results.get(&job).is_some_and(|known| *known != result) {
                return Err(failed(&format_args!("job {job} has two results that differ")));
            }
            results.insert(job, result);
        }
        let one = |(job, result): (u64, Value)| match read(&result) {
            Some(result) => Ok((job, result)),
            None => Err(failed(&format_args!("the result of job {job} is not one of this command"))),
        };
        results.into_iter().map(one).collect()
    }

    /// Writes the result of a job. It failed if the command ends with another status than 0 because of it.
    pub fn record(&mut self, job: u64, result: &Value, failed: bool) -> Result<(), Error> {
        self.write(&Line::Job(job, result.clone(), Some(failed)).text())?;
        self.done.insert(job);
        Ok(())
    }

    fn write(&mut self, line: &str) -> Result<(), Error> {
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| Error(format!("{}: {error}", self.path.display())))
    }
}

/// The jobs in a text of whole lines, and the build of the last ones.
fn done_in(
    path: &Path,
    text: &str,
    (array, shard): (&JobArray, Shard),
    (own, any_build): (&str, bool),
) -> Result<(BTreeSet<u64>, Option<String>), Error> {
    let wrong = |problem: String| Error(format!("{}: {problem}", path.display()));
    let mut lines = text.lines();
    let header = lines.next().and_then(Header::parse);
    let header = header.ok_or_else(|| wrong("not a file of results: it does not begin with a job array".to_owned()))?;
    if header.array != *array {
        return Err(wrong(header.array.is_not(array)));
    }
    if header.shard != shard {
        return Err(wrong(format!("it is of shard {}, not of {shard}", header.shard)));
    }
    let same = |other: Option<&str>| match other {
        _ if any_build || other == Some(own) => Ok(()),
        _ => Err(wrong(format!(
            "it has results of another build, {}, not of {own}: --any-build continues it",
            build_name(other)
        ))),
    };
    same(header.build.as_deref())?;
    let (mut done, mut last) = (BTreeSet::new(), header.build);
    for (at, line) in lines.enumerate() {
        match Line::parse(line) {
            Some(Line::Job(job, ..)) if job < array.jobs && shard.has(job) => _ = done.insert(job),
            Some(Line::Job(job, ..)) => {
                return Err(wrong(format!("line {}: job {job} is not of shard {shard}", at + 2)));
            }
            Some(Line::Build(other)) => {
                same(Some(&other))?;
                last = Some(other);
            }
            None => return Err(wrong(format!("line {}: not a result of a job", at + 2))),
        }
    }
    Ok((done, last))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn array() -> JobArray {
        JobArray { name: "squares".into(), settings: json!({ "seed": 7 }), jobs: 10 }
    }

    fn header(shard: &str) -> String {
        Header { array: array(), shard: shard.parse().unwrap(), build: Some(build::own().to_owned()) }.line()
    }

    fn file(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("spelter-jobs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join(name)
    }

    #[test]
    fn an_interrupted_job_array_continues_where_it_was() {
        let (path, shard) = (file("interrupted"), "2/2".parse().unwrap());
        let mut results = Results::open(&path, &array(), shard, false).unwrap();
        assert_eq!(results.left().collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
        results.record(1, &json!({ "square": 1 }), false).unwrap();
        results.record(3, &json!({ "square": 9 }), false).unwrap();
        let another = Results::open(&path, &array(), shard, false).unwrap_err().to_string();
        assert!(another.ends_with("another process writes to it"), "{another}");
        drop(results);
        // Killed while it wrote.
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{{\"job\":5,\"resu")).unwrap();
        let results = Results::open(&path, &array(), shard, false).unwrap();
        assert_eq!((results.done(), results.left().collect()), (2, vec![5, 7, 9]));
        let mut results = results;
        results.record(5, &json!({ "square": 25 }), false).unwrap();
        // Not what this process has written.
        let squares = results.earlier(|result| result["square"].as_u64()).unwrap();
        assert_eq!(squares, [(1, 1), (3, 9)]);
        let unread = results.earlier(|result| result["cube"].as_u64()).unwrap_err().to_string();
        assert!(unread.ends_with("the result of job 1 is not one of this command"), "{unread}");
        results.record(7, &json!({ "square": 49 }), true).unwrap();
        drop(results);
        let lines =
            [5, 7].map(|job: u64| Line::Job(job, json!({ "square": job * job }), Some(job == 7)).text()).concat();
        let whole = whole + &lines;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_of_an_earlier_version_is_continued_if_that_is_wanted() {
        let (path, shard) = (file("earlier"), Shard::ALL);
        let whole = header("1/1").replace("\"command\"", "\"sweep\"") + &Line::Job(0, json!(0), None).text();
        for build in ["\"build\":\"0.0.1 a\",", ""] {
            let own = format!("\"build\":\"{}\",", build::own());
            let old = whole.replace(&own, build);
            assert_ne!(old, whole);
            std::fs::write(&path, &old).unwrap();
            let error = Results::open(&path, &array(), shard, false).unwrap_err().to_string();
            assert!(error.contains("it has results of another build, ") && error.contains("--any-build"), "{error}");
            let mut results = Results::open(&path, &array(), shard, true).unwrap();
            assert_eq!((results.done(), results.left().next()), (1, Some(1)));
            results.record(1, &json!(1), false).unwrap();
            drop(results);
            // The file says which results are of which build.
            let lines = [Line::Build(build::own().to_owned()), Line::Job(1, json!(1), Some(false))];
            let expected = old + &lines.map(|line| line.text()).concat();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
            drop(Results::open(&path, &array(), shard, true).unwrap());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
            assert!(Results::open(&path, &array(), shard, false).is_err());
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_does_not_belong_to_the_job_array_is_named() {
        let path = file("wrong");
        let open = |text: &str, shard: &str| {
            std::fs::write(&path, text).unwrap();
            Results::open(&path, &array(), shard.parse().unwrap(), false).unwrap_err().to_string()
        };
        let header = header("1/2");
        for (text, shard, expected) in [
            ("hello\n".to_owned(), "1/1", "not a file of results"),
            ("a line without an end".to_owned(), "1/1", "not a file of results"),
            (header.clone(), "2/2", "it is of shard 1/2, not of 2/2"),
            (
                header.replace("\"seed\":7", "\"seed\":8"),
                "1/2",
                "it has results of another job array: its seed is 8, not 7",
            ),
            (format!("{header}{{}}\n"), "1/2", "line 2: not a result of a job"),
            (header.clone() + &Line::Job(3, json!(9), None).text(), "1/2", "line 2: job 3 is not of shard 1/2"),
        ] {
            let error = open(&text, shard);
            assert!(error.contains(expected), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}

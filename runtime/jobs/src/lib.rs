//! Job arrays: lists of independent jobs that run in parts on many processes or machines.
//!
//! A job array is a name, settings and a number of jobs; job K is the same everywhere and gives the same result. A
//! process runs one [`Shard`] of the jobs. It writes a file of results ([`Results`]), which it continues after an
//! interruption; [`Merged`] puts the files of all shards together and says which jobs are missing. `docs/scale.md` has
//! the format, and runs job arrays with GNU parallel, Slurm, Ray and nextest.

mod build;
mod findings;
mod left;
mod merge;
mod results;
mod shard;

pub use findings::SharedFinding;
pub use left::JobsLeft;
pub use merge::{Merged, Source};
pub use results::Results;
pub use shard::Shard;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::{Value, json};

/// What is wrong with a file of results, with its name and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The name of a file that a command writes, for its options. `-` is none: standard output has the command's text.
pub fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some("-") => Err("`-` is no file to write to: /dev/stdout is standard output"),
        _ => Ok(path),
    })
}

/// A list of jobs. Files of results belong together if this is equal in all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct JobArray {
    /// The command.
    pub name: String,
    /// The options that jobs depend on.
    pub settings: Value,
    /// The number of jobs of all shards together.
    pub jobs: u64,
}

impl JobArray {
    fn json(&self) -> Value {
        json!({ "command": self.name, "settings": self.settings, "jobs": self.jobs })
    }

    /// What is wrong with results of this array, which are not those of `wanted`: what differs, at its places.
    fn is_not(&self, wanted: &Self) -> String {
        let mut differences = Vec::new();
        add_differences("", (&self.json(), &wanted.json()), &mut differences);
        format!("it has results of another job array: {}", differences.join("; "))
    }
}

/// Adds where two values differ, member by member, and how.
fn add_differences(place: &str, (is, wanted): (&Value, &Value), to: &mut Vec<String>) {
    match (is, wanted) {
        _ if is == wanted => {}
        (Value::Object(is), Value::Object(wanted)) => {
            let names: BTreeSet<_> = is.keys().chain(wanted.keys()).collect();
            let of = |object: &serde_json::Map<String, Value>, name| object.get(name).cloned().unwrap_or(Value::Null);
            for name in names {
                // What the settings are is in the header; a message needs only their names.
                let place = match place {
                    "" | "settings" => name.clone(),
                    place => format!("{place}.{name}"),
                };
                add_differences(&place, (&of(is, name), &of(wanted, name)), to);
            }
        }
        _ => to.push(match changed(place) {
            Some(change) if is_digest(is) || is_digest(wanted) => change.to_owned(),
            _ => format!("its {place} is {is}, not {wanted}"),
        }),
    }
}

/// What another digest means, by the name of the setting: digests do not say what differs.
fn changed(setting: &str) -> Option<&'static str> {
    Some(match setting {
        "files" => "the files have changed since, or are others",
        "inputs" => "a file that an option names has changed since",
        "options" => "other options or suppressions were given",
        "scripts" => "the scripts or shaders have changed since, or are others",
        "shader" => "the shader has changed since",
        "tests" => "the tests have changed since, or are others",
        _ => return None,
    })
}

/// Whether a setting is a result of [`digest`].
fn is_digest(value: &Value) -> bool {
    let is_hex = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    value.as_str().is_some_and(is_hex)
}

/// The first line of a file of results.
#[derive(Clone, Debug, PartialEq)]
struct Header {
    array: JobArray,
    shard: Shard,
    /// The build that made the results; `None` if that is not known, or if they are of several.
    build: Option<String>,
}

impl Header {
    fn line(&self) -> String {
        let mut value = self.array.json();
        value["shard"] = json!(self.shard.to_string());
        value["build"] = json!(self.build);
        format!("{value}\n")
    }

    /// Parses [`Header::line`].
    fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let array = JobArray {
            // The name of the member in files of earlier versions.
            name: value.get("command").or_else(|| value.get("sweep"))?.as_str()?.to_owned(),
            settings: value.get("settings")?.clone(),
            jobs: value.get("jobs")?.as_u64()?,
        };
        let build = value.get("build").and_then(Value::as_str).map(str::to_owned);
        Some(Self { array, shard: value.get("shard")?.as_str()?.parse().ok()?, build })
    }
}

/// A build, for messages.
fn build_name(build: Option<&str>) -> &str {
    build.unwrap_or("unknown")
}

/// A line of a file of results after the first one.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    /// The result of a job, and whether it failed. Files of earlier versions do not say that.
    Job(u64, Value, Option<bool>),
    /// The results of the following lines are of another build than those before (`--any-build`).
    Build(String),
}

impl Line {
    fn text(&self) -> String {
        let value = match self {
            Self::Job(job, result, None) => json!({ "job": job, "result": result }),
            Self::Job(job, result, failed) => json!({ "failed": failed, "job": job, "result": result }),
            Self::Build(build) => json!({ "build": build }),
        };
        format!("{value}\n")
    }

    /// Parses [`Line::text`].
    fn parse(line: &str) -> Option<Self> {
        let mut value: Value = serde_json::from_str(line).ok()?;
        if let Some(build) = value.get("build") {
            return Some(Self::Build(build.as_str()?.to_owned()));
        }
        let job = value.get("job")?.as_u64()?;
        let failed = value.get("failed").and_then(Value::as_bool);
        Some(Self::Job(job, value.get_mut("result")?.take(), failed))
    }
}

/// The results that an earlier process wrote to the file, if there is one: see [`Results::earlier`].
pub fn earlier<T>(results: Option<&Results>, read: impl FnMut(&Value) -> Option<T>) -> Result<Vec<(u64, T)>, Error> {
    results.map_or(Ok(Vec::new()), |results| results.earlier(read))
}

/// FNV-1a of a text, in hexadecimal: tells long settings apart, such as lists of files, on every machine alike.
pub fn digest(text: &str) -> String {
    digest_bytes(text.as_bytes())
}

/// As [`digest`], of bytes.
pub fn digest_bytes(bytes: &[u8]) -> String {
    format!("{:016x}", hash_of(bytes))
}

fn hash_of(bytes: &[u8]) -> u64 {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// A digest of files, each with the name that it has in a job array: results are of these contents. A file that `read`
/// cannot read counts by its error.
pub fn digest_files<'a, E: fmt::Display>(
    files: impl IntoIterator<Item = (String, &'a Path)>,
    read: impl Fn(&Path) -> Result<Vec<u8>, E>,
) -> String {
    let one = |(name, path): (String, &Path)| match read(path) {
        Ok(bytes) => format!("{name}\n{}\n", digest_bytes(&bytes)),
        Err(error) => format!("{name}\n{error}\n"),
    };
    digest(&files.into_iter().map(one).collect::<String>())
}

/// The options of a command that runs a job array.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct JobArgs {
    /// Run only part I of N equal parts of the jobs: jobs I - 1, I - 1 + N, I - 1 + 2N, …
    #[arg(long, value_name = "I/N", default_value = "1/1", allow_hyphen_values = true)]
    pub shard: Shard,
    /// Write the result of each job as a line of JSON to this file. If it exists, only the jobs that it lacks are run:
    /// an interrupted job array is continued. `spelter merge` puts the files of all shards together.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub results: Option<PathBuf>,
    /// Continue a results file written by another build, whose results may differ.
    #[arg(long, requires = "results")]
    pub any_build: bool,
}

impl JobArgs {
    /// The file of results, if one is wanted.
    pub fn open(&self, array: &JobArray) -> Result<Option<Results>, Error> {
        self.results.as_ref().map(|path| Results::open(path, array, self.shard, self.any_build)).transpose()
    }
}

/// The jobs of a shard that are still to be run, in ascending order: all without a file of results.
pub fn jobs_left(results: Option<&Results>, array: &JobArray, shard: Shard) -> JobsLeft {
    match results {
        Some(results) => results.left(),
        None => JobsLeft::of(shard, array.jobs),
    }
}

//! `spelter merge`: puts the results of the shards of a job array together.

use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use spelter_jobs::{Merged, Shard, SharedFinding, Source};

use crate::args::MergeArgs;
use crate::failure::Failure;
use crate::file;
use crate::output::{self, Output};

/// The largest file that is kept in memory, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Files that are open at once: systems have a limit, often of 1024.
const MAX_OPEN: usize = 512;

/// Ranges of jobs, shards or findings that are listed.
const MAX_SHOWN: usize = 20;

/// Shards that JSON lists, beside the number of all: a mistyped number of them needs no memory.
const MAX_LISTED: usize = 1 << 16;

/// The exit status if all jobs have results, and some of them failed.
const FAILED: u8 = 3;

/// Prints what the files have and lack. A missing job is a failure. Returns the exit status.
pub(crate) fn run(args: &MergeArgs, output: &mut Output) -> Result<u8, Failure> {
    args.out.as_deref().map_or(Ok(()), file::check_target)?;
    if let Some(out) = args.out.as_deref().and_then(|out| out.canonicalize().ok())
        && args.files.iter().any(|file| file.canonicalize().is_ok_and(|file| file == out))
    {
        return Err(Failure::file(&out, "is one of the files that are put together: --out needs another name"));
    }
    let open = |path: &std::path::PathBuf| Ok((path.display().to_string(), source(path, args.files.len() > MAX_OPEN)?));
    let files = args.files.iter().map(open).collect::<Result<Vec<_>, Failure>>()?;
    let mut merged = Merged::read(files, args.any_build).map_err(|error| Failure::new(error.to_string()))?;
    if let Some(path) = &args.out {
        let written = File::create(path).map(BufWriter::new).and_then(|mut to| {
            merged.write(&mut to)?;
            to.flush()
        });
        written.map_err(|error| Failure::file(path, error))?;
    }
    let (array, missing, failed) = (merged.array(), merged.missing(), merged.failed());
    let shards = merged.missing_shards(MAX_LISTED);
    if args.json {
        let without_file = shards.iter().filter(|(.., has_file)| !has_file).map(|(shard, ..)| shard.to_string());
        output.json(&json!({
            "command": array.name, "settings": array.settings, "jobs": array.jobs, "build": merged.build(),
            "done": merged.done(), "failed": failed, "failed_jobs": pairs(&merged.failed_jobs()),
            "missing": pairs(&missing), "missing_shards": without_file.collect::<Vec<_>>(),
            "missing_shards_count": merged.count_shards_without_file(),
            "findings": merged.findings().into_iter().map(finding_json).collect::<Vec<_>>(),
            "totals": merged.totals(),
        }))?;
    } else {
        output.line(format!("{}: {} of {} jobs", array.name, merged.done(), array.jobs))?;
        merged.totals().iter().try_for_each(|(name, total)| output.line(format!("{total} {name}")))?;
        let findings = merged.findings();
        findings.iter().take(MAX_SHOWN).try_for_each(|finding| output.line(described(finding)))?;
        if let Some(more @ 1..) = findings.len().checked_sub(MAX_SHOWN) {
            output.line(format!("{more} more findings: --json has all"))?;
        }
    }
    let mut problems = Vec::new();
    if !missing.is_empty() {
        let count = array.jobs - merged.done();
        let which = if shards.iter().any(|(.., has_file)| !has_file) { of_shards(&shards) } else { ranges(&missing) };
        problems.push(format!("{count} of {} jobs are missing: {which}", array.jobs));
    }
    match failed {
        0 => {}
        1 => problems.push(format!("1 job failed: {}", ranges(&merged.failed_jobs()))),
        _ => problems.push(format!("{failed} jobs failed: {}", ranges(&merged.failed_jobs()))),
    }
    if !missing.is_empty() {
        return Err(Failure::new(problems.join("; ")));
    }
    if failed == 0 {
        return Ok(0);
    }
    output.flush()?;
    output::report(&Failure::new(problems.join("; ")));
    Ok(FAILED)
}

/// The missing jobs, of which some are all those of a shard.
fn of_shards(shards: &[(Shard, u64, bool)]) -> String {
    let list = |names: Vec<String>| match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) if names.len() <= MAX_SHOWN => format!("{} and {last}", others.join(", ")),
        _ => format!("{}, …", names[..names.len().min(MAX_SHOWN)].join(", ")),
    };
    let (with, without): (Vec<&(Shard, u64, bool)>, Vec<_>) = shards.iter().partition(|(.., has_file)| *has_file);
    let names: Vec<String> = without.iter().map(|(shard, ..)| shard.to_string()).collect();
    let absent = match names.len() {
        1 => format!("shard {} has no file", list(names)),
        _ => format!("shards {} have no file", list(names)),
    };
    let lacks = |(shard, count, _): &&(Shard, u64, bool)| match count {
        1 => format!("{shard} lacks 1 job"),
        _ => format!("{shard} lacks {count} jobs"),
    };
    if with.is_empty() { absent } else { format!("{absent}; {}", list(with.iter().map(lacks).collect())) }
}

/// A finding in a line.
fn described(finding: &SharedFinding) -> String {
    let SharedFinding { severity, id, title, place, count, jobs, first_job, .. } = finding;
    let place = place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
    let jobs = if *jobs == 1 { format!("job {first_job}") } else { format!("{jobs} jobs, first in job {first_job}") };
    format!("{severity}[{id}]: {title}{place}: {times}, in {jobs}")
}

/// A finding as JSON.
fn finding_json(finding: &SharedFinding) -> Value {
    let SharedFinding { fingerprint, severity, id, title, place, count, jobs, first_job } = finding;
    json!({
        "fingerprint": fingerprint, "severity": severity, "id": id, "title": title, "place": place,
        "count": count, "jobs": jobs, "first_job": first_job,
    })
}

/// Ranges of jobs as JSON.
fn pairs(ranges: &[(u64, u64)]) -> Vec<[u64; 2]> {
    ranges.iter().map(|(first, last)| [*first, *last]).collect()
}

/// Ranges of jobs, the first ones.
fn ranges(missing: &[(u64, u64)]) -> String {
    let range = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let mut shown: Vec<String> = missing.iter().take(MAX_SHOWN).map(range).collect();
    if missing.len() > MAX_SHOWN {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// A file of results. Standard input is kept in memory, as are files of which there are too many.
fn source(path: &Path, in_memory: bool) -> Result<Box<dyn Source>, Failure> {
    if in_memory || file::is_stdin(path) {
        return Ok(Box::new(Cursor::new(file::read(path, MAX_BYTES)?)));
    }
    let about = std::fs::metadata(path).map_err(|error| Failure::file(path, error))?;
    if !about.is_file() {
        return Err(Failure::file(path, "not a regular file"));
    }
    Ok(Box::new(BufReader::new(File::open(path).map_err(|error| Failure::file(path, error))?)))
}

//! Samples of earlier runs, saved under a name, and the comparison with them.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::report::Point;
use crate::args::BaselineName;
use crate::failure::Failure;
use crate::file;
use crate::statistics::{Change, Samples};

/// Version of the format.
const VERSION: u64 = 2;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) file: String,
    pub(super) entry: String,
    pub(super) backend: String,
    /// A digest of the shader and of its specialization constants.
    pub(super) digest: String,
}

impl Subject {
    /// How it differs from what a baseline measured.
    pub(super) fn difference(&self, name: &BaselineName, old: &Self) -> Option<String> {
        let shown = |Self { file, entry, backend, .. }: &Self| format!("{entry:?} of {file} on {backend}");
        let (name, same_code) = (&name.0, self.digest == old.digest);
        if (&self.entry, &self.backend) != (&old.entry, &old.backend) || !same_code && self.file != old.file {
            return Some(format!("the baseline {name:?} is of {}, this run of {}", shown(old), shown(self)));
        }
        (!same_code).then(|| format!("the shader or a --spec has changed since the baseline {name:?} was saved"))
    }
}

/// Samples that were saved.
pub(super) struct Baseline {
    pub(super) subject: Subject,
    points: Vec<Saved>,
}

struct Saved {
    groups: [u64; 3],
    workers: u64,
    bytes: u64,
    dispatch: Samples,
    latency: Samples,
}

fn path(folder: &Path, name: &BaselineName) -> PathBuf {
    folder.join(format!("{}.json", name.0))
}

/// Saves the points of a run.
pub(super) fn save(
    folder: &Path,
    name: &BaselineName,
    Subject { file, entry, backend, digest }: &Subject,
    points: &[Point],
) -> Result<(), Failure> {
    let points: Vec<Json> = points
        .iter()
        .map(|point| {
            json!({
                "groups": point.groups,
                "workers": point.workers,
                "bytes": point.bytes,
                "dispatch_seconds": point.measured.dispatch.all(),
                "latency_seconds": point.measured.latency.all(),
            })
        })
        .collect();
    let text = json!({
        "spelter_bench": VERSION, "file": file, "entry": entry, "backend": backend, "digest": digest, "points": points,
    });
    let path = path(folder, name);
    let write = || {
        std::fs::create_dir_all(folder)?;
        std::fs::write(&path, format!("{text}\n"))
    };
    write().map_err(|error| Failure::file(&path, error))
}

/// Reads the samples that were saved under a name.
pub(super) fn load(folder: &Path, name: &BaselineName) -> Result<Baseline, Failure> {
    let path = path(folder, name);
    if !path.is_file() {
        return Err(Failure::file(&path, format!("there is no baseline {:?}: save one with --save-baseline", name.0)));
    }
    let bytes = file::read(&path, MAX_BYTES)?;
    let text: Json = serde_json::from_slice(&bytes).map_err(|error| Failure::file(&path, error))?;
    parse(&text).map_err(|problem| Failure::file(&path, problem))
}

fn parse(text: &Json) -> Result<Baseline, String> {
    match text["spelter_bench"].as_u64() {
        Some(VERSION) => {}
        Some(other) => return Err(format!("a baseline of version {other}: this program reads version {VERSION}")),
        None => return Err("not a baseline: it has no `spelter_bench`".to_owned()),
    }
    let word = |name: &str| text[name].as_str().map(str::to_owned).ok_or_else(|| format!("`{name}` is not a text"));
    let points = text["points"].as_array().ok_or("`points` is not a list")?;
    let points = points.iter().enumerate();
    let points = points.map(|(at, point)| saved(point).map_err(|problem| format!("points[{at}]: {problem}")));
    let points = points.collect::<Result<_, _>>()?;
    let (file, entry, backend, digest) = (word("file")?, word("entry")?, word("backend")?, word("digest")?);
    Ok(Baseline { subject: Subject { file, entry, backend, digest }, points })
}

fn saved(point: &Json) -> Result<Saved, String> {
    let number = |value: &Json, name: &str| value.as_u64().ok_or_else(|| format!("`{name}` is not a number"));
    let samples = |name: &str| {
        let list: Option<Vec<f64>> = point[name].as_array().and_then(|list| list.iter().map(Json::as_f64).collect());
        list.and_then(Samples::new).ok_or_else(|| format!("`{name}` is not a list of positive numbers"))
    };
    let groups: Vec<u64> = match point["groups"].as_array() {
        Some(list) => list.iter().map(|value| number(value, "groups")).collect::<Result<_, _>>()?,
        None => return Err("`groups` is not a list".to_owned()),
    };
    Ok(Saved {
        groups: groups.try_into().map_err(|_| "`groups` has not three numbers")?,
        workers: number(&point["workers"], "workers")?,
        bytes: number(&point["bytes"], "bytes")?,
        dispatch: samples("dispatch_seconds")?,
        latency: samples("latency_seconds")?,
    })
}

/// The changes of a point since the baseline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changes {
    pub(super) dispatch: Change,
    pub(super) latency: Change,
}

impl Baseline {
    /// The changes of a point; `None` if the baseline does not have it.
    pub(super) fn changes(&self, point: &Point) -> Option<Changes> {
        let groups = point.groups.map(u64::from);
        let same =
            |saved: &&Saved| (saved.groups, saved.workers, saved.bytes) == (groups, point.workers as u64, point.bytes);
        let saved = self.points.iter().find(same)?;
        Some(Changes {
            dispatch: Change::between(&saved.dispatch, &point.measured.dispatch),
            latency: Change::between(&saved.latency, &point.measured.latency),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_files_are_refused_with_the_place() {
        let point = |change: &str, value: Json| {
            let mut point = json!({
                "groups": [1, 1, 1], "workers": 1, "bytes": 4, "dispatch_seconds": [1.0], "latency_seconds": [1.0],
            });
            point[change] = value;
            json!({
                "spelter_bench": 2, "file": "a.wgsl", "entry": "main", "backend": "avx2", "digest": "", "points": [point],
            })
        };
        assert!(parse(&point("bytes", json!(8))).is_ok());
        for (text, problem) in [
            (json!([]), "not a baseline"),
            (json!({ "spelter_bench": 1 }), "version 1"),
            (json!({ "spelter_bench": 2 }), "`points` is not a list"),
            (point("groups", json!([1, 1])), "points[0]: `groups` has not three numbers"),
            (point("workers", json!("x")), "points[0]: `workers` is not a number"),
            (point("dispatch_seconds", json!([])), "points[0]: `dispatch_seconds` is not a list of positive numbers"),
            (point("latency_seconds", json!([-1.0])), "`latency_seconds` is not"),
        ] {
            let found = parse(&text).map(|_| ()).unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
    }

    #[test]
    fn another_kernel_is_named() {
        let of = |file: &str, entry: &str, digest: &str| Subject {
            file: file.into(),
            entry: entry.into(),
            backend: "avx2".into(),
            digest: digest.into(),
        };
        let name = BaselineName("before".to_owned());
        let old = of("a.wgsl", "main", "1");
        let difference = |new: Subject| new.difference(&name, &old);
        assert_eq!(difference(old.clone()), None);
        assert_eq!(difference(of("moved/a.wgsl", "main", "1")), None);
        let changed = "the shader or a --spec has changed since the baseline \"before\" was saved";
        assert_eq!(difference(of("a.wgsl", "main", "2")).as_deref(), Some(changed));
        let other = "the baseline \"before\" is of \"main\" of a.wgsl on avx2, this run of \"main\" of b.wgsl on avx2";
        assert_eq!(difference(of("b.wgsl", "main", "2")).as_deref(), Some(other));
        assert!(difference(of("a.wgsl", "blur", "1")).is_some_and(|text| text.ends_with("\"blur\" of a.wgsl on avx2")));
    }
}

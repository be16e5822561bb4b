//! Samples of earlier runs, saved under a name, and the comparison with them.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::report::Point;
use super::sweep::BaselineName;
use crate::failure::Failure;
use crate::file;
use crate::statistics::{Change, Samples};

/// Version of the format.
const VERSION: u64 = 1;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Samples that were saved.
pub(super) struct Baseline {
    pub(super) entry: String,
    pub(super) backend: String,
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
    (entry, backend): (&str, &str),
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
    let text = json!({ "spelter_bench": VERSION, "entry": entry, "backend": backend, "points": points });
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
    Ok(Baseline { entry: word("entry")?, backend: word("backend")?, points: points.collect::<Result<_, _>>()? })
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
            json!({ "spelter_bench": 1, "entry": "main", "backend": "avx2", "points": [point] })
        };
        assert!(parse(&point("bytes", json!(8))).is_ok());
        for (text, problem) in [
            (json!([]), "not a baseline"),
            (json!({ "spelter_bench": 2 }), "version 2"),
            (json!({ "spelter_bench": 1 }), "`points` is not a list"),
            (point("groups", json!([1, 1])), "points[0]: `groups` has not three numbers"),
            (point("workers", json!("x")), "points[0]: `workers` is not a number"),
            (point("dispatch_seconds", json!([])), "points[0]: `dispatch_seconds` is not a list of positive numbers"),
            (point("latency_seconds", json!([-1.0])), "`latency_seconds` is not"),
        ] {
            let found = parse(&text).map(|_| ()).unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
    }
}

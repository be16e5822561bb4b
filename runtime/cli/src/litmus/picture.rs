//! Pictures of executions: a file for each test, named after it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use spelter_memory_model::Model;
use spelter_memory_model::answer::Summary;
use spelter_memory_model::dot::dot;
use spelter_memory_model::format::Test;

use crate::failure::Failure;

/// The names of the files' pictures, without extension: the stem of the file if it is unique; otherwise the extension
/// and then its folders are added, one after another.
pub(crate) fn names(files: &[PathBuf]) -> Vec<String> {
    let mut depth = vec![0; files.len()];
    loop {
        let names: Vec<_> = files.iter().zip(&depth).map(|(file, depth)| name(file, *depth)).collect();
        let mut with_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        names.iter().enumerate().for_each(|(at, name)| with_name.entry(name).or_default().push(at));
        // A file that is given twice has one picture.
        let twins = with_name.values().flatten().copied().filter(|&at| {
            with_name[&*names[at]].iter().any(|&other| files[other] != files[at])
                && depth[at] < 1 + files[at].components().count()
        });
        let twins: Vec<_> = twins.collect();
        if twins.is_empty() {
            return names;
        }
        twins.into_iter().for_each(|at| depth[at] += 1);
    }
}

/// The name at a depth: 0 is the stem, 1 the file name, more adds folders, joined by hyphens.
fn name(file: &Path, depth: usize) -> String {
    if depth == 0 {
        return file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => name.to_string_lossy().into_owned(),
        Component::ParentDir => "up".to_owned(),
        Component::RootDir | Component::Prefix(_) | Component::CurDir => "root".to_owned(),
    };
    let named = file.components().filter(|component| *component != Component::CurDir);
    let mut parts: Vec<_> = named.rev().take(depth).map(part).collect();
    parts.reverse();
    parts.join("-")
}

/// Writes a picture of a racing execution, or of any execution if there is none.
pub(crate) fn write(folder: &Path, name: &str, test: &Test, summary: &Summary, model: Model) -> Result<(), Failure> {
    let Some(execution) = summary.race.as_ref().or(summary.example.as_ref()) else { return Ok(()) };
    let to = folder.join(format!("{name}.dot"));
    std::fs::write(&to, dot(&test.program, execution, model)).map_err(|error| Failure::file(&to, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_where_files_do() {
        let files = ["a/mp.test", "b/mp.test", "a/mp.litmus", "a/sb.test", "mp.test", "b/sb.test", "../b/x/mp.test"];
        let files: Vec<_> = files.into_iter().map(PathBuf::from).collect();
        let names = names(&files);
        assert_eq!(names, ["a-mp.test", "b-mp.test", "mp.litmus", "a-sb.test", "mp.test", "b-sb.test", "x-mp.test"]);
        // Different folders that are equal when joined.
        let files = [PathBuf::from("x/a-b/mp.test"), PathBuf::from("x/a/b-mp.test"), PathBuf::from("y/a-b/mp.test")];
        let names = super::names(&files);
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), 3, "{names:?}");
    }
}

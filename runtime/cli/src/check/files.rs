//! Files of findings: SARIF, and litmus tests of races.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::sarif;
use crate::args::ReportFiles;
use crate::failure::Failure;
use crate::file;
use crate::output;

/// Checks that the files can be written, before a long run.
pub(crate) fn check_targets(files: &ReportFiles) -> Result<(), Failure> {
    files.sarif.iter().chain(&files.litmus).try_for_each(|path| file::check_target(path))
}

/// Writes the findings, as their JSON objects are.
pub(crate) fn write_files(files: &ReportFiles, findings: &[Json]) -> Result<(), Failure> {
    if let Some(path) = &files.sarif {
        write(path, &format!("{:#}\n", sarif::log(findings)))?;
    }
    let Some(path) = &files.litmus else { return Ok(()) };
    let replays = findings.iter().filter_map(|finding| Some((finding, finding["replay"].as_str()?)));
    let mut number = 0;
    for (finding, replay) in replays {
        number += 1;
        let path = numbered(path, number);
        // The format has comments of lines; its reader skips those before the first word, too.
        let title = finding["title"].as_str().unwrap_or_default().replace(['\n', '\r'], " ");
        write(&path, &format!("// {title}\n{replay}"))?;
        output::note(format_args!("{}: {title}", path.display()));
    }
    if number == 0 {
        output::note(format_args!("{}: not written, since no race was confirmed", path.display()));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, error))
}

/// `a.test`, `a-2.test`, `a-3.test`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{number}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_have_numbers() {
        let name = |path: &str, number| numbered(Path::new(path), number).display().to_string();
        assert_eq!(name("out/a.test", 1), "out/a.test");
        assert_eq!(name("out/a.b.test", 2), "out/a.b-2.test");
        assert_eq!(name("a", 3), "a-3");
    }
}

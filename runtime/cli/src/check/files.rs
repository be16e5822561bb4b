//! Files of findings: SARIF, litmus tests of races, pictures.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::{dot, sarif};
use crate::args::ReportFiles;
use crate::failure::Failure;
use crate::file;
use crate::output;

/// Checks that the files can be written, before a long run.
pub(crate) fn check_targets(files: &ReportFiles) -> Result<(), Failure> {
    files.sarif.iter().chain(&files.litmus).chain(&files.dot).try_for_each(|path| file::check_target(path))
}

/// Writes the findings of this program or shader, as their JSON objects are.
pub(crate) fn write_files(files: &ReportFiles, findings: &[Json], subject: &Path) -> Result<(), Failure> {
    if let Some(path) = &files.sarif {
        write(path, &format!("{:#}\n", sarif::log(findings, subject)))?;
    }
    if let Some(path) = &files.litmus {
        // The format has comments of lines; its reader skips those before the first word, too.
        let test = |finding: &Json| Some(format!("// {}\n{}", title(finding), finding["replay"].as_str()?));
        let unwritable = findings.iter().filter(|finding| is_error_of_race(finding) && !has_test(finding)).count();
        let reason = match unwritable {
            0 => "no race was confirmed".to_owned(),
            1 => format!("the format cannot express the race: {LACKS}"),
            count => format!("the format cannot express the {count} races: {LACKS}"),
        };
        write_each(path, findings, test, &reason)?;
        if unwritable > 0 && findings.iter().any(has_test) {
            let races = if unwritable == 1 { "race is" } else { "races are" };
            output::note(format_args!("{}: {unwritable} {races} not written: {LACKS}", path.display()));
        }
    }
    match &files.dot {
        Some(path) => write_each(path, findings, dot::picture, "no finding is about two accesses"),
        None => Ok(()),
    }
}

/// What litmus tests of the format of Khronos do not have.
const LACKS: &str = "it has no accesses that share only a part of their bytes, no barrier that orders memory in another \
                     scope than it waits in, no third storage class, and neither commands nor the host";

/// Whether a finding is a data race that the axioms confirmed.
fn is_error_of_race(finding: &Json) -> bool {
    let of_race = finding["id"].as_str().is_some_and(|id| id.starts_with("SPELTER-RACE-"));
    of_race && finding["severity"] == "error"
}

/// Whether the part of the execution that decides is known as a litmus test.
fn has_test(finding: &Json) -> bool {
    finding["replay"].is_string()
}

/// Writes a file for each finding that has a text, and notes what is in it; or else why there is none.
fn write_each(
    path: &Path,
    findings: &[Json],
    text: impl Fn(&Json) -> Option<String>,
    reason: &str,
) -> Result<(), Failure> {
    let mut number = 0;
    for (finding, text) in findings.iter().filter_map(|finding| Some((finding, text(finding)?))) {
        number += 1;
        let path = numbered(path, number);
        write(&path, &text)?;
        output::note(format_args!("{}: {}", path.display(), title(finding)));
    }
    if number == 0 {
        output::note(format_args!("{}: not written, since {reason}", path.display()));
    }
    Ok(())
}

/// The title of a finding, in one line.
fn title(finding: &Json) -> String {
    finding["title"].as_str().unwrap_or_default().replace(['\n', '\r'], " ")
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

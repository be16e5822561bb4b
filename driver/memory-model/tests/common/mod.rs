//! Files of litmus tests.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failing test panics, and reports what it did not run")]

pub(crate) mod random;
pub(crate) mod traces;

use std::path::{Path, PathBuf};

use spelter_memory_model::format::{Format, Test};

/// The folder of litmus data outside the repository; `None`, with a printed note, if it is absent.
pub(crate) fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("SPELTER_LITMUS_DATA").map(PathBuf::from).filter(|folder| folder.is_dir());
    if folder.is_none() {
        eprintln!("NOT RUN: SPELTER_LITMUS_DATA names no folder of litmus tests");
        assert!(std::env::var_os("CI").is_none(), "under CI the litmus data must be there");
    }
    folder
}

/// The files of `folder` and below with `extension`, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut open = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Reads a file, which must be a test.
pub(crate) fn test(path: &Path) -> Test {
    let format = Format::of_extension(&path.extension().unwrap().to_string_lossy()).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    format.read(&name, &text).unwrap_or_else(|error| panic!("{}:{error}", path.display()))
}

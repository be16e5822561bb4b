//! The files of tests: those named, and those in the named folders.

use std::path::{Path, PathBuf};

use spelter_memory_model::format::Format;

use crate::failure::Failure;

/// The files in the order of the arguments; those of a folder are sorted.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            below(path, &mut files, 0)?;
            if files.len() == before {
                return Err(Failure::file(path, "there are no litmus tests (.test, .litmus) in this folder"));
            }
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn below(folder: &Path, files: &mut Vec<PathBuf>, depth: usize) -> Result<(), Failure> {
    // Symbolic links may form cycles.
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return Err(Failure::file(folder, format!("folders nest deeper than {MAX_DEPTH}")));
    }
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file(folder, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|error| Failure::file(folder, error))?.path());
    }
    paths.sort();
    for path in paths {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_dir() {
            below(&path, files, depth + 1)?;
        } else if Format::of_extension(extension).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

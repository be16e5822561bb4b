//! The scripts that the command line names.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The files, and the `.amber` files in folders and their subfolders, in the order of the arguments, then by name.
pub(super) fn scripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        if path.is_dir() {
            below(path, &mut found)?;
            found[before..].sort();
            if found.len() == before {
                return Err(Failure::file(path, "there is no .amber file in it"));
            }
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failure = |error| Failure::file(folder, error);
    for entry in std::fs::read_dir(folder).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failure)?);
        // Links to folders are not followed: they may lead back.
        if kind.is_dir() {
            below(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "amber") {
            found.push(path);
        }
    }
    Ok(())
}

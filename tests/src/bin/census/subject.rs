//! The kernels of a file, and what each part of the compiler did to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use spelter_tests::modules::entry_points;

use crate::kernel;

/// A shader, of which a project may have variants: a folder and the part of the file names that they share, and an
/// entry point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shader {
    folder: PathBuf,
    name: String,
    entry: String,
}

impl Shader {
    pub(crate) fn new(path: &Path, entry: &str) -> Self {
        let file = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let name = file.split('.').next().unwrap_or_default().to_owned();
        Self { folder: path.parent().unwrap_or(Path::new("")).to_owned(), name, entry: entry.to_owned() }
    }
}

/// The results for one file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// For each kernel, its shader, and the parts that changed it, or were chosen in it.
    pub(crate) kernels: Vec<(Shader, BTreeSet<&'static str>)>,
    /// Files and entry points that are rejected, and kernels without machine code, with the reason.
    pub(crate) rejected: Vec<String>,
}

/// Compiles all kernels of a file.
pub(crate) fn census(path: &Path) -> Found {
    let mut found = Found::default();
    let entries = match entry_points(path) {
        Ok(entries) => entries,
        Err(reason) => {
            found.rejected.push(format!("{}: {reason}", path.display()));
            return found;
        }
    };
    for entry in entries {
        let subjects = match entry.subjects(&BTreeMap::new()) {
            Ok(subjects) => subjects,
            Err(reason) => {
                found.rejected.push(format!("{}: {}: {reason}", path.display(), entry.name));
                continue;
            }
        };
        for subject in subjects {
            match kernel::parts(&subject.kernel) {
                Ok(parts) => found.kernels.push((Shader::new(path, &entry.name), parts)),
                Err(reason) => found.rejected.push(format!("{}: {}: {reason}", path.display(), entry.name)),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_names_that_are_equal_up_to_a_dot_are_variants_of_one_shader() {
        let shader = |path: &str, entry: &str| Shader::new(Path::new(path), entry);
        assert_eq!(shader("a/blur.hlsl.spv", "main"), shader("a/blur.spv", "main"));
        assert_ne!(shader("a/blur.spv", "main"), shader("b/blur.spv", "main"));
        assert_ne!(shader("a/blur.spv", "main"), shader("a/blur.spv", "other"));
        assert_ne!(shader("a/blur.spv", "main"), shader("a/blur_x.spv", "main"));
    }
}

//! The kernels of a file, and what each part of the compiler did to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use spelter_tests::modules::entry_points;

use crate::kernel;

/// The results for one file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// For each kernel, the parts that changed it, or were chosen in it.
    pub(crate) kernels: Vec<BTreeSet<&'static str>>,
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
                Ok(parts) => found.kernels.push(parts),
                Err(reason) => found.rejected.push(format!("{}: {}: {reason}", path.display(), entry.name)),
            }
        }
    }
    found
}

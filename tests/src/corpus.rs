//! The test files on disk.

use std::path::{Path, PathBuf};

use spelter_shaders::front::wgsl::WgslModule;
use spelter_shaders::front::{Error, spvasm};

use crate::case::Case;

/// The folder with the kernels.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

/// All kernels below the folder, sorted.
pub fn files() -> Vec<PathBuf> {
    files_below(&root(), &["wgsl", "spvasm"])
}

/// All files below a folder with these extensions, sorted.
pub fn files_below(root: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(root, extensions, &mut files);
    files.sort();
    files
}

/// The name of a test file: its path below the folder.
pub fn name(path: &Path) -> String {
    name_below(&root(), path)
}

/// The path of a file below a folder.
pub fn name_below(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn collect(folder: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, extensions, files);
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
            files.push(path);
        }
    }
}

/// The SPIR-V of a test file: assembled, or translated by naga.
pub fn spirv(case: &Case) -> Result<Vec<u32>, Error> {
    if !case.is_wgsl() {
        return spvasm::assemble(&case.text);
    }
    let module = WgslModule::parse(&case.text)?;
    let first = module.entry_points().next().unwrap_or_default();
    module.to_spirv(case.entry.as_deref().unwrap_or(first), &case.specialization)
}

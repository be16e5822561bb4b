//! Computes `SPELTER_BUILD`, which identifies a build: machine code that one build stored is valid for that build only.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// What machine code depends on: the kernel compiler, the device that calls the code, and the versions of their
/// dependencies. The Rust compiler's version is added below.
const SOURCES: [&str; 4] = ["src", "../shaders/src", "../shaders/Cargo.toml", "../Cargo.lock"];

fn main() {
    let mut files: Vec<PathBuf> = SOURCES.iter().flat_map(|source| files(Path::new(source))).collect();
    files.sort();
    let mut hasher = std::hash::DefaultHasher::new();
    for file in files {
        (&file, std::fs::read(&file).unwrap_or_default()).hash(&mut hasher);
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let version = std::process::Command::new(rustc).arg("-vV").output();
    version.map(|output| output.stdout).unwrap_or_default().hash(&mut hasher);
    SOURCES.iter().for_each(|source| println!("cargo::rerun-if-changed={source}"));
    println!("cargo::rustc-env=SPELTER_BUILD={}", hasher.finish());
}

/// All files at or below a path.
fn files(path: &Path) -> Vec<PathBuf> {
    match std::fs::read_dir(path) {
        Ok(folder) => folder.flatten().flat_map(|entry| files(&entry.path())).collect(),
        Err(_) => vec![path.to_owned()],
    }
}

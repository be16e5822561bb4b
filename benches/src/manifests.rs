//! Manifests by which the Vulkan loader finds a driver, for benches that run a child process on each.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::Error;

/// Where Debian has the manifest of lavapipe (`mesa-vulkan-drivers`).
const LAVAPIPE: &str = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";

/// Writes a manifest of this workspace's optimised driver, or of the library that `SPELTER_ICD` names, to a folder.
pub fn ours(folder: &Path) -> Result<PathBuf, Error> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/libvulkan_spelter.so");
    let library = std::env::var_os("SPELTER_ICD").map_or(built, PathBuf::from);
    let library = library.canonicalize().map_err(|error| format!("{}: {error}", library.display()))?;
    let manifest = folder.join("spelter_icd.json");
    let icd = json!({ "library_path": library, "api_version": "1.3.0" });
    std::fs::write(&manifest, json!({ "file_format_version": "1.0.1", "ICD": icd }).to_string())?;
    Ok(manifest)
}

/// The manifest of lavapipe, or the one that `SPELTER_LAVAPIPE` names.
pub fn lavapipe() -> PathBuf {
    std::env::var_os("SPELTER_LAVAPIPE").map_or_else(|| LAVAPIPE.into(), PathBuf::from)
}

/// Lets a process find this driver only, by the variables of new and old loaders.
pub fn select(command: &mut Command, manifest: &Path) {
    command.env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
}

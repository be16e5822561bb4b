//! The files by which a program finds the driver: a manifest for the Vulkan loader, and the driver under the loader's
//! names where there is no loader.
//!
//! They are in the user's cache, equal for all programs that use the same library, so that `exec` can give its process
//! to the program. Without a cache they are in a folder that is removed at the end.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::failure::Failure;
use crate::library;
use crate::scratch::Scratch;

/// The manifest's name among those of other drivers.
pub(crate) const MANIFEST: &str = "spelter_icd.json";

/// The files for programs.
pub(crate) struct DriverFiles {
    folder: PathBuf,
    in_place_of_loader: bool,
    /// Set if the files last no longer than this process.
    scratch: Option<Scratch>,
}

impl DriverFiles {
    /// The files, with the driver in the place of the loader if the machine has none or `no_loader` is set.
    pub(crate) fn new(no_loader: bool) -> Result<Self, Failure> {
        let library = library::path()?;
        let in_place_of_loader = no_loader || !library::has_loader();
        let mut hasher = DefaultHasher::new();
        library.hash(&mut hasher);
        let name = format!("exec-{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish());
        let in_cache = library::user_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("spelter").join(name));
        if let Ok(folder) = in_cache
            && write(&folder, &library, in_place_of_loader).is_ok()
        {
            return Ok(Self { folder, in_place_of_loader, scratch: None });
        }
        let scratch = Scratch::new()?;
        let folder = scratch.path().to_owned();
        write(&folder, &library, in_place_of_loader)?;
        Ok(Self { folder, in_place_of_loader, scratch: Some(scratch) })
    }

    /// The path of the manifest.
    pub(crate) fn manifest(&self) -> PathBuf {
        self.folder.join(MANIFEST)
    }

    /// Whether they outlive this process.
    pub(crate) fn last(&self) -> bool {
        self.scratch.is_none()
    }

    /// The value of `LD_LIBRARY_PATH`, if the driver takes the place of the loader: its folder, before those that are
    /// searched now.
    pub(crate) fn search_path(&self) -> Result<Option<OsString>, Failure> {
        if !self.in_place_of_loader {
            return Ok(None);
        }
        let folder = loader_folder(&self.folder);
        let now = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let now = std::env::split_paths(&now).filter(|folder| !folder.as_os_str().is_empty());
        let all = std::env::join_paths(std::iter::once(folder.clone()).chain(now));
        all.map(Some).map_err(|error| Failure::file(&folder, error))
    }
}

/// The manifest's text, for a path of the library.
pub(crate) fn manifest(library: &Path) -> String {
    let version = "1.3.281";
    let manifest = json!({
        "file_format_version": "1.0.1",
        "ICD": { "library_path": library, "api_version": version },
    });
    manifest.to_string()
}

fn loader_folder(folder: &Path) -> PathBuf {
    folder.join("loader")
}

/// Writes what is not there yet. Other processes may do the same at the same time.
fn write(folder: &Path, library: &Path, in_place_of_loader: bool) -> Result<(), Failure> {
    library::write(&folder.join(MANIFEST), manifest(library).as_bytes())?;
    if !in_place_of_loader {
        return Ok(());
    }
    let folder = loader_folder(folder);
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, error))?;
    for name in library::LOADER_NAMES {
        let link = folder.join(name);
        // The folder is this library's, so a link that is there is right.
        match std::os::unix::fs::symlink(library, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(Failure::file(&link, error)),
            _ => {}
        }
    }
    Ok(())
}

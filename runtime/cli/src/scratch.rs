//! Folders for temporary files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A new folder, removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder of this process.
    pub(crate) fn new() -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        // Another process may have left a folder, so a name that exists is not used.
        for number in 0..1000 {
            let path = parent.join(format!("spelter-{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::file(&path, error)),
            }
        }
        Err(Failure::file(&parent, "no name for a temporary folder is free"))
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! Files that a user names. Those that are read are regular files of limited size, or standard input, whose name is
//! `-`; those that are written are checked before a long run.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// The bytes of a regular file of at most `max_bytes` bytes. Devices and pipes are refused, since they may be endless.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    if is_stdin(path) {
        return stdin(max_bytes);
    }
    let about = std::fs::metadata(path).map_err(|error| Failure::file(path, error))?;
    if !about.is_file() {
        return Err(Failure::file(path, "not a regular file"));
    }
    let mut bytes = Vec::new();
    // The file may have grown since, so the limit is applied to the bytes that are read.
    let read = File::open(path).and_then(|file| file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| Failure::file(path, error))?;
    if bytes.len() as u64 > max_bytes {
        return Err(Failure::file(path, format!("more than {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// A digest of files, each with the name that it has in a job array: results are of these contents. A file that cannot
/// be read counts by its error.
pub(crate) fn digest<'a>(files: impl Iterator<Item = (String, &'a Path)>, max_bytes: u64) -> String {
    spelter_jobs::digest_files(files, |path| read(path, max_bytes))
}

/// Checks that the folder of an output file exists, so that an error is reported before a long run.
pub(crate) fn check_target(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Failure::file(path, "its folder does not exist"));
    }
    if path.is_dir() { Err(Failure::file(path, "is a folder")) } else { Ok(()) }
}

/// Whether a name is that of standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The bytes of standard input. There are none left for a second reader, so that is an error.
fn stdin(max_bytes: u64) -> Result<Vec<u8>, Failure> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    // Relaxed: the flag guards nothing else.
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Failure::usage("standard input: only one option or file can be `-`"));
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(max_bytes.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("standard input: {error}")))?;
    if bytes.len() as u64 > max_bytes {
        return Err(Failure::new(format!("standard input: more than {max_bytes} bytes")));
    }
    Ok(bytes)
}

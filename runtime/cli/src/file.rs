//! Reads files that a user names: regular files of limited size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

/// The bytes of a regular file of at most `most` bytes. Devices and pipes are refused, since they may be endless.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let about = std::fs::metadata(path).map_err(|error| Failure::file(path, error))?;
    if !about.is_file() {
        return Err(Failure::file(path, "not a regular file"));
    }
    let mut bytes = Vec::new();
    // The file may have grown since, so the limit is applied to the bytes that are read.
    let read = File::open(path).and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| Failure::file(path, error))?;
    if bytes.len() as u64 > most {
        return Err(Failure::file(path, format!("more than {most} bytes")));
    }
    Ok(bytes)
}

//! The file of JSON lines: several processes and threads append to one, and a line is never torn.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value as Json;

/// A file to which lines are appended.
#[derive(Debug)]
pub(super) struct Lines(File);

impl Lines {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().append(true).create(true).open(path).map(Self)
    }

    /// Appends an object in one write, which the system does not interleave with others (`O_APPEND`).
    pub(super) fn add(&mut self, object: &Json) -> io::Result<()> {
        self.0.write_all(format!("{object}\n").as_bytes())
    }
}

/// The findings of a file, by their fingerprints, each with the name of its worst severity. Lines of other kinds, and
/// files that cannot be read, have none.
pub(super) fn known(path: &Path) -> HashMap<String, bool> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut known = HashMap::new();
    for line in text.lines() {
        let Ok(object) = serde_json::from_str::<Json>(line) else { continue };
        if let Some(fingerprint) = object["fingerprint"].as_str() {
            let confirmed = object["confirmed"].as_bool().unwrap_or(false);
            *known.entry(fingerprint.to_owned()).or_insert(false) |= confirmed;
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_appended_and_known_again() {
        let path = std::env::temp_dir().join(format!("spelter-lines-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert!(known(&path).is_empty());
        let mut lines = [Lines::open(&path).unwrap(), Lines::open(&path).unwrap()];
        lines[0].add(&json!({ "started": 1 })).unwrap();
        lines[1].add(&json!({ "fingerprint": "ab", "confirmed": false })).unwrap();
        lines[0].add(&json!({ "fingerprint": "ab", "confirmed": true })).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
        assert_eq!(known(&path), HashMap::from([("ab".to_owned(), true)]));
        std::fs::write(&path, "[\n{").unwrap();
        assert!(known(&path).is_empty());
        std::fs::remove_file(&path).unwrap();
    }
}

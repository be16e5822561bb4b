//! Expected results from a list, as Dat3M keeps them: `path,1` or `path,0`, paths below the list's folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::args::LitmusArgs;
use crate::failure::Failure;
use crate::file;

/// What lists say, by canonical path.
#[derive(Default)]
pub(crate) struct Expected {
    holds: BTreeMap<PathBuf, bool>,
    race_free: BTreeMap<PathBuf, bool>,
}

impl Expected {
    pub(crate) fn read(args: &LitmusArgs) -> Result<Self, Failure> {
        let list = |path: &Option<PathBuf>| path.as_deref().map_or(Ok(BTreeMap::new()), read);
        Ok(Self { holds: list(&args.expected)?, race_free: list(&args.expected_races)? })
    }

    /// Whether the question of the test at `path` is expected to hold.
    pub(crate) fn holds(&self, path: &Path) -> Option<bool> {
        self.holds.get(&path.canonicalize().ok()?).copied()
    }

    /// Whether the test at `path` is expected to be race-free.
    pub(crate) fn is_race_free(&self, path: &Path) -> Option<bool> {
        self.race_free.get(&path.canonicalize().ok()?).copied()
    }
}

fn read(path: &Path) -> Result<BTreeMap<PathBuf, bool>, Failure> {
    let text = String::from_utf8(file::read(path, 1 << 24)?).map_err(|_| Failure::file(path, "not a text"))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut rows = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row = line.rsplit_once(',').and_then(|(file, expected)| match expected.trim() {
            "0" => Some((file, false)),
            "1" => Some((file, true)),
            _ => None,
        });
        let Some((file, expected)) = row else {
            let place = format!("{}:{}:1", path.display(), number + 1);
            return Err(Failure(format!("{place}: a row is a path, a comma, and 0 or 1")));
        };
        // A row may name a file that is not here.
        if let Ok(file) = folder.join(file.trim()).canonicalize() {
            rows.insert(file, expected);
        }
    }
    Ok(rows)
}

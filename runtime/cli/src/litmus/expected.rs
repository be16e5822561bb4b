//! Expected results from lists in Dat3M's format: `path,1` or `path,0`, with paths relative to the list's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::args::LitmusArgs;
use crate::failure::Failure;
use crate::file;

/// The expectations of all lists.
#[derive(Default)]
pub(crate) struct Expected {
    holds: Option<List>,
    race_free: Option<List>,
}

struct List {
    path: PathBuf,
    /// By canonical path.
    rows: BTreeMap<PathBuf, bool>,
    /// The number of rows that name files that do not exist.
    gone: usize,
}

impl Expected {
    /// Reads the lists for tests that are in `files`.
    ///
    /// # Errors
    ///
    /// If a list cannot be read, has an invalid line, or names none of the files.
    pub(crate) fn read(args: &LitmusArgs, files: &[PathBuf]) -> Result<Self, Failure> {
        let list = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
        let expected = Self { holds: list(&args.expected)?, race_free: list(&args.expected_races)? };
        for (list, others) in expected.without_test(files) {
            if others == list.rows.len() + list.gone {
                return Err(Failure::file(&list.path, format!("none of its {others} rows names one of the tests")));
            }
        }
        Ok(expected)
    }

    /// Whether the question of the test at `path` is expected to hold.
    pub(crate) fn holds(&self, path: &Path) -> Option<bool> {
        self.holds.as_ref()?.rows.get(&path.canonicalize().ok()?).copied()
    }

    /// Whether the test at `path` is expected to be race-free.
    pub(crate) fn is_race_free(&self, path: &Path) -> Option<bool> {
        self.race_free.as_ref()?.rows.get(&path.canonicalize().ok()?).copied()
    }

    /// The number of rows of all lists that name none of `files`.
    pub(crate) fn unused(&self, files: &[PathBuf]) -> usize {
        self.without_test(files).iter().map(|(_, others)| others).sum()
    }

    fn without_test(&self, files: &[PathBuf]) -> Vec<(&List, usize)> {
        let files: BTreeSet<_> = files.iter().filter_map(|file| file.canonicalize().ok()).collect();
        let others = |list: &List| list.gone + list.rows.keys().filter(|file| !files.contains(*file)).count();
        [&self.holds, &self.race_free].into_iter().flatten().map(|list| (list, others(list))).collect()
    }
}

fn read(path: &Path) -> Result<List, Failure> {
    let text = String::from_utf8(file::read(path, 1 << 24)?).map_err(|_| Failure::file(path, "not a text"))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut list = List { path: path.to_owned(), rows: BTreeMap::new(), gone: 0 };
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row = line.rsplit_once(',').and_then(|(file, expected)| match expected.trim() {
            "0" => Some((file, false)),
            "1" => Some((file, true)),
            _ => None,
        });
        let Some((file, expected)) = row else {
            let place = format!("{}:{}:1", path.display(), number + 1);
            return Err(Failure::new(format!("{place}: a row is a path, a comma, and 0 or 1")));
        };
        match folder.join(file.trim()).canonicalize() {
            Ok(file) => drop(list.rows.insert(file, expected)),
            Err(_) => list.gone += 1,
        }
    }
    Ok(list)
}

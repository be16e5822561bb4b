//! Test files: each file below a folder is a test of its own name, and `BLESS=1` rewrites expectations that are wrong.

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use spelter_tests::corpus;

/// Runs `check` on every file as a test. With `BLESS=1`, a file that fails is replaced by what `bless` makes of it, if
/// anything.
pub(crate) fn run(
    root: &Path,
    files: Vec<PathBuf>,
    check: fn(&Path) -> Result<(), String>,
    bless: fn(&Path) -> Result<Option<String>, String>,
) -> ! {
    let arguments = Arguments::from_args();
    assert!(!files.is_empty(), "no files in {}", root.display());
    let trials = files.into_iter().map(|path| {
        Trial::test(corpus::name_below(root, &path), move || {
            let Err(failure) = check(&path) else { return Ok(()) };
            match std::env::var_os("BLESS").map_or(Ok(None), |_| bless(&path))? {
                Some(text) => std::fs::write(&path, text).map_err(Failed::from),
                None => Err(failure.into()),
            }
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit()
}

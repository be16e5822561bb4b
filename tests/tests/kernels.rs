//! Every file of `kernels/**` is a test with its own name. `BLESS=1` rewrites wrong expectations.

mod files;

use std::path::Path;

use spelter_tests::case::Case;
use spelter_tests::{check, corpus};

fn main() {
    files::run(&corpus::root(), corpus::files(), |path| check::check(&Case::read(path)?), bless);
}

/// The file with the contents that buffers really have; `None` if an error is expected.
fn bless(path: &Path) -> Result<Option<String>, String> {
    let case = Case::read(path)?;
    if case.error.is_some() { Ok(None) } else { check::bless(&case).map(Some) }
}

//! Every file of `kernels/**` is a test with its own name. `BLESS=1` rewrites wrong expectations.

use libtest_mimic::{Arguments, Failed, Trial};
use spelter_tests::case::Case;
use spelter_tests::{check, corpus};

fn main() {
    let arguments = Arguments::from_args();
    let files = corpus::files();
    assert!(!files.is_empty(), "no kernels in {}", corpus::root().display());
    let trials = files.into_iter().map(|path| {
        Trial::test(corpus::name(&path), move || {
            let case = Case::read(&path)?;
            match check::check(&case) {
                Err(_) if std::env::var_os("BLESS").is_some() && case.error.is_none() => {
                    std::fs::write(&path, check::bless(&case)?).map_err(Failed::from)
                }
                result => result.map_err(Failed::from),
            }
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

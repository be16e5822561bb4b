//! Every kernel of the tests again, through Vulkan's C API; and for each feature that the driver advertises, what uses it so.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

mod features;
mod gpu;
mod run;

use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use spelter_tests::case::Case;
use spelter_tests::corpus;

fn main() {
    let arguments = Arguments::from_args();
    let gpu = Arc::new(gpu::Gpu::new());
    let mut trials = Vec::new();
    for path in corpus::files() {
        for (name, mode) in run::Mode::ALL {
            let (gpu, case) = (Arc::clone(&gpu), path.clone());
            let test = move || run::run(&gpu, &Case::read(&case)?, mode).map_err(Failed::from);
            trials.push(Trial::test(format!("{name}/{}", corpus::name(&path)), test));
        }
    }
    trials.push(Trial::test("every_feature_has_a_test", || features::check().map_err(Failed::from)));
    libtest_mimic::run(&arguments, trials).exit();
}

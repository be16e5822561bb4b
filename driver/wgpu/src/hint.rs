//! A hint, once per process, that an unoptimised build compiles kernels slowly.

use std::sync::atomic::{AtomicBool, Ordering};

use log::Level;

use crate::error::report;

/// The lines of a workspace's `Cargo.toml` that optimise this crate and what it uses, also in the dev profile.
const LINES: &str = "[profile.dev.package.\"*\"]\nopt-level = 2";

/// Called when a pipeline is created.
pub(crate) fn of_profile() {
    static IS_GIVEN: AtomicBool = AtomicBool::new(false);
    // Relaxed: the hint orders nothing.
    if env!("SPELTER_WGPU_OPT_LEVEL") == "0" && !IS_GIVEN.swap(true, Ordering::Relaxed) {
        let text = "the kernel compiler is built without optimisation, which makes pipelines and dispatches slow. Add \
                    to the Cargo.toml of your workspace:";
        report(Level::Warn, format_args!("{text}\n{LINES}"));
    }
}

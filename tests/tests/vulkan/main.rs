//! Runs every test kernel through the C API of Vulkan, and checks that each advertised feature has a test that uses it
//! so.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

mod features;
mod gpu;
mod print;
mod program;
mod resources;
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
    for (name, mode, extension) in [
        ("maximal_reconvergence", "MaximallyReconvergesKHR", "SPV_KHR_maximal_reconvergence"),
        ("uniform_control_flow", "SubgroupUniformControlFlowKHR", "SPV_KHR_subgroup_uniform_control_flow"),
    ] {
        let gpu = Arc::clone(&gpu);
        trials.push(Trial::test(name, move || Ok(with_mode(&gpu, mode, extension)?)));
    }
    trials.push(Trial::test("kernel_prints_are_reported", || print::run().map_err(Failed::from)));
    trials.push(Trial::test("every_extension_has_a_test", || features::check_extensions().map_err(Failed::from)));
    trials.push(Trial::test("every_feature_has_a_test", || features::check().map_err(Failed::from)));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Runs a kernel with an execution mode of reconvergence. Older assemblers do not know the modes, so they are not in
/// its file.
fn with_mode(gpu: &gpu::Gpu, wanted: &str, of: &str) -> Result<(), String> {
    let path = corpus::root().join("subgroups/rotate.spvasm");
    let case = Case::read(&path)?;
    let mode = "OpExecutionMode %main LocalSize 16 1 1";
    let text = case.text.replacen(mode, &format!("{mode}\nOpExecutionMode %main {wanted}"), 1);
    let extension = "OpExtension \"SPV_KHR_subgroup_rotate\"";
    let text = text.replacen(extension, &format!("{extension}\nOpExtension \"{of}\""), 1);
    if !text.contains(wanted) || !text.contains(of) {
        return Err("the kernel's execution mode is not as expected".into());
    }
    run::run(gpu, &Case::parse(&path, text)?, run::Mode::Plain)
}

//! The options of `spelter test`.

use std::path::PathBuf;

use clap::Args;
use spelter::check::report::{Filter, RulePattern, Suppression};
use spelter::check::{CheckOptions, Profile};
use vulkan_spelter::options::UNCHECKED_STATUS;

use super::check::bytes;
use super::{DeviceArgs, JobArgs};
use crate::structured::Groups;

/// `spelter test`.
#[derive(Debug, Args)]
#[command(after_help = "\
A script passes, fails, or is skipped if it needs something that is missing: a graphics pipeline, a compiler, a file,
a feature of the device. GLSL and HLSL are compiled by glslc, assembly by spirv-as if it is installed;
spirv-opt runs optimizations. The status is 1 if a script failed.

With --check, shaders are run, too (.wgsl, .spv, .spvasm, .comp, .glsl): each of their entry points, with buffers of a
size that fits the invocations. Their floats are random from 0 up to 1, their integers random numbers below that of the
invocations; integers of uniform buffers and push constants are the number of invocations. A line of a file that ends in
.launches is what would follow `spelter run`, and its shader is run so. Whatever has an error of checked mode fails. The
status is 66 if nothing failed otherwise, and 67 if nothing failed and a part was not checked.

Example:
  spelter test corpus --check --many-seeds 20 --shard 1/8 --results shard-1.jsonl")]
pub(crate) struct TestArgs {
    /// Scripts, shaders, lists of launches; folders in which to look for .amber files, and with --check for shaders.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// The job array: a job is a script, a shader or a launch, in one order of --many-seeds.
    #[command(flatten)]
    pub(crate) array: JobArgs,
    /// Do not list scripts that pass and assert something.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Checked mode.
    #[command(flatten)]
    pub(crate) check: TestCheckArgs,
    /// The device.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Checked mode of `spelter test`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Checked mode")]
pub(crate) struct TestCheckArgs {
    /// Find data races, and run shaders, too. PROFILE is common (patterns that shader compilers generate are only
    /// notes), spec or strict.
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, require_equals = true, default_missing_value = "common")]
    pub(crate) check: Option<Profile>,
    /// Run each script and shader N times, each time in another order of workgroups, subgroups and lanes. That a
    /// shader's results depend on the order is noted; --deny-order makes it a failure.
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "schedule", hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) many_seeds: u32,
    /// Fail if a shader's results depend on the order, as by an error of checked mode.
    #[arg(long, requires_all = ["check", "many_seeds"])]
    pub(crate) deny_order: bool,
    /// The number of workgroups in each direction for shaders without a launch; 4 by default.
    #[arg(long, value_name = "X[,Y[,Z]]", allow_hyphen_values = true, requires = "check")]
    pub(crate) groups: Option<Groups>,
    /// The largest number of bytes for the shadow of the memory, and again for replays; M and G are 2²⁰ and 2³⁰. The
    /// least is 320K.
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "check")]
    pub(crate) check_memory: Option<u64>,
    /// Accept that a part was not checked, or stayed undecided. Without this option the exit status is 67 then, if
    /// nothing failed.
    #[arg(long, requires = "check")]
    pub(crate) allow_unchecked: bool,
    /// Report findings of these rules only, as in RACE-*,BARRIER.
    #[arg(long, value_name = "ID,…", value_delimiter = ',', requires = "check")]
    pub(crate) only: Vec<RulePattern>,
    /// Do not report what matches: rule:, line:, kernel: or memory: and a pattern with *, as in line:scan.comp:41. A
    /// kernel has the names of its entry point, of its pipeline and of its shader module.
    #[arg(long, value_name = "KIND:PATTERN", requires = "check")]
    pub(crate) suppress: Vec<Suppression>,
    /// Do not report what a line of this file matches.
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) suppressions: Vec<PathBuf>,
}

impl TestCheckArgs {
    /// The options of the device, if checked mode is on.
    pub(crate) fn options(&self) -> Option<CheckOptions> {
        let default = CheckOptions::default();
        let [memory, replay_memory] =
            [default.memory, default.replay_memory].map(|bytes| self.check_memory.unwrap_or(bytes));
        self.check.map(|profile| CheckOptions { profile, memory, replay_memory, ..default })
    }

    /// The orders of each script.
    pub(crate) fn orders(&self) -> u64 {
        self.many_seeds.max(1).into()
    }

    /// What is reported, without the files of suppressions.
    pub(crate) fn filter(&self) -> Filter {
        Filter { only: self.only.clone(), suppressions: self.suppress.clone() }
    }

    /// The exit status if nothing failed, of a check that was partial or not.
    pub(crate) fn status_without_error(&self, is_partial: bool) -> u8 {
        if is_partial && !self.allow_unchecked { UNCHECKED_STATUS } else { 0 }
    }
}

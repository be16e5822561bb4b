//! The options of checked mode.

use std::path::PathBuf;

use clap::Args;
use spelter::check::{CheckOptions, Profile};

use crate::check::{EXIT_STATUS, Suppression};
use crate::value::count;

/// Checked mode.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Checked mode")]
pub(crate) struct CheckArgs {
    /// Find data races: one thread runs the kernel, and each race is reported with both source lines, the reason and a
    /// repair. PROFILE is common (idioms of compilers are notes), spec or strict. The exit status is 66 if there are
    /// any.
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, require_equals = true, default_missing_value = "common")]
    pub(crate) check: Option<Profile>,
    /// The largest number of bytes for the shadow of the memory, and again for replays; 2K is 2048, and M and G are 2²⁰
    /// and 2³⁰.
    #[arg(long, value_name = "BYTES", requires = "check", value_parser = bytes)]
    pub(crate) check_memory: Option<u64>,
    /// Check N runs, each in another order of workgroups, subgroups and lanes, and compare their results.
    #[arg(long, value_name = "N", requires = "check", conflicts_with = "schedule")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) many_seeds: Option<u32>,
    /// Do not report what matches: rule:, line:, kernel: or memory: and a pattern with *, as in line:scan.comp:41.
    #[arg(long, value_name = "KIND:PATTERN", requires = "check")]
    pub(crate) suppress: Vec<Suppression>,
    /// Do not report what a line of this file matches.
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// The exit status if there are errors.
    #[arg(long, value_name = "STATUS", default_value_t = EXIT_STATUS)]
    pub(crate) error_exitcode: u8,
}

/// A number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    count(text).ok_or_else(|| format!("`{text}` is not a number of bytes; 2K is 2048, and M and G are 2²⁰ and 2³⁰"))
}

impl CheckArgs {
    /// The options of the device, if checked mode is on.
    pub(crate) fn options(&self) -> Option<CheckOptions> {
        let default = CheckOptions::default();
        let [memory, replay_memory] =
            [default.memory, default.replay_memory].map(|bytes| self.check_memory.unwrap_or(bytes));
        self.check.map(|profile| CheckOptions { profile, memory, replay_memory, ..default })
    }
}

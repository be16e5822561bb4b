//! The options of checked mode.

use std::path::PathBuf;

use clap::Args;
use spelter::check::report::{Filter, RulePattern, Suppression};
use spelter::check::{CheckOptions, Profile, Shard};
use spelter_jobs::output_file;
use vulkan_spelter::options::{EXIT_STATUS, UNCHECKED_STATUS, too_little};

use crate::value::count;

/// Checked mode.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Checked mode")]
pub(crate) struct CheckArgs {
    /// Find data races: one thread runs the kernel, and each race is reported with both source lines, the reason and a
    /// repair. PROFILE is common (patterns that shader compilers generate are only notes), spec or strict. The exit
    /// status is 66 if a race is found. SPELTER_CHECK sets the profile, too.
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, require_equals = true, default_missing_value = "common")]
    pub(crate) check: Option<Profile>,
    /// The largest number of bytes for the shadow of the memory, and again for replays; M and G are 2²⁰ and 2³⁰. The
    /// least is 320K.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) check_memory: Option<u64>,
    /// Accept that a part was not checked, or stayed undecided. Without this option the exit status is 67 then, if
    /// there is no error.
    #[arg(long)]
    pub(crate) allow_unchecked: bool,
    /// Check N runs, each in another order of workgroups, subgroups and lanes, and compare their results.
    #[arg(long, value_name = "N", conflicts_with = "schedule")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) many_seeds: Option<u32>,
    /// Treat results that depend on the order as errors (exit status: --error-exitcode, 66 by default).
    #[arg(long, requires = "many_seeds")]
    pub(crate) deny_order: bool,
    /// Check only part I of N equal parts of the dispatches (--repeat); the others run unchecked. With --many-seeds,
    /// run only part I of N of the orders, and check all their dispatches.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    pub(crate) shard: Option<Shard>,
    /// Write what each order found as a line of JSON to this file, and run only the orders that it lacks: see `spelter
    /// merge`.
    #[arg(long, value_name = "FILE", requires = "many_seeds", value_parser = output_file())]
    pub(crate) results: Option<PathBuf>,
    /// Continue a results file written by another build, whose results may differ.
    #[arg(long, requires = "results")]
    pub(crate) any_build: bool,
    /// What is reported.
    #[command(flatten)]
    pub(crate) reported: FilterArgs,
    /// Files of the findings.
    #[command(flatten)]
    pub(crate) files: ReportFiles,
    /// The exit status if there are errors; 66 by default.
    #[arg(long, value_name = "STATUS")]
    pub(crate) error_exitcode: Option<u8>,
}

/// Which findings are reported.
#[derive(Clone, Debug, Args)]
pub(crate) struct FilterArgs {
    /// Report findings of these rules only, as in RACE-*,BARRIER.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub(crate) only: Vec<RulePattern>,
    /// Do not report what matches: rule:, line:, kernel: or memory: and a pattern with *, as in line:scan.comp:41. A
    /// kernel has the names of its entry point, of its pipeline and of its shader module.
    #[arg(long, value_name = "KIND:PATTERN")]
    pub(crate) suppress: Vec<Suppression>,
    /// Do not report what a line of this file matches.
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
}

impl FilterArgs {
    /// The filter, without the files of suppressions.
    pub(crate) fn filter(&self) -> Filter {
        Filter { only: self.only.clone(), suppressions: self.suppress.clone() }
    }
}

/// Files of findings.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportFiles {
    /// Write the findings as SARIF 2.1.0, which code-hosting sites show beside the lines.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the slice of the execution that proves the first race as a test for `spelter litmus`; further races go to
    /// files with -2, -3 and so on in their names.
    #[arg(long, value_name = "FILE.test", value_parser = test_name)]
    pub(crate) litmus: Option<PathBuf>,
    /// Write the first finding as a picture of Graphviz: the two accesses, what the program has between them, and what
    /// is missing; further ones go to files with -2, -3 and so on in their names.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) dot: Option<PathBuf>,
}

/// The name of a litmus test, whose format is recognised by its file name extension.
fn test_name(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(extension) if extension == "test" => Ok(path),
        _ => Err("the name must end in .test, by which `spelter litmus` recognises the format".to_owned()),
    }
}

/// A number of bytes with which something can be checked.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    match count(text) {
        Some(bytes) if bytes >= CheckOptions::MIN_MEMORY => Ok(bytes),
        Some(_) => Err(too_little()),
        None => Err(format!("`{text}` is not a number of bytes; 2K is 2048, and M and G are 2²⁰ and 2³⁰")),
    }
}

impl CheckArgs {
    /// The options of the device, if checked mode is on.
    pub(crate) fn options(&self) -> Option<CheckOptions> {
        let default = CheckOptions::default();
        let [memory, replay_memory] =
            [default.memory, default.replay_memory].map(|bytes| self.check_memory.unwrap_or(bytes));
        // The orders of --many-seeds are divided instead of the dispatches.
        let shard = self.shard.filter(|_| self.many_seeds.is_none()).unwrap_or(default.shard);
        self.check.map(|profile| CheckOptions { profile, memory, replay_memory, shard, ..default })
    }

    /// The shard of the orders of --many-seeds that is run.
    pub(crate) fn orders(&self) -> super::Shard {
        // Both types are written as I/N and read from that.
        self.shard.and_then(|shard| shard.to_string().parse().ok()).unwrap_or_default()
    }

    /// The exit status if there are errors.
    pub(crate) fn error_status(&self) -> u8 {
        self.error_exitcode.unwrap_or(EXIT_STATUS)
    }

    /// The exit status if there are no errors, of a check that was partial or not.
    pub(crate) fn status_without_error(&self, is_partial: bool) -> u8 {
        if is_partial && !self.allow_unchecked { UNCHECKED_STATUS } else { 0 }
    }

    /// An option that is given and has no meaning without checked mode, if neither an option nor the environment turns
    /// checked mode on.
    pub(crate) fn without_check(&self) -> Option<&'static str> {
        if self.check.is_some() {
            return None;
        }
        let given = [
            ("--check-memory", self.check_memory.is_some()),
            ("--allow-unchecked", self.allow_unchecked),
            ("--deny-order", self.deny_order),
            ("--many-seeds", self.many_seeds.is_some()),
            ("--shard", self.shard.is_some()),
            ("--only", !self.reported.only.is_empty()),
            ("--suppress", !self.reported.suppress.is_empty()),
            ("--suppressions", !self.reported.suppressions.is_empty()),
            ("--sarif", self.files.sarif.is_some()),
            ("--litmus", self.files.litmus.is_some()),
            ("--dot", self.files.dot.is_some()),
            ("--error-exitcode", self.error_exitcode.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Whether the shard of the orders of --many-seeds is empty: there are more shards than orders.
    pub(crate) fn has_no_order(&self) -> bool {
        self.many_seeds.is_some_and(|seeds| self.orders().pick(0..u64::from(seeds)).next().is_none())
    }
}

//! The options of `spelter check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use spelter::Schedule;
use spelter::check::{Profile, Shard};
use vulkan_spelter::options::{EXIT_STATUS, seconds};

use super::check::{FilterArgs, ReportFiles, bytes};
use super::{ExecArgs, ExecDeviceArgs, output_file};

/// `spelter check`.
#[derive(Debug, Args)]
#[command(after_help = "\
The program runs on Spelter as with `spelter exec`, and its kernels under a checker: see docs/checking.md. Findings go
to standard error while it runs, and to its debug messengers. The exit status is 66 if there is an error, or else that
of the program, or 67 if it is 0 and a part was not checked. Each option has an environment variable, for programs that
are started otherwise: see `spelter info --env`.

Example:
  spelter check --sarif races.sarif -- ctest")]
pub(crate) struct CheckCommandArgs {
    /// The rules: common (patterns that shader compilers generate are only notes), spec or strict.
    #[arg(long, value_name = "PROFILE", default_value = "common")]
    pub(crate) profile: Profile,
    /// Write each finding as a line of JSON, and the counts as the last line.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) json: Option<PathBuf>,
    /// More files of the findings.
    #[command(flatten)]
    pub(crate) files: ReportFiles,
    /// What is reported.
    #[command(flatten)]
    pub(crate) reported: FilterArgs,
    /// Run the program N times, each time in another order of workgroups, subgroups and lanes.
    #[arg(long, value_name = "N", conflicts_with = "schedule")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) many_seeds: Option<u32>,
    /// Check only part I of N equal parts of the dispatches; the others run unchecked, and no part sees a race between
    /// dispatches of two parts. With --many-seeds, run only part I of N of the orders, and check all their dispatches.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    pub(crate) shard: Option<Shard>,
    /// Write what each order found as a line of JSON to this file, and run only the orders that it lacks: see `spelter
    /// merge`.
    #[arg(long, value_name = "FILE", requires = "many_seeds", value_parser = output_file())]
    pub(crate) results: Option<PathBuf>,
    /// Continue a results file written by another build, whose results may differ.
    #[arg(long, requires = "results")]
    pub(crate) any_build: bool,
    /// The largest number of bytes for the shadow of the memory, and again for replays; M and G are 2²⁰ and 2³⁰. The
    /// least is 320K.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) check_memory: Option<u64>,
    /// Accept that a part of what the program did was not checked or stayed undecided, or that no kernel of it ran on a
    /// device of Spelter. Without this option the exit status is 67 then, if there is no error and the program
    /// succeeded.
    #[arg(long)]
    pub(crate) allow_unchecked: bool,
    /// What is done about accesses of the program through mapped pointers. With advise they are not seen, and a note
    /// says what it is likely to read too early; with trap pages are closed to it and each access is compared, which
    /// programs that handle SIGSEGV or read files into mapped memory do not survive.
    #[arg(long, value_name = "HOW", default_value = "advise", value_parser = ["advise", "trap"])]
    pub(crate) host: String,
    /// The exit status if there are errors; 0 keeps the program's.
    #[arg(long, value_name = "STATUS", default_value_t = EXIT_STATUS)]
    pub(crate) error_exitcode: u8,
    /// Advertise a graphics queue, for compute programs that require one (wgpu, Dawn, taichi).
    #[arg(long)]
    pub(crate) graphics: bool,
    /// The time that one dispatch or transfer may run before the device is lost; an hour by default.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) time_limit: Option<Duration>,
    /// The order of workgroups, subgroups and lanes: ascending, reverse or random:SEED.
    #[arg(long, value_name = "ORDER")]
    pub(crate) schedule: Option<Schedule>,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl CheckCommandArgs {
    /// The options of `spelter exec` that run the program.
    pub(crate) fn exec(&self) -> ExecArgs {
        let (time_limit, schedule) = (self.time_limit, self.schedule);
        ExecArgs {
            graphics: self.graphics,
            no_loader: false,
            require_device: false,
            stats: false,
            trace: None,
            profile: None,
            json: false,
            device: ExecDeviceArgs { workers: None, backend: None, time_limit, schedule },
            command: self.command.clone(),
        }
    }

    /// The part of the dispatches that is checked: all of them if the orders of --many-seeds are divided.
    pub(crate) fn dispatches(&self) -> Option<Shard> {
        self.shard.filter(|_| self.many_seeds.is_none())
    }

    /// The part of the orders that is run.
    pub(crate) fn orders(&self) -> super::Shard {
        // Both are written I/N.
        let shard = self.shard.filter(|_| self.many_seeds.is_some());
        shard.and_then(|shard| shard.to_string().parse().ok()).unwrap_or_default()
    }
}

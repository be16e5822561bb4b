//! Environment variables as defaults of options.

use std::ffi::OsString;
use std::time::Duration;

use spelter::Backend;
use spelter::check::Profile;
use spelter_driver::DeviceOptions;
use vulkan_spelter::options::{self, Settings};

use crate::args::{BenchArgs, CheckArgs, Command, DeviceArgs, ExecArgs, Sweep};
use crate::failure::Failure;

/// The variable, if it is set and not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The settings of the variables for which `is_asked` is true; an error for an invalid one.
fn settings(is_asked: impl Fn(&str) -> bool) -> Result<Settings, Failure> {
    let (settings, warnings) = options::read(|name| variable(name).filter(|_| is_asked(name)));
    warnings.into_iter().next().map_or(Ok(settings), |warning| Err(Failure::new(warning)))
}

/// The back end of a program that is started, if no option chooses it.
pub(crate) fn inherited_backend() -> Result<Backend, Failure> {
    let settings = settings(|name| name == "SPELTER_BACKEND")?;
    Ok(settings.backend.unwrap_or_else(|| DeviceOptions::default().backend))
}

/// Completes a command from the environment. Options on the command line take precedence; their variables are not read.
pub(crate) fn complete(command: &mut Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => {
            refuse_schedule(args.check.many_seeds.is_some())?;
            complete_device(&mut args.device)?;
            complete_check(&mut args.check)
        }
        Command::Bench(args) => complete_bench(args),
        Command::Profile(args) if args.command.is_empty() => complete_device(&mut args.device),
        Command::Profile(args) => check_exec(&args.exec()),
        Command::Demo(args) => complete_device(&mut args.device),
        Command::Test(args) => {
            refuse_schedule(args.check.many_seeds > 1)?;
            complete_device(&mut args.device)?;
            complete_profile(&mut args.check.check)
        }
        Command::Info(args) if !args.env => complete_device(&mut args.device),
        Command::Exec(args) => check_exec(args),
        Command::Check(args) => {
            refuse_schedule(args.many_seeds.is_some())?;
            check_exec(&args.exec())
        }
        _ => Ok(()),
    }
}

fn complete_device(args: &mut DeviceArgs) -> Result<(), Failure> {
    let settings = settings(|name| match name {
        "SPELTER_WORKERS" => args.workers.is_none(),
        "SPELTER_BACKEND" => args.backend.is_none(),
        "SPELTER_TIME_LIMIT" => args.time_limit.is_none(),
        "SPELTER_SCHEDULE" => args.schedule.is_none(),
        _ => false,
    })?;
    args.workers = args.workers.or(settings.workers.and_then(|workers| workers.try_into().ok()));
    args.backend = args.backend.or(settings.backend);
    args.time_limit = args.time_limit.or(settings.time_limit);
    args.schedule = args.schedule.or(settings.schedule);
    Ok(())
}

/// `--many-seeds` chooses the orders, as --schedule would.
fn refuse_schedule(many_seeds: bool) -> Result<(), Failure> {
    match variable("SPELTER_SCHEDULE") {
        Some(_) if many_seeds => {
            Err(Failure::usage("--many-seeds chooses the orders: it cannot be used with SPELTER_SCHEDULE"))
        }
        _ => Ok(()),
    }
}

fn complete_profile(profile: &mut Option<Profile>) -> Result<(), Failure> {
    if profile.is_none() {
        *profile = settings(|name| name == "SPELTER_CHECK")?.check.profile;
    }
    Ok(())
}

fn complete_check(args: &mut CheckArgs) -> Result<(), Failure> {
    complete_profile(&mut args.check)?;
    if let Some(option) = args.without_check() {
        return Err(Failure::new(format!("{option} needs --check, which finds data races")));
    }
    if args.check.is_none() {
        return Ok(());
    }
    let settings = settings(|name| match name {
        "SPELTER_CHECK_MEMORY" => args.check_memory.is_none(),
        // With --many-seeds the option is about orders, the variable about dispatches.
        "SPELTER_CHECK_SHARD" => args.shard.is_none() && args.many_seeds.is_none(),
        "SPELTER_CHECK_ONLY" => args.reported.only.is_empty(),
        "SPELTER_CHECK_SUPPRESSIONS" => args.reported.suppressions.is_empty(),
        // `spelter check` sets the status to 0 for its program, whose findings it collects: not those of this one.
        _ => false,
    })?
    .check;
    args.check_memory = args.check_memory.or(settings.memory);
    args.shard = args.shard.or(settings.shard);
    args.reported.only.extend(settings.filter.only);
    args.reported.suppress.extend(settings.filter.suppressions);
    Ok(())
}

fn complete_bench(args: &mut BenchArgs) -> Result<(), Failure> {
    let settings = settings(|name| match name {
        "SPELTER_WORKERS" => args.workers.is_none(),
        "SPELTER_BACKEND" => args.backend.is_none(),
        "SPELTER_TIME_LIMIT" => args.time_limit.is_none(),
        _ => false,
    })?;
    args.workers = args.workers.take().or(settings.workers.map(|workers| Sweep(vec![workers as u64])));
    args.backend = args.backend.or(settings.backend);
    args.time_limit = args.time_limit.or(settings.time_limit);
    Ok(())
}

/// Checks the variables that the program will inherit, since its driver ignores invalid ones.
fn check_exec(args: &ExecArgs) -> Result<(), Failure> {
    let given = [
        ("SPELTER_WORKERS", args.device.workers.is_some()),
        ("SPELTER_BACKEND", args.device.backend.is_some()),
        ("SPELTER_TIME_LIMIT", args.device.time_limit.is_some()),
        ("SPELTER_SCHEDULE", args.device.schedule.is_some()),
        ("SPELTER_STATS", args.stats),
        ("SPELTER_ADVERTISE_GRAPHICS", args.graphics),
    ];
    settings(|name| !given.contains(&(name, true))).map(|_| ())
}

/// The default time limit of a command.
const TIME_LIMIT: Duration = Duration::from_secs(60);

impl BenchArgs {
    /// The time that one dispatch may run before the device is lost.
    pub(crate) fn time_limit(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
    }
}

impl DeviceArgs {
    /// The time that one dispatch or transfer may run before the device is lost.
    pub(crate) fn time_limit(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
    }
}

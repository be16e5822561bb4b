//! Creation of the device that the options describe.

use serde_json::{Value, json};
use spelter::check::CheckOptions;
use spelter::{Context, ContextBuilder, Printer};
use spelter_driver::DeviceOptions;

use crate::args::DeviceArgs;
use crate::failure::Failure;
use crate::output;

/// The settings of the time limit, for messages.
const LIMIT: &str = "--time-limit or SPELTER_TIME_LIMIT";

/// A context with these options.
pub(crate) fn context(args: &DeviceArgs) -> Result<Context, Failure> {
    traced(args, false)
}

/// A context as a Vulkan driver would make it: rules that other drivers do not enforce are not checked.
pub(crate) fn for_scripts(args: &DeviceArgs, check: Option<CheckOptions>) -> Result<Context, Failure> {
    let builder = builder(args).strict(false).printer(output::printer());
    Ok(check.into_iter().fold(builder, ContextBuilder::check).build()?)
}

/// A context with these options, and a timeline if `trace`.
pub(crate) fn traced(args: &DeviceArgs, trace: bool) -> Result<Context, Failure> {
    with_printer(args, trace, output::printer(), None)
}

/// As [`traced`], with a printer for messages of kernels, and in checked mode if that has options.
pub(crate) fn with_printer(
    args: &DeviceArgs,
    trace: bool,
    printer: Printer,
    check: Option<CheckOptions>,
) -> Result<Context, Failure> {
    let builder = builder(args).trace(trace).printer(printer);
    Ok(check.into_iter().fold(builder, ContextBuilder::check).build()?)
}

/// A context with these options that measures dispatches, with a timeline if `trace`.
pub(crate) fn profiled(args: &DeviceArgs, trace: bool) -> Result<Context, Failure> {
    Ok(builder(args).profile(true).trace(trace).printer(output::printer()).build()?)
}

/// The device that the options make, as settings of a job array: what takes effect, whether an option, a variable or
/// the machine says it. Two that are equal give the same results.
pub(crate) fn settings(args: &DeviceArgs, check: Option<CheckOptions>) -> Value {
    let default = DeviceOptions::default();
    let options = DeviceOptions {
        workers: args.workers.map_or(default.workers, usize::from),
        backend: args.backend.unwrap_or(default.backend),
        check,
        ..default
    };
    let made = options.properties();
    json!({
        "workers": made.workers,
        "backend": made.backend.name(),
        "time_limit": args.time_limit().as_secs_f64(),
        "schedule": args.schedule.unwrap_or_default().to_string(),
    })
}

fn builder(args: &DeviceArgs) -> ContextBuilder {
    // `environment.rs` reads SPELTER_CHECK for the command that reports what is found.
    let builder = Context::builder()
        .checked_by_environment(false)
        .time_limit(args.time_limit())
        .time_limit_is_set_by(LIMIT)
        .schedule(args.schedule.unwrap_or_default());
    let builder = match args.workers {
        Some(workers) => builder.workers(workers.into()),
        None => builder,
    };
    match args.backend {
        Some(backend) => builder.backend(backend),
        None => builder,
    }
}

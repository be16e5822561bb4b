//! Options that users set through environment variables.

mod check;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use spelter_driver::{Backend, CHECKED_TIME_LIMIT, DeviceOptions, Schedule};
use spelter_locks::Computed;

pub use check::{CheckSettings, EXIT_STATUS, UNCHECKED_STATUS, too_little};

use crate::message::print_line;
use spelter_driver::environment::variable;

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The programs and crates that read it.
    pub read_by: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

// Readers: the driver in any program, the crates in programs that use them, the commands of `spelter` that create a
// device, and those that locate the driver.
const DRIVER: &str = "the Vulkan driver";
const ALL: &str = "the Vulkan driver; the crate spelter-wgpu; run, bench, profile, demo, test and info";
const ALL_BUT_BENCH: &str = "the Vulkan driver; the crates spelter and spelter-wgpu; run, profile, demo, test and info";
const DRIVER_AND_WGPU: &str = "the Vulkan driver and the crate spelter-wgpu";
const CRATES: &str = "the crates spelter and spelter-wgpu";
const WGPU: &str = "the crate spelter-wgpu";
const FINDERS: &str = "exec, check, profile and icd";

/// Every variable that is read, with its meaning. Set-user-ID programs ignore all of them.
pub const VARIABLES: [Variable; 27] = {
    const fn of(name: &'static str, read_by: &'static str, meaning: &'static str) -> Variable {
        Variable { name, read_by, meaning }
    }
    [
        of(
            WORKERS,
            ALL,
            "worker threads, 1 to 1024; by default as many as the machine runs at once, in spelter-wgpu at most 4",
        ),
        of(
            BACKEND,
            ALL,
            "back end that runs kernels: avx512, avx2 or interpreter; by default the fastest of the machine",
        ),
        of(
            TIME_LIMIT,
            ALL,
            "seconds that one command may run before its device is lost; 60 by default, 3600 in checked mode",
        ),
        of(
            SCHEDULE,
            ALL_BUT_BENCH,
            "order of workgroups, subgroups and lanes: ascending (the default), reverse or random:SEED; another order \
             finds kernels that lack a barrier",
        ),
        of(HEAP_SIZE, DRIVER, "MiB of device memory; by default three quarters of the machine's"),
        of(
            PROFILE,
            DRIVER,
            "file for the time that each pipeline took (`spelter exec --profile`), written after each submission",
        ),
        of(
            TRACE,
            DRIVER_AND_WGPU,
            "file for a timeline of queues and workers (chrome://tracing, Perfetto), written after each submission",
        ),
        of(STATS, DRIVER, "1: print how many pipelines, submissions and bytes there were when a device is destroyed"),
        of(
            DEVICE_MARK,
            DRIVER,
            "file that is created when a program creates a device (`spelter exec --require-device`)",
        ),
        of(GRAPHICS, DRIVER, "1: claim a graphics queue, for programs that require one and only compute"),
        of(
            CONFORMANCE,
            DRIVER,
            "version of the conformance tests that the device claims to pass, such as 1.3.0.0; none by default, since it \
             was not submitted: for programs that hide devices without one (wgpu)",
        ),
        of(QUIET, DRIVER, "1: print no messages; debug messengers still get them"),
        check::VARIABLES[0],
        check::VARIABLES[1],
        check::VARIABLES[2],
        check::VARIABLES[3],
        check::VARIABLES[4],
        check::VARIABLES[5],
        check::VARIABLES[6],
        check::VARIABLES[7],
        check::VARIABLES[8],
        of(
            "SPELTER_CHECK_ALLOW_UNCHECKED",
            CRATES,
            "1: with SPELTER_CHECK, a test does not fail if a part of its accesses was not checked",
        ),
        of("SPELTER_WGPU", WGPU, "1: `request_adapter_or_spelter` takes Spelter, whatever other adapters there are"),
        of("WGPU_ADAPTER_NAME", WGPU, "spelter: as SPELTER_WGPU=1; wgpu reads the variable, too"),
        of(
            "SPELTER_ICD_LIBRARY",
            FINDERS,
            "path of the driver's library; by default it is looked for beside the program spelter, in its lib folder, \
             and inside of the program",
        ),
        of("XDG_CACHE_HOME", DRIVER_AND_WGPU, "the folder for the key of stored pipelines, spelter/pipeline.key in it"),
        of("HOME", DRIVER_AND_WGPU, "if XDG_CACHE_HOME is not set, the key is .cache/spelter/pipeline.key in it"),
    ]
};

const WORKERS: &str = "SPELTER_WORKERS";
const BACKEND: &str = "SPELTER_BACKEND";
const TIME_LIMIT: &str = "SPELTER_TIME_LIMIT";
/// The variable, with the option of `spelter exec` that sets it.
const SETS_TIME_LIMIT: &str = "SPELTER_TIME_LIMIT (`spelter exec --time-limit`)";
const SCHEDULE: &str = "SPELTER_SCHEDULE";
const HEAP_SIZE: &str = "SPELTER_HEAP_SIZE";
const PROFILE: &str = "SPELTER_PROFILE";
const TRACE: &str = "SPELTER_TRACE";
const STATS: &str = "SPELTER_STATS";
const DEVICE_MARK: &str = "SPELTER_DEVICE_MARK";
const GRAPHICS: &str = "SPELTER_ADVERTISE_GRAPHICS";
const CONFORMANCE: &str = "SPELTER_CONFORMANCE";
const QUIET: &str = "SPELTER_QUIET";

/// The values of the variables.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) device: DeviceOptions,
    pub(crate) profile: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) stats: bool,
    pub(crate) device_mark: Option<PathBuf>,
    pub(crate) graphics: bool,
    pub(crate) conformance: Conformance,
    pub(crate) quiet: bool,
    pub(crate) check: CheckSettings,
}

impl Options {
    /// The options of this process, read once. Invalid values are reported on standard error and count as not set.
    #[inline]
    pub(crate) fn get() -> &'static Self {
        static OPTIONS: Computed<Options> = Computed::new();
        OPTIONS.get().unwrap_or_else(|| Self::first(&OPTIONS))
    }

    #[cold]
    fn first(place: &Computed<Self>) -> &'static Self {
        let (settings, warnings) = read(variable);
        let options = place.set(Self::new(settings));
        // Once, by the thread whose options count.
        if options.is_ok_and(|options| !options.quiet) {
            warnings.iter().for_each(|warning| print_line(&format!("spelter: {warning}; it counts as not set")));
        }
        options.unwrap_or_else(|others| others)
    }

    fn new(settings: Settings) -> Self {
        let mut device = DeviceOptions::default();
        device.workers = settings.workers.unwrap_or(device.workers);
        device.backend = settings.backend.unwrap_or(device.backend);
        // Checks make a kernel slower, and each replay runs it again.
        let limit = if settings.check.profile.is_some() { CHECKED_TIME_LIMIT } else { device.time_limit };
        device.time_limit = settings.time_limit.unwrap_or(limit);
        device.time_limit_is_set_by = SETS_TIME_LIMIT;
        device.schedule = settings.schedule.unwrap_or(device.schedule);
        device.heap_size = settings.heap_size.unwrap_or(device.heap_size);
        device.compilers = device.workers;
        device.strict = false;
        device.check = settings.check.options();
        Self {
            device,
            profile: settings.profile,
            trace: settings.trace,
            stats: settings.stats,
            device_mark: settings.device_mark,
            graphics: settings.graphics,
            conformance: settings.conformance.unwrap_or_default(),
            quiet: settings.quiet,
            check: settings.check,
        }
    }
}

/// The values of the variables that are set and valid.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Worker threads.
    pub workers: Option<usize>,
    /// The back end that runs kernels.
    pub backend: Option<Backend>,
    /// The maximum time of one command.
    pub time_limit: Option<Duration>,
    /// The order of workgroups, subgroups and lanes.
    pub schedule: Option<Schedule>,
    /// The size of device memory in bytes.
    pub heap_size: Option<u64>,
    /// The file of the profile.
    pub profile: Option<PathBuf>,
    /// The file of the timeline.
    pub trace: Option<PathBuf>,
    /// Whether to print statistics when a device is destroyed.
    pub stats: bool,
    /// The file that says that there was a device.
    pub device_mark: Option<PathBuf>,
    /// Whether to claim a graphics queue.
    pub graphics: bool,
    /// The version of the conformance tests that is claimed.
    pub conformance: Option<Conformance>,
    /// Whether to print no messages.
    pub quiet: bool,
    /// Checked mode.
    pub check: CheckSettings,
}

/// `VkConformanceVersion`: major, minor, subminor, patch; zeros claim nothing.
pub type Conformance = [u8; 4];

/// Reads the variables through a function that returns those that are set and not empty. Also returns a sentence for
/// each invalid value.
pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> (Settings, Vec<String>) {
    let mut warnings = Vec::new();
    let settings = Settings {
        workers: parse_variable(&variable, WORKERS, workers, &mut warnings),
        backend: parse_variable(&variable, BACKEND, backend, &mut warnings),
        time_limit: parse_variable(&variable, TIME_LIMIT, seconds, &mut warnings),
        schedule: parse_variable(&variable, SCHEDULE, str::parse, &mut warnings),
        heap_size: parse_variable(&variable, HEAP_SIZE, mebibytes, &mut warnings),
        profile: variable(PROFILE).map(PathBuf::from),
        trace: variable(TRACE).map(PathBuf::from),
        stats: parse_variable(&variable, STATS, flag, &mut warnings).unwrap_or(false),
        device_mark: variable(DEVICE_MARK).map(PathBuf::from),
        graphics: parse_variable(&variable, GRAPHICS, flag, &mut warnings).unwrap_or(false),
        conformance: parse_variable(&variable, CONFORMANCE, conformance, &mut warnings),
        quiet: parse_variable(&variable, QUIET, flag, &mut warnings).unwrap_or(false),
        check: CheckSettings::read(&variable, &mut warnings),
    };
    (settings, warnings)
}

/// The value of a variable; `None` if it is not set, or if it is invalid, for which a warning is added.
fn parse_variable<T>(
    variable: &impl Fn(&str) -> Option<OsString>,
    name: &str,
    parse: fn(&str) -> Result<T, String>,
    warnings: &mut Vec<String>,
) -> Option<T> {
    let value = variable(name)?;
    let value = value.to_string_lossy();
    let parsed = parse(&value);
    parsed.map_err(|problem| warnings.push(format!("{name}={value}: {problem}"))).ok()
}

fn workers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=spelter_driver::MAX_WORKERS).contains(number));
    number.ok_or_else(|| "not a number of workers from 1 to 1024".to_owned())
}

fn backend(text: &str) -> Result<Backend, String> {
    Backend::available().find(|backend| backend.name() == text).ok_or_else(|| {
        let names: Vec<_> = Backend::available().map(Backend::name).collect();
        format!("not one of this machine's back ends, {}", names.join(", "))
    })
}

/// A positive number of seconds, up to a year.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(seconds > 0.0 && seconds <= 31_536_000.0) {
        return Err("must be more than 0 and at most 31536000 (a year)".to_owned());
    }
    let limit = Duration::from_secs_f64(seconds);
    if limit.is_zero() { Err("less than a nanosecond".to_owned()) } else { Ok(limit) }
}

fn mebibytes(text: &str) -> Result<u64, String> {
    let number: Option<u64> = text.parse().ok().filter(|&number| number > 0);
    number.and_then(|number| number.checked_mul(1 << 20)).ok_or_else(|| "not a number of MiB".to_owned())
}

/// `1.3` or `1.3.0.0`; `0` claims nothing.
fn conformance(text: &str) -> Result<Conformance, String> {
    let mut version = Conformance::default();
    let mut places = version.iter_mut();
    for part in text.split('.') {
        let (place, number) = (places.next(), part.parse().ok());
        let (Some(place), Some(number)) = (place, number) else {
            return Err("not a version of the conformance tests, MAJOR.MINOR.SUBMINOR.PATCH".to_owned());
        };
        *place = number;
    }
    Ok(version)
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("neither 1 nor 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(set: &[(&str, &str)]) -> (Settings, Vec<String>) {
        read(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn variables_are_read() {
        let (settings, warnings) = read_from(&[
            ("SPELTER_WORKERS", "3"),
            ("SPELTER_BACKEND", "interpreter"),
            ("SPELTER_TIME_LIMIT", "0.5"),
            ("SPELTER_SCHEDULE", "random:7"),
            ("SPELTER_HEAP_SIZE", "64"),
            ("SPELTER_STATS", "1"),
            ("SPELTER_ADVERTISE_GRAPHICS", "0"),
            ("SPELTER_CONFORMANCE", "1.3.7"),
        ]);
        assert_eq!(warnings, [""; 0]);
        let options = Options::new(settings);
        assert_eq!((options.device.workers, options.device.compilers), (3, 3));
        assert_eq!(options.device.backend.name(), "interpreter");
        assert_eq!(options.device.time_limit, Duration::from_millis(500));
        assert_eq!(options.device.schedule, Schedule::Random(7));
        assert_eq!(options.device.heap_size, 64 << 20);
        assert!(options.stats && !options.graphics);
        assert_eq!(options.conformance, [1, 3, 7, 0]);
        assert_eq!(conformance("0"), Ok([0; 4]));
    }

    #[test]
    fn invalid_values_are_reported_and_count_as_not_set() {
        for (name, values) in [
            (WORKERS, &["0", "x", "-1", "1025", "1e3"][..]),
            (BACKEND, &["mmx", "AVX2"]),
            (TIME_LIMIT, &["-3", "0", "nan", "inf", "1s", "1e-10"]),
            (SCHEDULE, &["random", "random:x", "REVERSE", "descending"]),
            (HEAP_SIZE, &["0", "-1", "1g", "99999999999999999999", "17592186044416"]),
            (STATS, &["2", "ja"]),
            (GRAPHICS, &["y"]),
            (CONFORMANCE, &["1.3.", "x", "1.3.0.0.1", "256", "-1"]),
            (QUIET, &["-"]),
        ] {
            for value in values {
                let (settings, warnings) = read_from(&[(name, value)]);
                assert_eq!(settings, Settings::default(), "{name}={value}");
                assert!(warnings.len() == 1 && warnings[0].starts_with(&format!("{name}={value}: ")), "{warnings:?}");
            }
        }
        let default = DeviceOptions::default();
        let options = Options::new(Settings::default());
        let (compilers, time_limit_is_set_by) = (default.workers, SETS_TIME_LIMIT);
        assert_eq!(options.device, DeviceOptions { compilers, time_limit_is_set_by, strict: false, ..default });
    }

    #[test]
    fn all_variables_are_listed() {
        let listed = |name: &str| VARIABLES.iter().any(|variable| variable.name == name);
        read(|name| {
            assert!(listed(name), "{name}");
            None
        });
    }
}

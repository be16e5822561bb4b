//! What users set through the environment.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use spelter_driver::{Backend, DeviceOptions};

use crate::environment::variable;

/// Every variable that the driver reads, with what it means. Set-user-ID programs believe none of them.
pub const VARIABLES: [(&str, &str); 10] = [
    ("SPELTER_WORKERS", "worker threads; by default as many as the machine runs at once"),
    ("SPELTER_BACKEND", "what runs kernels: avx512, avx2 or interpreter; by default the best that the machine has"),
    ("SPELTER_TIME_LIMIT", "seconds that one command may run before its device is lost; 60 by default"),
    ("SPELTER_HEAP_SIZE", "MiB of device memory; by default three quarters of the machine's"),
    (
        "SPELTER_TRACE",
        "a file that gets a timeline of queues and workers (chrome://tracing, Perfetto) when a device is destroyed",
    ),
    ("SPELTER_STATS", "1: print how many pipelines, submissions and bytes there were when a device is destroyed"),
    ("SPELTER_ADVERTISE_GRAPHICS", "1: claim a graphics queue, for programs that insist on one and only compute"),
    ("SPELTER_QUIET", "1: print no messages; debug messengers still get them"),
    ("XDG_CACHE_HOME", "the folder for the key of stored pipelines, spelter/pipeline.key in it"),
    ("HOME", "the folder for that where XDG_CACHE_HOME is not set, in .cache in it"),
];

/// The variables' values.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) device: DeviceOptions,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) stats: bool,
    pub(crate) graphics: bool,
    pub(crate) quiet: bool,
}

impl Options {
    /// The options of this process, read once.
    pub(crate) fn get() -> &'static Self {
        static OPTIONS: OnceLock<Options> = OnceLock::new();
        OPTIONS.get_or_init(|| Self::read(|name| variable(name)?.into_string().ok()))
    }

    /// Values that make no sense count as not set.
    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| variable(name).and_then(|text| text.parse::<u64>().ok()).filter(|&number| number > 0);
        let flag = |name: &str| variable(name).is_some_and(|text| text != "0");
        let mut device = DeviceOptions::default();
        if let Some(workers) = number("SPELTER_WORKERS") {
            device.workers = usize::try_from(workers).unwrap_or(1).min(1024);
        }
        if let Some(name) = variable("SPELTER_BACKEND")
            && let Some(backend) = Backend::available().find(|backend| backend.name() == name)
        {
            device.backend = backend;
        }
        if let Some(seconds) = variable("SPELTER_TIME_LIMIT").and_then(|text| text.parse().ok())
            && let Ok(limit) = Duration::try_from_secs_f64(seconds)
            && !limit.is_zero()
        {
            device.time_limit = limit;
        }
        if let Some(size) = number("SPELTER_HEAP_SIZE") {
            device.heap_size = size.saturating_mul(1 << 20);
        }
        device.compilers = device.workers;
        device.check_views = false;
        Self {
            device,
            trace: variable("SPELTER_TRACE").map(PathBuf::from),
            stats: flag("SPELTER_STATS"),
            graphics: flag("SPELTER_ADVERTISE_GRAPHICS"),
            quiet: flag("SPELTER_QUIET"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Options {
        Options::read(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_are_read_and_nonsense_is_not() {
        let options = read(&[
            ("SPELTER_WORKERS", "3"),
            ("SPELTER_BACKEND", "interpreter"),
            ("SPELTER_TIME_LIMIT", "0.5"),
            ("SPELTER_HEAP_SIZE", "64"),
            ("SPELTER_STATS", "1"),
            ("SPELTER_ADVERTISE_GRAPHICS", "0"),
        ]);
        assert_eq!(options.device.workers, 3);
        assert_eq!(options.device.backend.name(), "interpreter");
        assert_eq!(options.device.time_limit, Duration::from_millis(500));
        assert_eq!(options.device.heap_size, 64 << 20);
        assert!(options.stats && !options.graphics);
        let nonsense = read(&[("SPELTER_WORKERS", "0"), ("SPELTER_BACKEND", "mmx"), ("SPELTER_TIME_LIMIT", "-1")]);
        let default = DeviceOptions::default();
        assert_eq!(nonsense.device, DeviceOptions { compilers: default.workers, check_views: false, ..default });
    }
}

//! Options: which device the adapter describes and opens.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use log::Level;
use spelter_driver::environment::variable;
use spelter_driver::{DeviceOptions, MAX_WORKERS};
use wgpu_types::{AdapterInfo, Backend, DeviceType, Features, Limits};

use crate::device::Environment;
use crate::error::report;
use crate::{capabilities, open};

/// Worker threads of a device by default, at most: a test program opens a device for each of its tests.
const DEFAULT_WORKERS: usize = 4;

/// Options of an adapter and its devices.
///
/// ```
/// use spelter_wgpu::Options;
///
/// // A device as small as WebGPU permits: does the program stay inside the limits that every browser has?
/// let options = Options::new().limits(wgpu::Limits::defaults()).features(wgpu::Features::empty());
/// let (device, _queue) = options.device()?;
/// assert_eq!(device.limits().max_compute_invocations_per_workgroup, 256);
/// # Ok::<(), wgpu::RequestDeviceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    device: DeviceOptions,
    features: Features,
    limits: Limits,
    device_type: DeviceType,
    backend: Backend,
    environment: Environment,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults: all features and limits; as many workers as the machine runs threads at once, at most 4.
    pub fn new() -> Self {
        let defaults = DeviceOptions::default();
        let device = DeviceOptions {
            workers: defaults.workers.min(DEFAULT_WORKERS),
            // wgpu's validation is in front of it, and has other rules in some places.
            strict: false,
            time_limit_is_set_by: "`spelter_wgpu::Options::time_limit` or SPELTER_TIME_LIMIT",
            ..defaults
        };
        Self {
            device,
            features: capabilities::features(),
            limits: capabilities::limits(),
            device_type: DeviceType::Cpu,
            backend: Backend::Vulkan,
            environment: Environment::default(),
        }
    }

    /// The defaults, changed by the environment: `SPELTER_WORKERS` (threads), `SPELTER_BACKEND` (`avx512`, `avx2` or
    /// `interpreter`), `SPELTER_TIME_LIMIT` (seconds), `SPELTER_SCHEDULE` (`ascending`, `reverse` or `random:SEED`).
    /// A value that is not understood is logged, and counts as not set.
    ///
    /// `SPELTER_CHECK` (`1`, or a profile: `common`, `spec`, `strict`) turns checked mode on, unless the options have
    /// it. What is found is printed when the program waits, and when the device is dropped; an error is a panic of the
    /// thread that drops the device.
    ///
    /// `SPELTER_TRACE` names a file for a timeline of queues and workers, which all devices of the process share. The
    /// labels of passes, debug groups and pipelines are in it.
    ///
    /// In a process with more rights than its caller (set-user-ID) no variable counts.
    pub fn from_env() -> Self {
        let mut options = Self::read(|name| variable(name)?.into_string().ok());
        options.environment = Environment { may_check: true, trace: variable("SPELTER_TRACE").map(PathBuf::from) };
        options
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut options = Self::new();
        let device = &mut options.device;
        set(&variable, "SPELTER_WORKERS", &mut device.workers, |text| {
            text.parse().ok().filter(|workers| (1..=MAX_WORKERS).contains(workers))
        });
        set(&variable, "SPELTER_BACKEND", &mut device.backend, |text| FromStr::from_str(text).ok());
        set(&variable, "SPELTER_TIME_LIMIT", &mut device.time_limit, |text| {
            let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0)?;
            Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero())
        });
        set(&variable, "SPELTER_SCHEDULE", &mut device.schedule, |text| FromStr::from_str(text).ok());
        options
    }

    /// Worker threads of each device.
    pub fn workers(mut self, workers: usize) -> Self {
        self.device.workers = workers;
        self
    }

    /// How long one command may run before its device is lost.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.device.time_limit = limit;
        self
    }

    /// The features of the adapter: those of these that Spelter has.
    pub fn features(mut self, features: Features) -> Self {
        self.features = capabilities::features() & features;
        self
    }

    /// The limits of the adapter: for each limit, the stricter one of these and Spelter's.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = capabilities::limits().or_worse_values_from(&limits);
        self
    }

    /// What the adapter says it is. Some libraries switch features off for `DeviceType::Cpu`.
    pub fn device_type(mut self, device_type: DeviceType) -> Self {
        self.device_type = device_type;
        self
    }

    /// The backend that the adapter names, by default `Backend::Vulkan`, whose rules it follows: wgpu passes SPIR-V and
    /// pipeline caches to no other. `Backend::Noop` is for libraries that ask an adapter of Vulkan for its handles.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Changes options of the driver that have no method here: device memory, the back end that runs kernels, another
    /// order of workgroups, what kernels print, and checked mode, which finds data races.
    ///
    /// ```
    /// use spelter_wgpu::spelter_driver::Schedule;
    ///
    /// let options = spelter_wgpu::Options::new().driver(|options| options.schedule = Schedule::Reverse);
    /// # let _ = options.instance();
    /// ```
    pub fn driver(mut self, change: impl FnOnce(&mut DeviceOptions)) -> Self {
        change(&mut self.device);
        self
    }

    /// An instance whose only adapter is Spelter.
    pub fn instance(&self) -> wgpu::Instance {
        open::instance(self.clone())
    }

    /// Spelter as an adapter of an instance that may have others.
    pub fn adapter_on(&self, instance: &wgpu::Instance) -> wgpu::Adapter {
        open::adapter(self, instance)
    }

    /// A real adapter of the instance if there is one for the request, else Spelter with these options: as
    /// [`request_adapter_or_spelter`](crate::request_adapter_or_spelter).
    pub async fn request_adapter_or_spelter(
        &self,
        instance: &wgpu::Instance,
        request: &wgpu::RequestAdapterOptions<'_, '_>,
    ) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
        open::adapter_or(instance, request, || self.adapter_on(instance)).await
    }

    /// A device with all features and limits of the adapter, and its queue.
    pub fn device(&self) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
        open::device(self)
    }

    pub(crate) fn device_options(&self) -> DeviceOptions {
        self.device.clone()
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn claims(&self) -> (Features, Limits) {
        (self.features, self.limits.clone())
    }

    pub(crate) fn info(&self) -> AdapterInfo {
        capabilities::info(&self.device.properties().device_name, self.device_type, self.backend)
    }
}

/// Sets an option if its variable is set and understood.
fn set<T>(variable: &impl Fn(&str) -> Option<String>, name: &str, option: &mut T, parse: impl Fn(&str) -> Option<T>) {
    let Some(text) = variable(name) else { return };
    match parse(&text) {
        Some(value) => *option = value,
        None => report(Level::Warn, format_args!("{name}={text} is not understood and counts as not set")),
    }
}

#[cfg(test)]
mod tests {
    use spelter_driver::Schedule;

    use super::*;

    #[test]
    fn variables_are_read_and_wrong_values_count_as_not_set() {
        let of = |set: &'static [(&str, &str)]| {
            Options::read(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())).device
        };
        let read = of(&[
            ("SPELTER_WORKERS", "3"),
            ("SPELTER_BACKEND", "interpreter"),
            ("SPELTER_TIME_LIMIT", "0.5"),
            ("SPELTER_SCHEDULE", "random:7"),
        ]);
        assert_eq!((read.workers, read.backend.name()), (3, "interpreter"));
        assert_eq!((read.time_limit, read.schedule), (Duration::from_millis(500), Schedule::Random(7)));
        let wrong = of(&[
            ("SPELTER_WORKERS", "0"),
            ("SPELTER_BACKEND", "mmx"),
            ("SPELTER_TIME_LIMIT", "-1"),
            ("SPELTER_SCHEDULE", "down"),
        ]);
        assert_eq!(wrong, Options::new().device);
    }

    #[test]
    fn a_profile_only_makes_the_adapter_smaller() {
        let options = Options::new().limits(capabilities::limits()).features(Features::all());
        assert_eq!(options.claims(), (capabilities::features(), capabilities::limits()));
        let small = Options::new().limits(Limits::downlevel_defaults()).features(Features::SHADER_F16);
        let (features, limits) = small.claims();
        assert_eq!(features, Features::SHADER_F16);
        assert_eq!(limits.max_storage_buffers_per_shader_stage, 4);
        assert_eq!(limits.min_uniform_buffer_offset_alignment, 256);
    }
}

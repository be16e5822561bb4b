//! Options and creation of a device and its first context.

use std::sync::Arc;
use std::time::Duration;

use spelter_driver::CheckedByEnvironment;
use spelter_driver::check::CheckOptions;
use spelter_driver::environment::variable;
use spelter_driver::profile::Profile;
use spelter_driver::{Backend, Device, DeviceOptions, MAX_WORKERS, Observer, Observers, Printer, Schedule};

use super::Context;
use crate::error::Error;
use crate::share::Share;
use crate::trace::Trace;

/// The order of invocations, of contexts whose builders choose none.
const SCHEDULE: &str = "SPELTER_SCHEDULE";

/// Dispatches whose timestamps a profile keeps.
const MAX_TIMESTAMPS: usize = 1 << 16;

/// Options of a context and its device: see [`Context::builder`].
///
/// ```
/// use spelter::Context;
///
/// # fn main() -> Result<(), spelter::Error> {
/// let context = Context::builder().workers(2).memory(256 << 20).poison(true).build()?;
/// assert_eq!(context.device().properties().workers, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ContextBuilder {
    options: DeviceOptions,
    poison: bool,
    trace: bool,
    profile: bool,
    /// The order that the program chose.
    schedule: Option<Schedule>,
    by_environment: bool,
}

impl ContextBuilder {
    fn new() -> Self {
        let options =
            DeviceOptions { time_limit_is_set_by: "`ContextBuilder::time_limit`", ..DeviceOptions::default() };
        Self { options, poison: false, trace: false, profile: false, schedule: None, by_environment: true }
    }

    /// The number of worker threads; by default as many as the machine runs at once. 0 counts as 1; more than 1024 is
    /// [`Error::Options`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().workers(3).build()?;
    /// assert_eq!(context.device().properties().workers, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// The time that one dispatch or transfer may run before the device is lost; 60 seconds by default. 0 is
    /// [`Error::Options`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let limit = std::time::Duration::from_millis(50);
    /// let context = spelter::Context::builder().workers(1).time_limit(limit).build()?;
    /// let endless = "@group(0) @binding(0) var<storage, read_write> a: u32;
    ///     @compute @workgroup_size(1) fn main() { while a == 0u { a = 0u; } }";
    /// let (program, a) = (context.program_wgsl(endless)?, context.buffer_zeroed(4)?);
    /// context.dispatch(&program).bind(0, 0, &a).groups([1, 1, 1])?;
    /// assert!(matches!(context.finish(), Err(spelter::Error::DeviceLost(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.options.time_limit = limit;
        self
    }

    /// The name of the setting by which users of the program change the time limit, such as a command-line option.
    /// [`Error::DeviceLost`] quotes it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let limit = std::time::Duration::from_millis(50);
    /// let context = spelter::Context::builder().time_limit(limit).time_limit_is_set_by("--patience").build()?;
    /// let endless = "@group(0) @binding(0) var<storage, read_write> a: u32;
    ///     @compute @workgroup_size(1) fn main() { while a == 0u { a = 0u; } }";
    /// let (program, a) = (context.program_wgsl(endless)?, context.buffer_zeroed(4)?);
    /// context.dispatch(&program).bind(0, 0, &a).groups([1, 1, 1])?;
    /// // The rest of the text names the loop that did not end, and the invocation.
    /// let lost = "device lost: kernel `main` ran longer than the time limit of 50ms, which --patience sets";
    /// assert!(context.finish().unwrap_err().to_string().starts_with(lost));
    /// # Ok(())
    /// # }
    /// ```
    pub fn time_limit_is_set_by(mut self, what: &'static str) -> Self {
        self.options.time_limit_is_set_by = what;
        self
    }

    /// The size of the device memory in bytes, at least 1; three quarters of the machine's memory by default. The
    /// system commits only pages that are used.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().memory(16 << 20).build()?;
    /// let _most = context.buffer(12 << 20).build()?;
    /// let error = context.buffer(8 << 20).label("more").build().unwrap_err();
    /// assert_eq!(error.to_string(), "out of memory: buffer `more` of 8388608 bytes");
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.heap_size = bytes;
        self
    }

    /// The back end that runs kernels: by default the fastest one that the machine supports.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().backend(spelter::Backend::Interpreter).build()?;
    /// assert_eq!(context.device().properties().backend, spelter::Backend::Interpreter);
    /// # Ok(())
    /// # }
    /// ```
    pub fn backend(mut self, backend: Backend) -> Self {
        self.options.backend = backend;
        self
    }

    /// The order of workgroups, subgroups and lanes; ascending by default. The results of a program without data races
    /// do not depend on it. A kernel that lacks a barrier mostly computes what was meant in ascending order, and
    /// something else in others.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// use spelter::{Context, Schedule};
    /// // Each invocation reads what the one before it wrote, without a barrier.
    /// let shifted = "var<workgroup> tile: array<u32, 64>;
    ///     @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    ///     @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    ///         tile[i] = i;
    ///         out[i] = tile[max(i, 1u) - 1u];
    ///     }";
    /// let found = |schedule| -> Result<u32, spelter::Error> {
    ///     let context = Context::builder().workers(1).schedule(schedule).build()?;
    ///     let (program, out) = (context.program_wgsl(shifted)?, context.buffer_zeroed(256)?);
    ///     context.dispatch(&program).bind(0, 0, &out).groups([1, 1, 1])?;
    ///     Ok(context.read::<u32>(&out)?[48])
    /// };
    /// assert_eq!(found(Schedule::Ascending)?, 47);
    /// assert_eq!(found(Schedule::Reverse)?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The environment variable `SPELTER_SCHEDULE` (`ascending`, `reverse` or `random:SEED`) does the same for all
    /// contexts of a process whose builders do not: `SPELTER_SCHEDULE=random:7 cargo test`.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = Some(schedule);
        self
    }

    /// Fills undefined contents of new and invalidated resources with junk, so that a program that relies on them fails
    /// visibly. Costs time; off by default.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().poison(true).build()?;
    /// let buffer = context.buffer(4).build()?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0xa5a5_a5a5]); // undefined, and not 0 by luck
    /// # Ok(())
    /// # }
    /// ```
    pub fn poison(mut self, on: bool) -> Self {
        self.poison = on;
        self
    }

    /// Receives what kernels print (`NonSemantic.DebugPrintf`); without a printer the output is dropped.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let printer = spelter::Printer::new(100, |printed| eprintln!("{:?}: {}", printed.invocation, printed.text));
    /// let context = spelter::Context::builder().printer(printer).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn printer(mut self, printer: Printer) -> Self {
        self.options.printer = Some(printer);
        self
    }

    /// Records a timeline of contexts, queues and workers: see [`Context::write_trace`]. Off by default.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().trace(true).build()?;
    /// let buffer = context.buffer_from(&[1u32])?;
    /// context.fill(&buffer, 2)?;
    /// context.finish()?;
    /// let mut json = Vec::new();
    /// context.write_trace(&mut json).expect("a vector takes everything");
    /// assert!(String::from_utf8_lossy(&json).contains("record batch 1"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn trace(mut self, on: bool) -> Self {
        self.trace = on;
        self
    }

    /// Measures dispatches: see [`Context::profile`]. Off by default, since it takes the time twice for each part of a
    /// dispatch that a worker runs.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().profile(true).build()?;
    /// assert!(context.profile().is_some_and(|profile| profile.programs.is_empty()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn profile(mut self, on: bool) -> Self {
        self.profile = on;
        self
    }

    /// Checked mode: data races in kernels are found while they run: see [`Context::findings`]. One worker runs
    /// kernels, whatever the other options say. Off by default.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// use spelter::check::{CheckOptions, Rule};
    ///
    /// let context = spelter::Context::builder().check(CheckOptions::default()).build()?;
    /// let racy = "@group(0) @binding(0) var<storage, read_write> sum: u32;
    ///     @compute @workgroup_size(2) fn main() { sum += 1u; }";
    /// let (program, sum) = (context.program_wgsl(racy)?, context.buffer_zeroed(4)?);
    /// context.dispatch(&program).bind(0, 0, &sum).groups([1, 1, 1])?;
    /// let findings = context.findings()?;
    /// assert!(matches!(findings[0].rule, Rule::Race(_)));
    /// assert_eq!(findings[0].second.line.as_ref().map(|line| line.line), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The environment variable `SPELTER_CHECK` (`1`, or a profile: `common`, `spec`, `strict`) does the same for all
    /// contexts of a process whose builders do not: `SPELTER_CHECK=1 cargo test`. What is found is printed when the
    /// last handle of the device is dropped, which panics if there is an error.
    pub fn check(mut self, options: CheckOptions) -> Self {
        self.options.check = Some(options);
        self
    }

    /// Whether the environment variable `SPELTER_CHECK` may turn checked mode on, and `SPELTER_SCHEDULE` choose the
    /// order of invocations; true by default. A program that has options for them, and reports what is found, says no.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().checked_by_environment(false).build()?;
    /// assert!(context.findings()?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn checked_by_environment(mut self, may: bool) -> Self {
        self.by_environment = may;
        self
    }

    /// Whether rules are checked that other drivers do not enforce, such as the declaration of SPIR-V extensions; true
    /// by default ([`DeviceOptions::strict`]).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().strict(false).build()?;
    /// assert_eq!(context.buffer_zeroed(4)?.size(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn strict(mut self, strict: bool) -> Self {
        self.options.strict = strict;
        self
    }

    /// Starts the device. [`Error::OutOfMemory`] if the address range for its memory cannot be reserved,
    /// [`Error::Options`] if the memory or the time limit is 0, or there are too many workers.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().build()?;
    /// assert_eq!(context.buffer_zeroed(4)?.size(), 4);
    /// let error = spelter::Context::builder().memory(0).build().unwrap_err().to_string();
    /// assert_eq!(error, "a device without memory: `memory` is 0 bytes");
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(mut self) -> Result<Context, Error> {
        let checked = match self.by_environment {
            true => CheckedByEnvironment::turn_on(&mut self.options).map_err(Error::Options)?,
            false => None,
        };
        self.options.schedule = match self.schedule {
            Some(schedule) => schedule,
            None if self.by_environment => schedule_of_environment()?,
            None => Schedule::default(),
        };
        let (trace, heap) = (self.trace.then(Trace::new), self.options.heap_size);
        if heap == 0 {
            return Err(Error::Options("a device without memory: `memory` is 0 bytes".to_owned()));
        }
        if self.options.time_limit.is_zero() {
            return Err(Error::Options("commands without time: `time_limit` is 0".to_owned()));
        }
        if self.options.workers > MAX_WORKERS {
            let workers = self.options.workers;
            return Err(Error::Options(format!("`workers` is {workers}: at most {MAX_WORKERS}")));
        }
        let profile = self.profile.then(|| Profile::new(MAX_TIMESTAMPS));
        let profiles = profile.iter().map(|profile| Arc::clone(profile) as Arc<dyn Observer>);
        let observers: Vec<_> = trace.iter().map(|trace| trace.observer()).chain(profiles).collect();
        let device = match &observers[..] {
            [] => Device::new(self.options),
            [only] => Device::with_observer(self.options, Arc::clone(only)),
            _ => Device::with_observer(self.options, Arc::new(Observers(observers))),
        };
        let device = device.map_err(|error| Error::from(error).for_memory_of(|| format!("a heap of {heap} bytes")))?;
        trace.iter().for_each(|trace| trace.name_workers(device.properties().workers));
        Ok(Context::on(&Share::new(device, self.poison, (trace, profile), checked)))
    }
}

/// The order that `SPELTER_SCHEDULE` chooses, or else the usual one.
fn schedule_of_environment() -> Result<Schedule, Error> {
    let Some(value) = variable(SCHEDULE) else { return Ok(Schedule::default()) };
    value.to_string_lossy().parse().map_err(|problem| Error::Options(format!("{SCHEDULE}: {problem}")))
}

impl Context {
    /// A context on a new device with default options. Errors are those of [`ContextBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// assert!(context.device().properties().workers >= 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// A builder for a context on a new device with options.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let limit = std::time::Duration::from_secs(5);
    /// let context = spelter::Context::builder().workers(1).time_limit(limit).build()?;
    /// assert_eq!(context.device().properties().workers, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ContextBuilder {
        ContextBuilder::new()
    }
}

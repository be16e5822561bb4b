//! The device: its options, its properties, and the parts that its objects share. The file of each object adds the
//! function that creates it (`impl Device`), so that this one imports no object.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ash::vk;
use spelter_shaders::compile::Backend;
use spelter_shaders::host::Printer;
use spelter_shaders::schedule::Schedule;

use crate::check::{CheckOptions, CheckResults, CheckStats, Checker, Finding, MappedAccesses};
use crate::error::Error;
use crate::exec::{CommandLog, Executor, ExecutorOptions, Observer, QueueState, TimeLimit};
use crate::limits::Limits;
use crate::memory::{Heap, HostObserver, default_bytes};
use crate::pipeline::{Compilers, PipelineCache};
use crate::sync::Loss;

/// Maximum number of worker threads of a device.
pub const MAX_WORKERS: usize = 1024;

/// Options of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Worker threads, at most [`MAX_WORKERS`]; 0 counts as 1. Default: the number of threads that the machine runs at
    /// once.
    pub workers: usize,
    /// How long one command (a dispatch or a transfer) may run before the device is lost. Commands without a barrier
    /// between them overlap, so the time counts from the start of the latest. The limit applies to the CPU time of the
    /// busiest worker, where the system reports it: time in which the process was stopped or other processes had the
    /// machine does not count. Default: 60 seconds.
    pub time_limit: Duration,
    /// The setting that controls the time limit, as users of the program know it: the reason of a loss names it.
    /// Default: the field above.
    pub time_limit_is_set_by: &'static str,
    /// Bytes of device memory. Default: three quarters of the machine's memory.
    pub heap_size: u64,
    /// Queues, at least 1. Default: 4.
    pub queues: usize,
    /// The back end that runs kernels. Default: the fastest that the machine supports.
    pub backend: Backend,
    /// Maximum number of threads that compile pipelines after their creation; a thread that needs code earlier compiles
    /// it itself. With 0, the default, the creating thread compiles.
    pub compilers: usize,
    /// The order of workgroups, subgroups and lanes. Another order than ascending finds kernels that lack a barrier:
    /// their results depend on it. It costs time: two subgroups never overlap, workgroups are not merged. Default:
    /// ascending.
    pub schedule: Schedule,
    /// Receives what kernels print (`NonSemantic.DebugPrintf`). Default: the output is dropped.
    pub printer: Option<Printer>,
    /// Whether to check rules that programs break and that other drivers do not enforce: a view matches the shader's
    /// declaration of its binding ([`ImageDeclaration`](crate::ImageDeclaration)), a sampler fits the image and the
    /// instruction that use it, a layout has room for the shader's push constants, and a module declares the extensions
    /// of its capabilities and asks for no sequential consistency. Default: true; the Vulkan driver sets false, and
    /// sends a warning instead.
    pub strict: bool,
    /// Checked mode: data races in kernels become findings ([`Device::take_findings`]). One worker runs kernels,
    /// whatever the options above say. Default: off.
    pub check: Option<CheckOptions>,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS),
            time_limit: Duration::from_secs(60),
            time_limit_is_set_by: "`DeviceOptions::time_limit`",
            heap_size: default_bytes(),
            queues: 4,
            backend: Backend::best(),
            compilers: 0,
            schedule: Schedule::Ascending,
            printer: None,
            strict: true,
            check: None,
        }
    }
}

impl DeviceOptions {
    /// The properties that a device with these options will report.
    pub fn properties(&self) -> Properties {
        properties(self.workers(), self.backend)
    }

    /// The number of workers: checked mode has one, so that a report can be reproduced.
    fn workers(&self) -> usize {
        if self.check.is_some() { 1 } else { self.workers.max(1) }
    }
}

/// Properties of a device (`VkPhysicalDeviceProperties`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// `deviceName`: the back end and the number of workers.
    pub device_name: String,
    /// `deviceType`.
    pub device_type: vk::PhysicalDeviceType,
    /// `apiVersion`: the version whose rules the device follows; not a claim of conformance.
    pub api_version: u32,
    /// `driverVersion`, packed like `apiVersion`.
    pub driver_version: u32,
    /// Number of worker threads.
    pub workers: usize,
    /// The back end; a kernel that it cannot run is interpreted.
    pub backend: Backend,
}

/// A Vulkan device made of CPU threads (`VkDevice`). A handle: clones name the same device.
///
/// Objects keep their device alive, and recorded commands keep all resources that they use alive; handles may drop in
/// any order.
#[derive(Clone)]
pub struct Device {
    inner: Arc<DeviceInner>,
}

struct DeviceInner {
    executor: Arc<Executor>,
    queues: Vec<Arc<QueueState>>,
    heap: Arc<Heap>,
    pipelines: Arc<PipelineCache>,
    compilers: Compilers,
    strict: bool,
    schedule: Schedule,
    checker: Option<Arc<Checker>>,
    properties: Properties,
    memory_types: [vk::MemoryType; 1],
    memory_heaps: [vk::MemoryHeap; 1],
}

impl Device {
    /// Starts a device. [`Error::OutOfMemory`] if its memory cannot be reserved, [`Error::Options`] for more workers
    /// than [`MAX_WORKERS`].
    pub fn new(options: DeviceOptions) -> Result<Self, Error> {
        Self::start(options, None)
    }

    /// As [`Device::new`], with an observer of the work of its workers and queues.
    pub fn with_observer(options: DeviceOptions, observer: Arc<dyn Observer>) -> Result<Self, Error> {
        Self::start(options, Some(observer))
    }

    fn start(options: DeviceOptions, observer: Option<Arc<dyn Observer>>) -> Result<Self, Error> {
        let (workers, backend) = (options.workers(), options.backend);
        if workers > MAX_WORKERS {
            return Err(Error::Options(format!("a device of {workers} workers: at most {MAX_WORKERS}")));
        }
        let traps = options.check.as_ref().is_some_and(|check| check.host == MappedAccesses::Trap);
        let heap = match traps {
            true => Heap::with_host_view(options.heap_size)
                .map_err(|error| Error::Options(format!("accesses of the host cannot be trapped: {error}")))?,
            false => Heap::new(options.heap_size)?,
        };
        let time_limit = TimeLimit { limit: options.time_limit, set_by: options.time_limit_is_set_by };
        let limits = ExecutorOptions { workers, time_limit, schedule: options.schedule };
        let checker = options.check.map(|check| {
            Arc::new(Checker::new(check, options.schedule, heap.range(), heap.host_view(), observer.as_ref()))
        });
        if let (Some(checker), Some((view, _))) = (&checker, heap.host_view()) {
            view.observe(Arc::downgrade(checker) as Weak<dyn HostObserver>);
        }
        let log = checker.clone().map(|checker| checker as Arc<dyn CommandLog>);
        let executor = Executor::observed(limits, observer, log, options.printer);
        let inner = DeviceInner {
            queues: (0..options.queues.max(1)).map(|_| executor.queue()).collect(),
            pipelines: PipelineCache::new(executor.loss()),
            compilers: Compilers::new(options.compilers, executor.loss()),
            strict: options.strict,
            schedule: options.schedule,
            checker,
            properties: properties(workers, backend),
            memory_types: [memory_type()],
            memory_heaps: [vk::MemoryHeap { size: heap.size(), flags: vk::MemoryHeapFlags::DEVICE_LOCAL }],
            executor,
            heap,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Name, versions and type.
    pub fn properties(&self) -> &Properties {
        &self.inner.properties
    }

    /// Whether kernels are compiled to take the order of subgroups and lanes when they run.
    pub(crate) fn takes_schedule(&self) -> bool {
        self.inner.schedule != Schedule::Ascending
    }

    /// The checked mode, if it is on; in a forked process, a thread that does not exist there may hold its locks.
    pub(crate) fn checker(&self) -> Option<&Arc<Checker>> {
        self.inner.checker.as_ref().filter(|_| !self.loss().is_forked())
    }

    /// Takes what checked mode found since the last call, in commands that have ended; nothing if it is off. Equal
    /// findings are one, with a count.
    pub fn take_findings(&self) -> Vec<Finding> {
        self.checker().map(|checker| checker.take()).unwrap_or_default()
    }

    /// What checked mode did so far; zeros if it is off.
    pub fn check_stats(&self) -> CheckStats {
        self.checker().map(|checker| checker.stats()).unwrap_or_default()
    }

    /// What checked mode finds, as a handle that does not keep the device; `None` if it is off.
    pub fn check_results(&self) -> Option<CheckResults> {
        self.checker().map(CheckResults::new)
    }

    /// Whether the device checks kernels ([`DeviceOptions::check`]).
    #[inline]
    pub fn is_checked(&self) -> bool {
        self.checker().is_some()
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.inner.strict
    }

    /// The order of workgroups, subgroups and lanes.
    pub fn schedule(&self) -> Schedule {
        self.inner.schedule
    }

    /// The limits that calls are checked against.
    pub fn limits(&self) -> &'static Limits {
        &Limits::DEVICE
    }

    /// Memory types: all memory is device-local and host-visible.
    pub fn memory_types(&self) -> &[vk::MemoryType] {
        &self.inner.memory_types
    }

    /// Memory heaps, with their sizes in bytes.
    pub fn memory_heaps(&self) -> &[vk::MemoryHeap] {
        &self.inner.memory_heaps
    }

    /// Whether the device is lost, which is final.
    pub fn is_lost(&self) -> bool {
        self.loss().is_lost()
    }

    /// [`Error::DeviceLost`] with the reason, if the device is lost.
    pub fn check_alive(&self) -> Result<(), Error> {
        Ok(self.loss().check()?)
    }

    pub(crate) fn loss(&self) -> &Arc<Loss> {
        self.inner.executor.loss()
    }

    /// Whether an observer receives reports.
    pub(crate) fn is_observed(&self) -> bool {
        self.observer().is_some()
    }

    /// The observer that receives reports.
    pub(crate) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.inner.executor.observer()
    }

    pub(crate) fn queue_states(&self) -> &[Arc<QueueState>] {
        &self.inner.queues
    }

    pub(crate) fn pipelines(&self) -> &Arc<PipelineCache> {
        &self.inner.pipelines
    }

    pub(crate) fn compilers(&self) -> &Compilers {
        &self.inner.compilers
    }

    pub(crate) fn heap(&self) -> &Arc<Heap> {
        &self.inner.heap
    }

    /// Whether both handles name the same device.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.inner.properties.device_name)
    }
}

fn properties(workers: usize, backend: Backend) -> Properties {
    let plural = if workers == 1 { "" } else { "s" };
    let part = |text: &str| text.parse().unwrap_or(0);
    Properties {
        device_name: format!("Spelter ({backend}, {workers} worker{plural})"),
        device_type: vk::PhysicalDeviceType::CPU,
        api_version: vk::API_VERSION_1_3,
        driver_version: vk::make_api_version(
            0,
            part(env!("CARGO_PKG_VERSION_MAJOR")),
            part(env!("CARGO_PKG_VERSION_MINOR")),
            part(env!("CARGO_PKG_VERSION_PATCH")),
        ),
        workers,
        backend,
    }
}

fn memory_type() -> vk::MemoryType {
    vk::MemoryType {
        property_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL
            | vk::MemoryPropertyFlags::HOST_VISIBLE
            | vk::MemoryPropertyFlags::HOST_COHERENT
            | vk::MemoryPropertyFlags::HOST_CACHED,
        heap_index: 0,
    }
}

//! The device: created from options, it creates all other objects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ash::vk;
use spelter_shaders::compile::Backend;
use spelter_shaders::explain::Explained;
use spelter_shaders::host::Printer;

use crate::command::CommandPool;
use crate::descriptor::{Binding, DescriptorPool, DescriptorSetLayout, DescriptorSetLayoutInfo};
use crate::error::Error;
use crate::exec::{Executor, ExecutorOptions, Loss, Observer, QueueState, TimeLimit};
use crate::limits::Limits;
use crate::memory::{Heap, default_bytes};
use crate::pipeline::{
    CacheStats, Compilers, ComputePipeline, Origin, PipelineCache, PipelineLayout, PushRange, ShaderModule,
    Specialization, SpecializedShader, StoredKernels,
};
use crate::query::QueryPool;
use crate::queue::{Event, Fence, Queue, Semaphore};
use crate::resource::{
    Buffer, BufferView, DeviceMemory, FormatProperties, Image, ImageInfo, ImageView, ImageViewInfo, Sampler,
    SamplerInfo, format_properties,
};

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
    /// Receives what kernels print (`NonSemantic.DebugPrintf`). Default: the output is dropped.
    pub printer: Option<Printer>,
    /// Whether to check rules that programs break and that other drivers do not enforce: a view matches the shader's
    /// declaration of its binding ([`ImageTaken`](crate::ImageTaken)), a sampler fits the image and the instruction
    /// that use it, and a layout has room for the shader's push constants. Default: true; the Vulkan driver sets false.
    pub strict: bool,
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
            printer: None,
            strict: true,
        }
    }
}

impl DeviceOptions {
    /// The properties that a device with these options will report.
    pub fn properties(&self) -> Properties {
        properties(self.workers.max(1), self.backend)
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
    inner: Arc<Inner>,
}

struct Inner {
    executor: Arc<Executor>,
    queues: Vec<Arc<QueueState>>,
    heap: Arc<Heap>,
    pipelines: Arc<PipelineCache>,
    compilers: Compilers,
    strict: bool,
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
        let workers = options.workers.max(1);
        if workers > MAX_WORKERS {
            return Err(Error::Options(format!("a device of {workers} workers: at most {MAX_WORKERS}")));
        }
        let heap = Heap::new(options.heap_size)?;
        let time_limit = TimeLimit { limit: options.time_limit, set_by: options.time_limit_is_set_by };
        let limits = ExecutorOptions { workers, time_limit };
        let executor = Executor::observed(limits, observer, options.printer);
        let inner = Inner {
            queues: (0..options.queues.max(1)).map(|_| executor.queue()).collect(),
            pipelines: PipelineCache::new(executor.loss()),
            compilers: Compilers::new(options.compilers, executor.loss()),
            strict: options.strict,
            properties: properties(workers, options.backend),
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

    pub(crate) fn is_strict(&self) -> bool {
        self.inner.strict
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

    /// The first queue (`vkGetDeviceQueue` with index 0).
    pub fn queue(&self) -> Queue {
        Queue::new(self.clone(), Arc::clone(&self.inner.queues[0]))
    }

    /// All queues. They belong to one family, which supports compute and transfer.
    pub fn queues(&self) -> Vec<Queue> {
        self.inner.queues.iter().map(|state| Queue::new(self.clone(), Arc::clone(state))).collect()
    }

    /// `vkAllocateMemory`: `size` bytes of a type of [`Device::memory_types`], all zero.
    pub fn allocate_memory(&self, size: u64, memory_type: u32) -> Result<DeviceMemory, Error> {
        DeviceMemory::new(self, size, memory_type)
    }

    /// `vkCreateBuffer`: `size` bytes; memory must be bound before use.
    pub fn create_buffer(&self, size: u64, usage: vk::BufferUsageFlags) -> Result<Buffer, Error> {
        Buffer::new(self, size, usage)
    }

    /// `vkGetPhysicalDeviceFormatProperties`.
    pub fn format_properties(&self, format: vk::Format) -> FormatProperties {
        format_properties(format)
    }

    /// `vkCreateImage`: memory must be bound before use.
    pub fn create_image(&self, info: &ImageInfo) -> Result<Image, Error> {
        Image::new(self, info)
    }

    /// `vkCreateImageView`.
    pub fn create_image_view(&self, info: &ImageViewInfo<'_>) -> Result<ImageView, Error> {
        ImageView::new(self, info)
    }

    /// `vkCreateBufferView`: `range` bytes of a buffer from `offset`, as texels; [`vk::WHOLE_SIZE`] for all bytes to
    /// the end.
    pub fn create_buffer_view(
        &self,
        buffer: &Buffer,
        format: vk::Format,
        offset: u64,
        range: u64,
    ) -> Result<BufferView, Error> {
        BufferView::new(self, buffer, format, offset, range, None)
    }

    /// The same, for a view whose usage is a subset of its buffer's (`VkBufferUsageFlags2CreateInfo`).
    pub fn create_buffer_view_for(
        &self,
        usage: vk::BufferUsageFlags,
        buffer: &Buffer,
        format: vk::Format,
        [offset, range]: [u64; 2],
    ) -> Result<BufferView, Error> {
        BufferView::new(self, buffer, format, offset, range, Some(usage))
    }

    /// `vkCreateSampler`.
    pub fn create_sampler(&self, info: &SamplerInfo) -> Result<Sampler, Error> {
        Sampler::new(self, info)
    }

    /// `vkCreateShaderModule` from SPIR-V words.
    pub fn create_shader_module(&self, words: &[u32]) -> Result<ShaderModule, Error> {
        ShaderModule::from_spirv(self, words)
    }

    /// A shader module from WGSL text.
    pub fn create_shader_module_wgsl(&self, source: &str) -> Result<ShaderModule, Error> {
        ShaderModule::from_wgsl(self, source)
    }

    /// `vkCreateDescriptorSetLayout`; every binding is visible to the compute stage.
    pub fn create_descriptor_set_layout(&self, bindings: &[Binding]) -> Result<DescriptorSetLayout, Error> {
        self.create_descriptor_set_layout_from(&DescriptorSetLayoutInfo { bindings, ..Default::default() })
    }

    /// `vkCreateDescriptorSetLayout`, with immutable samplers or for sets that are updated after binding.
    pub fn create_descriptor_set_layout_from(
        &self,
        info: &DescriptorSetLayoutInfo<'_>,
    ) -> Result<DescriptorSetLayout, Error> {
        DescriptorSetLayout::new(self, info)
    }

    /// `vkCreateDescriptorPool`: for `max_sets` sets and this many descriptors of each type.
    pub fn create_descriptor_pool(
        &self,
        max_sets: u32,
        sizes: &[(vk::DescriptorType, u32)],
    ) -> Result<DescriptorPool, Error> {
        DescriptorPool::new(self, max_sets, sizes)
    }

    /// `vkCreatePipelineLayout`; push constant ranges are those of the compute stage, of which Vulkan allows one.
    pub fn create_pipeline_layout(
        &self,
        sets: &[&DescriptorSetLayout],
        push: &[PushRange],
    ) -> Result<PipelineLayout, Error> {
        PipelineLayout::new(self, sets, push)
    }

    /// `vkCreateComputePipelines`: one entry point, specialized and compiled.
    ///
    /// Pipelines that exist at the same time share their code, whatever their layouts, if they have the same module
    /// words or text, entry point and values of specialization constants. The code lives until the last such pipeline
    /// and the last recording that uses it are dropped; nothing else keeps it.
    pub fn create_compute_pipeline(
        &self,
        module: &ShaderModule,
        entry: &str,
        specialization: &Specialization,
        layout: &PipelineLayout,
    ) -> Result<ComputePipeline, Error> {
        ComputePipeline::of_module(self, module, entry, specialization, layout)
    }

    /// As [`Device::create_compute_pipeline`], with kernels of another process: kernels in `stored` are not compiled.
    /// `None` if the kernel would have to be compiled and `may_compile` is false.
    pub fn create_compute_pipeline_stored(
        &self,
        shader: (&ShaderModule, &str, &Specialization),
        layout: &PipelineLayout,
        stored: &StoredKernels,
        may_compile: bool,
    ) -> Result<Option<(ComputePipeline, Origin)>, Error> {
        ComputePipeline::of_stored(self, shader, layout, stored, may_compile)
    }

    /// The stages of a kernel's compilation to machine code, as texts and counts. Compiles it again.
    pub fn explain(
        &self,
        shader: (&ShaderModule, &str, &Specialization),
        layout: &PipelineLayout,
    ) -> Result<Explained, Error> {
        ComputePipeline::explain(self, shader, layout)
    }

    /// `vkCreateComputePipelines` for a shader that is already specialized, for example to derive its layout.
    pub fn create_compute_pipeline_from(
        &self,
        shader: &SpecializedShader,
        layout: &PipelineLayout,
    ) -> Result<ComputePipeline, Error> {
        ComputePipeline::of_shader(self, shader, layout)
    }

    /// Statistics of compiled and shared pipelines.
    pub fn pipeline_cache_stats(&self) -> CacheStats {
        self.inner.pipelines.stats()
    }

    /// `vkCreateCommandPool`, with `RESET_COMMAND_BUFFER`.
    pub fn create_command_pool(&self) -> CommandPool {
        CommandPool::new(self)
    }

    /// The value of a timestamp taken now: nanoseconds of the system's monotonic clock.
    pub fn timestamp(&self) -> u64 {
        crate::query::now()
    }

    /// `vkCreateFence`.
    pub fn create_fence(&self, signaled: bool) -> Fence {
        Fence::new(self, signaled)
    }

    /// `vkCreateSemaphore`: a binary semaphore, not signalled.
    pub fn create_semaphore(&self) -> Semaphore {
        Semaphore::binary(self)
    }

    /// `vkCreateSemaphore` with `VK_SEMAPHORE_TYPE_TIMELINE`.
    pub fn create_timeline_semaphore(&self, initial_value: u64) -> Semaphore {
        Semaphore::timeline(self, initial_value)
    }

    /// `vkCreateEvent`.
    pub fn create_event(&self) -> Event {
        Event::new(self)
    }

    /// `vkCreateQueryPool`: a pool of `count` timestamps.
    pub fn create_query_pool(&self, kind: vk::QueryType, count: u32) -> Result<QueryPool, Error> {
        QueryPool::new(self, kind, count)
    }

    /// [`Error::DeviceLost`] with the reason, if the device is lost.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        Ok(self.loss().check()?)
    }

    pub(crate) fn loss(&self) -> &Arc<Loss> {
        self.inner.executor.loss()
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

//! A Vulkan compute device made of CPU threads: Vulkan's objects as safe Rust, with flags and enums of [`ash::vk`].
//!
//! [`Device`] creates all objects. Objects are handles: clones name the same object, and everything that a recorded
//! command uses lives until the command is done, so handles may drop in any order. A call that breaks a rule of Vulkan
//! fails with the VUID of the rule ([`Misuse`]) and changes nothing.

pub mod check;
mod checked_by_environment;
pub mod command;
pub mod descriptor;
mod device;
pub mod environment;
pub mod error;
mod event;
mod exec;
pub mod host_memory;
mod json;
mod limits;
mod memory;
pub mod pipeline;
pub mod profile;
mod query;
pub mod queue;
pub mod resource;
mod shader_source;
#[cfg(unix)]
pub mod symbol;
mod sync;
pub mod timeline;
#[cfg(feature = "wgpu-types")]
pub mod wgpu_formats;

pub use ash::vk;
pub use checked_by_environment::{CHECKED_TIME_LIMIT, CheckedByEnvironment};
pub use command::{
    Barrier2, BarrierMemory, BufferMemoryBarrier, ClearColor, CommandBuffer, CommandPool, HostRegion, HostRows,
    ImageMemoryBarrier, MemoryBarrier,
};
pub use descriptor::{
    Binding, BufferInfo, DescriptorImageInfo, DescriptorPool, DescriptorSet, DescriptorSetLayout,
    DescriptorSetLayoutInfo, ImageDeclaration, ImmutableSamplers, ViewRule,
};
pub use device::{Device, DeviceOptions, MAX_WORKERS, Properties};
pub use error::{DeviceError, Error, Misuse, TooMuchPrivate};
pub use event::Event;
pub use exec::{
    Chunk, CommandId, DispatchInfo, Observer, Observers, OwnershipTransfer, SemaphoreSignal, SemaphoreWait,
    SubmissionId, SubmissionSize,
};
pub use host_memory::OutOfHostMemory;
pub use limits::Limits;
pub use pipeline::{
    CacheStats, ComputePipeline, Origin, PipelineLayout, PushRange, SealKey, ShaderModule, ShaderStage, Specialization,
    SpecializedShader, StoredKernels, check_workgroup, descriptor_type,
};
pub use queue::{Fence, FenceTask, Queue, Semaphore, SemaphoreSubmit, SubmitInfo};
pub use resource::{
    Buffer, BufferView, DeviceMemory, FormatProperties, Image, ImageInfo, ImageView, ImageViewInfo, QueryPool, Sampler,
    SamplerInfo, format_properties, view_features,
};
pub use spelter_shaders::compile::Backend;
pub use spelter_shaders::explain::Explained;
pub use spelter_shaders::free_ranges::FreeRanges;
pub use spelter_shaders::host::{Printed, Printer};
pub use spelter_shaders::image::Class as TexelClass;
pub use spelter_shaders::schedule::Schedule;

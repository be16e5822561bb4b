//! Compute pipelines, shader modules and pipeline layouts; compilation and its caches.

mod cache;
mod compute;
mod deferred;
mod layout;
mod module;
#[cfg(unix)]
mod seal_key;
mod stored;

pub(crate) use cache::PipelineCache;
pub use cache::{CacheStats, Origin};
pub(crate) use compute::SlotRange;
pub use compute::{ComputePipeline, check_workgroup, descriptor_type};
pub(crate) use deferred::Compilers;
pub use layout::{PipelineLayout, PushRange};
pub use module::{ShaderModule, ShaderStage, Specialization, SpecializedShader};
pub use stored::{SealKey, StoredKernels};

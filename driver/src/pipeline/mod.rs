//! Compute pipelines, shader modules and pipeline layouts; compilation and its caches.

mod cache;
mod checks;
mod compute;
mod deferred;
mod layout;
mod module;
#[cfg(unix)]
mod seal_key;
mod stored;

pub(crate) use cache::PipelineCache;
pub use cache::{CacheStats, Origin};
pub(crate) use checks::SlotRange;
pub use checks::{check_workgroup, descriptor_type};
pub use compute::ComputePipeline;
pub(crate) use deferred::Compilers;
pub use layout::{PipelineLayout, PushRange};
pub use module::{ShaderModule, ShaderStage, Specialization, SpecializedShader};
pub use stored::{SealKey, StoredKernels};

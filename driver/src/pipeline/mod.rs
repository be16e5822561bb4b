//! Pipelines: modules, layouts, and the kernels that come of both.

mod compute;
mod layout;
mod module;

pub use compute::ComputePipeline;
pub use layout::{PipelineLayout, PushRange};
pub use module::{ShaderModule, Specialization, SpecializedShader};

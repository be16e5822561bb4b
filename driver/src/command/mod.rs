//! Command buffers: recorded once, with everything resolved, then submitted as often as their flags allow.
//!
//! In Vulkan a recording call returns nothing, and misuse is reported late or never. Here each call returns a `Result`
//! at once, and a call that fails leaves the recording unchanged.

mod barrier;
mod buffer;
mod compute;
mod conditional;
mod dependency;
mod dispatch_rules;
mod dispatch_state;
mod event;
mod host;
mod image;
mod image_clear;
mod query;
mod recorder;
mod secondary;
mod submission;
mod transfer;

pub use barrier::{BufferMemoryBarrier, ImageMemoryBarrier, MemoryBarrier};
pub use buffer::{CommandBuffer, CommandPool};
pub use dependency::{Barrier2, BarrierMemory};
pub use host::{HostRegion, HostRows};
pub use image_clear::ClearColor;

pub(crate) use submission::Submission;

//! Compute programs on CPU workers, in a few lines: buffers, programs, dispatches.
//!
//! ```
//! use spelter::Context;
//!
//! # fn main() -> Result<(), spelter::Error> {
//! let context = Context::new()?;
//! let program = context.program_wgsl(
//!     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
//!     @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
//!         if id.x < arrayLength(&data) { data[id.x] *= 2u; }
//!     }",
//! )?;
//! let data = context.buffer_from(&[1u32, 2, 3])?;
//! context.dispatch(&program).bind(0, 0, &data).invocations([3, 1, 1])?;
//! assert_eq!(context.read::<u32>(&data)?, [2, 4, 6]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Context`] is a command stream of a device; a [`Buffer`] is memory; a [`Program`] is a compiled shader; a
//! [`Dispatch`] runs it on the bound resources. The context manages barriers, descriptor sets, submissions and the
//! storage of buffers: it tracks which batches use which object, and gives a buffer new storage instead of making the
//! host wait. It is built on [`spelter_driver`], which has Vulkan's objects. The chapter "The state tracker" of the
//! book has the rules.

/// Structs become push constants and buffers by this crate's derives.
pub use bytemuck;
pub use half;

mod barrier;
mod batch;
mod bind;
mod bindings;
mod buffer;
mod callbacks;
mod commands;
mod context;
mod context_state;
mod descriptors;
mod dispatch;
mod error;
mod events;
mod fence;
mod gate;
mod holds;
mod ids;
mod image;
mod journal;
mod layout;
mod loan;
#[cfg(all(test, loom))]
mod loom_tests;
mod mappings;
mod memory;
mod named_by;
mod object;
mod object_info;
mod outcome;
mod program;
mod recordings;
mod replace;
mod resource;
mod serial;
mod set;
mod share;
mod slot_info;
mod slot_state;
mod stats;
mod submission;
mod sync;
pub mod testing;
mod timestamps;
mod trace;
mod transfer;
mod valid;
mod view;
#[cfg(feature = "wgpu-types")]
pub mod wgpu;

pub use spelter_driver::check;

pub use bind::Bind;
pub use buffer::{Buffer, BufferSlice};
pub use commands::{CommandBuffer, Recorder};
pub use context::{BufferBuilder, Context, ContextBuilder};
pub use dispatch::Dispatch;
pub use error::Error;
pub use events::Event;
pub use fence::Fence;
pub use ids::{BatchId, CommandBufferId, CommandKind, ContextId, ObjectId, ResourceId, SetId, Slot, SlotKind};
pub use image::{Image, ImageBuilder, ImagePart};
pub use layout::{Block, DataLayout, DataMember, Layout, ScalarType};
pub use loan::{Lend, LentBuffer, Loan};
pub use named_by::NamedBy;
pub use object_info::ObjectInfo;
pub use outcome::{Action, Outcome, Outcomes, Waits};
pub use program::{
    BindingInfo, BindingKind, Constant, Program, ProgramBuilder, Source, SpecializationConstant, choose_entry,
};
pub use set::{DescriptorSet, DescriptorSetBuilder, SetBinding, SetObject};
pub use slot_info::SlotInfo;
pub use spelter_driver::profile::{CallTimes, DispatchTime, ProfileReport, ProgramTime};
pub use spelter_driver::{
    Backend, ClearColor, ImageDeclaration, Printed, Printer, Sampler, SamplerInfo, Schedule, SubmissionId, TexelClass,
    vk,
};
pub use stats::Stats;
pub use timestamps::Timestamp;
pub use transfer::{MapFlags, Mapped, ReadBack, TexelRegion};

/// The Rust programs of the book's first pages are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../docs/first-kernel.md")]
    mod first_kernel {}
    #[doc = include_str!("../../docs/interfaces.md")]
    mod interfaces {}
    #[doc = include_str!("../../docs/testing-in-ci.md")]
    mod testing_in_ci {}
}

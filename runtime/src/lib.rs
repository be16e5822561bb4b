//! Compute programs on CPU workers, in a few lines: buffers, programs, dispatches.
//!
//! A [`Context`] is a device and its work; a [`Buffer`] is memory; a [`Program`] is a shader made ready; a [`Dispatch`]
//! binds buffers to a program and runs it. Barriers, descriptor sets and submissions are the context's business. Below
//! it lies [`spelter_driver`], with Vulkan's own objects.

/// Structs become push constants and buffers by this crate's derives.
pub use bytemuck;

mod barrier;
mod batch;
mod context;
mod descriptors;
mod dispatch;
mod error;
mod object;
mod program;
mod resource;
mod transfer;

pub use context::{Context, ContextBuilder};
pub use dispatch::Dispatch;
pub use error::Error;
pub use program::{
    BindingInfo, BindingKind, Constant, Program, ProgramBuilder, Source, SpecializationConstant, choose_entry,
};
pub use resource::Buffer;
pub use spelter_driver::Backend;

//! Compute programs on CPU workers, in a few lines: buffers, programs, dispatches.
//!
//! A [`Context`] is a line of work on a device; a [`Buffer`] is memory; a [`Program`] is a shader made ready; a
//! [`Dispatch`] runs it on what is bound. Barriers, descriptor sets, submissions and the storage behind buffers are the
//! context's business: it tracks who uses what until when, and gives a buffer new storage rather than let anybody wait.
//! Below it lies [`spelter_driver`], with Vulkan's own objects. The book's chapter "The state tracker" tells the rules.

/// Structs become push constants and buffers by this crate's derives.
pub use bytemuck;

mod barrier;
mod batch;
mod bindings;
mod buffer;
mod context;
mod descriptors;
mod dispatch;
mod error;
mod fence;
mod gate;
mod image;
mod journal;
#[cfg(all(test, loom))]
mod loom_tests;
mod memory;
mod object;
mod program;
mod replace;
mod resource;
mod serial;
mod share;
mod slot;
mod slot_state;
mod stats;
mod sync;
mod trace;
mod transfer;
mod valid;
mod view;

pub use buffer::{Buffer, BufferBuilder, BufferSlice};
pub use context::{Context, ContextBuilder};
pub use dispatch::Dispatch;
pub use error::Error;
pub use fence::Fence;
pub use image::{Image, ImageBuilder, ImagePart};
pub use program::{
    BindingInfo, BindingKind, Constant, Program, ProgramBuilder, Source, SpecializationConstant, choose_entry,
};
pub use slot::{Bind, Slot, SlotKind};
pub use spelter_driver::{Backend, ClearColor, ImageTaken, Printed, Printer, Sampler, SamplerInfo, TexelClass, vk};
pub use stats::Stats;
pub use transfer::{MapFlags, Mapped};

//! A Vulkan compute device made of CPU threads: Vulkan's objects as safe Rust, with flags and enums of [`ash::vk`].

pub mod error;
#[allow(dead_code, unused_imports)]
mod exec;
#[allow(dead_code, unused_imports)]
mod memory;
#[allow(dead_code)]
mod sync;

pub use error::{DeviceError, Error, Misuse};

//! A Vulkan compute device made of CPU threads: Vulkan's objects as safe Rust, with flags and enums of [`ash::vk`].

pub mod error;

pub use error::{DeviceError, Error, Misuse};

//! Spelter as an adapter of [wgpu](https://docs.rs/wgpu/30): programs that compute run on CPU threads, without a GPU, a
//! loader or a system package.
//!
//! An unoptimised build of the kernel compiler is slow. Begin with these lines in the `Cargo.toml` of your workspace:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 2
//! ```
//!
//! Then one line replaces `wgpu::Instance::new(…)`:
//!
//! ```
//! let instance = spelter_wgpu::instance();
//! let adapters = spelter_wgpu::ready(instance.enumerate_adapters(wgpu::Backends::all()));
//! assert_eq!(adapters[0].get_info().driver, "spelter");
//! ```
//!
//! [`device`] opens a device at once, [`adapter_on`] adds Spelter to an instance that has other adapters, and
//! [`Options`] makes smaller devices. wgpu's own validation is in front of every call. What draws is refused: textures
//! cannot be attachments, render pipelines and surfaces cannot be created.
//!
//! wgpu's types are in this crate's API, so it fits one version of wgpu: 30.

mod binding;
mod buffer;
mod capabilities;
mod device;
mod error;
mod format;
mod hal;
mod hint;
mod labels;
mod memory;
mod open;
mod options;
mod pipeline;
mod recorder;
mod shader;
mod texture;

pub use hal::Api;
pub use open::{driver_device, ready, request_adapter_or_spelter};
pub use options::Options;
pub use {spelter_driver, wgpu};

/// An instance whose only adapter is Spelter, with the options of the environment ([`Options::from_env`]).
pub fn instance() -> wgpu::Instance {
    Options::from_env().instance()
}

/// Spelter as an adapter of an instance that may have others, with the options of the environment
/// ([`Options::from_env`]).
pub fn adapter_on(instance: &wgpu::Instance) -> wgpu::Adapter {
    Options::from_env().adapter_on(instance)
}

/// A device with all features and limits, and its queue, with the options of the environment ([`Options::from_env`]).
///
/// # Panics
///
/// If the device's address space cannot be reserved. [`Options::device`] returns an error instead.
pub fn device() -> (wgpu::Device, wgpu::Queue) {
    match Options::from_env().device() {
        Ok(opened) => opened,
        Err(error) => panic!("Spelter cannot open a device: {error}"),
    }
}

//! A Vulkan driver for the Vulkan loader: the C API, with everything that it does left to [`spelter_driver`].
//!
//! | file | chapter of the specification |
//! |---|---|
//! | `loader.rs` | the three exported functions, commands by name |
//! | `instance.rs`, `physical_device/`, `device.rs` | initialization, devices and queues, features, limits, formats |
//! | `memory.rs`, `buffer.rs`, `image.rs`, `sampler.rs` | memory allocation, resources, samplers |
//! | `host_copy.rs` | copies between images and the host's memory, made by the host |
//! | `descriptor/`, `pipeline/` | resource descriptors, shaders and pipelines |
//! | `command/` | command buffers, and what is recorded into them |
//! | `sync.rs`, `query.rs` | fences, semaphores, events, submission, queries |
//! | `debug.rs`, `labels.rs`, `message.rs`, `context.rs`, `private_data.rs` | debugging, private data |
//! | `graphics.rs` | what a compute device refuses |
//! | `options.rs`, `environment.rs` | what users set, and who is believed |
//! | `c/` | the C edge: pointers, chains, arrays, strings, handles, the macro that makes entry points, the allocator with its reserve |
//!
//! A chapter begins with the prototypes of its commands, each with the function behind it. These functions are safe code:
//! handles have become objects, pointers have become slices and chains, and errors are values. `c/mod.rs` has the contract.

mod buffer;
mod c;
mod command;
mod context;
mod debug;
mod descriptor;
mod device;
mod environment;
mod error;
mod graphics;
mod host_copy;
mod image;
mod instance;
mod labels;
mod loader;
mod memory;
mod message;
pub mod options;
mod physical_device;
mod pipeline;
mod private_data;
mod query;
mod sampler;
mod sync;
mod table;
mod trace;

pub use loader::{
    vk_icdGetInstanceProcAddr, vk_icdGetPhysicalDeviceProcAddr, vk_icdNegotiateLoaderICDInterfaceVersion,
};

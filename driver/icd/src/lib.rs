//! The installable client driver (ICD) for the Vulkan loader: the C API over [`spelter_driver`].
//!
//! | file | chapter of the specification |
//! |---|---|
//! | `loader.rs` | the three functions that the loader calls, commands by name |
//! | `exports.rs` | the core commands, exported as by a loader |
//! | `instance.rs`, `physical_device/`, `device.rs` | initialization, devices and queues, features, limits, formats |
//! | `memory.rs`, `buffer.rs`, `image.rs`, `sampler.rs` | memory allocation, resources, samplers |
//! | `host_copy.rs` | copies between images and host memory on the host |
//! | `descriptor/`, `pipeline/` | resource descriptors, shaders and pipelines |
//! | `command/` | command buffers and the commands that they record |
//! | `sync.rs`, `query.rs` | fences, semaphores, events, submission, queries |
//! | `debug.rs`, `labels.rs`, `names.rs`, `message.rs`, `current_call.rs` | messages, labels and names of objects |
//! | `table.rs`, `error.rs` | live objects by handle; errors and their results |
//! | `profile.rs`, `trace.rs` | times of commands and the timeline, as files |
//! | `findings/` | what checked mode finds, as text, JSON and messages |
//! | `private_data.rs` | private data |
//! | `graphics.rs` | graphics commands, which fail on a compute device |
//! | `options.rs` | environment variables |
//! | `c/` | the C interface: pointers, chains, arrays, strings, handles, entry points, the allocator with its reserve |
//!
//! A chapter begins with the prototypes of its commands, each with the function that implements it. These functions are
//! safe code: handles are objects, pointers are slices and chains, and errors are values. `c/mod.rs` has the contract.

mod buffer;
mod c;
mod command;
mod current_call;
mod debug;
mod descriptor;
mod device;
mod error;
#[cfg(target_arch = "x86_64")]
mod exports;
mod findings;
mod graphics;
mod host_copy;
mod image;
mod instance;
mod labels;
mod loader;
mod memory;
mod message;
mod names;
pub mod options;
mod physical_device;
mod pipeline;
mod private_data;
mod profile;
mod query;
mod sampler;
mod sync;
mod table;
mod trace;

pub use loader::{
    vk_icdGetInstanceProcAddr, vk_icdGetPhysicalDeviceProcAddr, vk_icdNegotiateLoaderICDInterfaceVersion,
};

//! Memory objects, and the buffers that are bound to them.

mod buffer;
mod memory;

pub use buffer::Buffer;
pub(crate) use buffer::BufferRules;
pub use memory::DeviceMemory;

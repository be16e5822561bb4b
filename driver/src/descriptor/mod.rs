//! Descriptors: layouts say what a shader finds where, sets say which bytes of which buffers those are.

mod layout;
mod pool;
mod set;

pub use layout::{Binding, DescriptorSetLayout};
pub use pool::DescriptorPool;
pub use set::{BufferInfo, DescriptorSet};

pub(crate) use layout::is_uniform;
pub(crate) use set::{Contents, WeakSet, spread_offsets};

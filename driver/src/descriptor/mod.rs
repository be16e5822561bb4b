//! Descriptors: layouts describe what a shader binds, sets hold the buffers and images.

mod copy;
mod declared;
mod image;
mod layout;
mod pool;
mod sampled;
mod set;
mod sources;

pub use declared::{ImageDeclaration, ViewRule};
pub use image::DescriptorImageInfo;
pub use layout::{Binding, DescriptorSetLayout, DescriptorSetLayoutInfo, ImmutableSamplers};
pub use pool::DescriptorPool;
pub use set::{BufferInfo, DescriptorSet};

pub(crate) use declared::FORMAT;
pub(crate) use layout::LayoutEntry;
pub(crate) use sampled::{COMPARE, SampleRule, check_sample};
pub(crate) use set::{Contents, WeakSet, spread_offsets};
pub(crate) use sources::{DescriptorSources, FlatDescriptors};

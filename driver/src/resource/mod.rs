//! Resources: memory objects, buffers and images that are bound to them, their views, samplers and
//! query pools.

mod buffer;
mod buffer_view;
mod format;
mod image;
mod image_view;
mod import;
mod known;
mod memory;
mod query_pool;
mod sampler;

pub use buffer::Buffer;
pub(crate) use buffer::BufferRules;
pub use buffer_view::BufferView;
pub(crate) use format::format_of;
pub use format::{FormatProperties, properties as format_properties, view_features};
pub(crate) use image::ImageRules;
pub use image::{Image, ImageInfo};
pub use image_view::{ImageView, ImageViewInfo};
pub use memory::DeviceMemory;
pub use query_pool::QueryPool;
pub use sampler::{Sampler, SamplerInfo};

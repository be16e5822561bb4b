//! Transfers: host to resource, resource to host, resource to resource.

mod buffer;
mod flags;
mod image;
mod map;
mod read;
mod target;
mod upload;

pub use flags::MapFlags;
pub(crate) use image::check_color;
pub use map::Mapped;

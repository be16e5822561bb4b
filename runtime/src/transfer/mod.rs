//! Transfers: host to resource, resource to host, resource to resource.

mod buffer;
mod flags;
mod image;
mod map;
mod mapped_range;
mod read;
mod target;
mod upload;

pub use flags::MapFlags;
pub use map::Mapped;

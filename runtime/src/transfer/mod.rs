//! Transfers: host to resource, resource to host, resource to resource.

mod buffer;
mod flags;
mod image;
mod map;
mod maps;
mod upload;

pub use flags::MapFlags;
pub use map::Mapped;

pub(crate) use buffer::for_command;
pub(crate) use maps::Maps;

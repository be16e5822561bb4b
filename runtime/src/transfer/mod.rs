//! Transfers: host to resource, resource to host, resource to resource.

mod buffer;
mod flags;
mod image;
mod map;
mod map_claim;
mod mapped_range;
mod read;
mod read_back;
mod target;
mod texel_region;
mod texel_type;
mod texels;
mod upload;

pub use flags::MapFlags;
pub(crate) use image::{LevelOf, check_color, copy_region};
pub use map::Mapped;
pub use read_back::ReadBack;
pub(crate) use target::{check_inside, extent};
pub(crate) use texel_region::TexelArea;
pub use texel_region::TexelRegion;
pub(crate) use texels::Direction;

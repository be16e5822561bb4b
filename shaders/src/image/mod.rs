//! Images as pure functions of bytes: formats, layout, and the semantics of reads, writes and samples.
//!
//! Nothing here knows a Vulkan handle. A [`Descriptor`] names guest memory and its layout; [`run`](run::run) defines
//! every image instruction. The interpreter calls it per invocation, machine code per subgroup.

pub(crate) mod address;
pub(crate) mod bytes;
pub(crate) mod codes;
mod cube;
mod declared;
mod descriptor;
pub(crate) mod direct;
mod filter;
mod format;
pub(crate) mod lanes;
mod layout;
mod linear;
mod lod;
mod op;
mod run;
mod texel;

pub use declared::DeclaredImage;
pub use descriptor::{
    Compare, Descriptor, Field, Filter, Level, MAX_LEVELS, Sampler, SamplerByte, Swizzle, TexelView, Wrap,
};
pub use format::{ChannelBits, Class, Format, Numeric};
pub use layout::{Extent, Layout, MAX_IMAGE_BYTES, ROW_ALIGNMENT, Rows};
pub use op::{Dim, ImageOp, Kind, LodOperand, Offsets};
pub use run::{run, texels};
pub use texel::{decode, encode, load_raw, store_raw};

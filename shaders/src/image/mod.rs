//! Images as a pure function of bytes: formats, where texels lie, and what reading, writing and sampling mean.
//!
//! Nothing here knows a handle. A [`Descriptor`] names guest memory and says how it is laid out; [`run`](run::run) is the
//! meaning of every image instruction, which the interpreter calls for an invocation and machine code for a subgroup.

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
pub use descriptor::{Compare, Descriptor, Field, Filter, Level, MAX_LEVELS, Sampler, Swizzle, View, Wrap};
pub use format::{Class, Format, Numeric, Part};
pub use layout::{Extent, Layout, MAX_IMAGE_BYTES, ROW_ALIGNMENT, Rows};
pub use op::{Dim, ImageOp, Kind, LodOperand, Offsets};
pub use run::run;
pub use texel::{decode, encode, load_raw, store_raw};

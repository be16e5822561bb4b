//! Samples that machine code does without a call: the instructions, and the images and samplers.
//!
//! The instruction is known at compile time; formats, sizes and samplers only at run time. So a kernel first checks its
//! descriptors (`vectorize/sample/`) and calls [`lanes`](super::lanes) for everything that is not listed here:
//!
//! - texel fetches by integer coordinates from level 0 of 2D images and 2D arrays, without offset;
//! - samples of 2D images and 2D arrays, without comparison and offset, if the descriptors are uniform;
//! - one level only: the view has one level and the sampler's filters are equal; or the level of detail is the constant
//!   0 without bias; or coordinates are unnormalized;
//! - formats [`CODES`] and [`FLOATS`], identity swizzle;
//! - nearest and linear filters; coordinates that stay inside with any address mode, others with
//!   [`Wrap::ClampToEdge`](super::Wrap::ClampToEdge) and [`Wrap::Repeat`](super::Wrap::Repeat).

use super::format::{Class, Format};
use super::op::{Dim, ImageOp, Kind, LodOperand, Offsets};

/// Four 8-bit channels, red in the lowest byte.
pub(crate) const CODES: Format = Format::R8G8B8A8_UNORM;

/// One float.
pub(crate) const FLOATS: [Format; 2] = [Format::R32_SFLOAT, Format::D32_SFLOAT];

/// Exclusive bound of texel coordinates: a 32-bit coordinate has 16 fraction bits.
pub(crate) const MAX_DISTANCE: i32 = (1 << 15) - 1;

/// The largest side of an image that is sampled directly.
pub(crate) const MAX_TEXELS: u32 = MAX_DISTANCE.cast_unsigned();

/// Whether an instruction may be done without a call, given suitable descriptors.
pub(crate) fn is_direct(op: &ImageOp) -> bool {
    let flat = op.kind == Kind::Sample && op.dim == Dim::D2 && op.class == Class::Float;
    flat && !op.dref && op.offsets == Offsets::None && !op.min_lod && op.lod != LodOperand::Grad
}

/// Whether a texel fetch may be done without a call.
pub(crate) fn is_direct_read(op: &ImageOp) -> bool {
    op.kind == Kind::Read && op.dim == Dim::D2 && op.class == Class::Float && op.offsets == Offsets::None
}

/// Whether either applies.
pub(crate) fn may_be(op: &ImageOp) -> bool {
    is_direct(op) || is_direct_read(op)
}

//! Samples that machine code takes by itself: which instructions, and of which images and samplers.
//!
//! What an instruction is, is known when a kernel is compiled; formats, sizes and samplers are known when it runs. So a kernel asks its
//! descriptors first (`simd/widen/sample/`) and calls [`lanes`](super::lanes) for everything that is not listed here:
//!
//! - texels by integer coordinates of level 0 of 2D images and their arrays, without offset;
//! - samples of 2D images and their arrays, without comparison and offset, where descriptors are the same for all lanes;
//! - of one level: the view has no other and the sampler's filters are equal, or the level of detail is the constant 0, to which the sampler
//!   adds nothing, or coordinates count texels;
//! - formats [`CODES`] and [`FLOATS`], components as they are;
//! - nearest and linear filters; coordinates that stay inside with any address mode, others with
//!   [`Wrap::ClampToEdge`](super::Wrap::ClampToEdge) and [`Wrap::Repeat`](super::Wrap::Repeat).

use super::format::{Class, Format};
use super::op::{Dim, ImageOp, Kind, LodOperand, Offsets};

/// Four channels of 8 bits, red in the lowest.
pub(crate) const CODES: Format = Format::R8G8B8A8_UNORM;

/// One float.
pub(crate) const FLOATS: [Format; 2] = [Format::R32_SFLOAT, Format::D32_SFLOAT];

/// Texels from here on are too far from the image: places between texels have 16 bits, and texels the others.
pub(crate) const MAX_DISTANCE: i32 = (1 << 15) - 1;

/// The largest side of an image that is sampled directly.
pub(crate) const MAX_TEXELS: u32 = MAX_DISTANCE.cast_unsigned();

/// Whether an instruction may be done without a call, if its descriptors are as they should be.
pub(crate) fn is_direct(op: &ImageOp) -> bool {
    let flat = op.kind == Kind::Sample && op.dim == Dim::D2 && op.class == Class::Float;
    flat && !op.dref && op.offsets == Offsets::None && !op.min_lod && op.lod != LodOperand::Grad
}

/// Whether a texel by integer coordinates may be read so.
pub(crate) fn is_direct_read(op: &ImageOp) -> bool {
    op.kind == Kind::Read && op.dim == Dim::D2 && op.class == Class::Float && op.offsets == Offsets::None
}

/// Whether the instruction is one of those.
pub(crate) fn may_be(op: &ImageOp) -> bool {
    is_direct(op) || is_direct_read(op)
}

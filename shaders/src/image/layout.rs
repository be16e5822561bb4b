//! Image layout in memory: rows of texels, mip levels of a layer in sequence, layers at a fixed pitch.
//!
//! Linear and optimal tiling differ only in the gaps between rows. Kernels read texels by rows, and a row that starts
//! at a cache line suits vector loads.

use super::descriptor::{Level, MAX_LEVELS};

/// The maximum size of an image in bytes (`maxResourceSize`): every offset fits 32 bits with room for one more texel.
pub const MAX_IMAGE_BYTES: u64 = 1 << 31;

/// Alignment of rows, in bytes.
pub const ROW_ALIGNMENT: u32 = 64;

/// Rows whose pitch is a multiple of this share few sets of a first-level cache (64 sets of 64 bytes): at 4096 bytes
/// all rows of a column are in one set, and a workgroup of 16 rows does not fit its 8 to 12 ways.
const CROWDED: u64 = 1024;

/// Row pitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The row size rounded up to [`ROW_ALIGNMENT`]: linear tiling.
    Packed,
    /// One more cache line where rows would share cache sets: optimal tiling.
    Spread,
}

/// Extent of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Width, height and depth of level 0, each at least 1.
    pub size: [u32; 3],
    /// Mip levels.
    pub levels: u32,
    /// Array layers.
    pub layers: u32,
}

/// The layout of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The mip levels; the first [`Extent::levels`] are used.
    pub levels: [Level; MAX_LEVELS],
    /// Bytes from a layer to the next.
    pub layer_pitch: u32,
    /// Bytes of the image.
    pub bytes: u64,
}

impl Extent {
    /// Width, height and depth of a level.
    pub fn level(&self, level: u32) -> [u32; 3] {
        self.size.map(|size| size.checked_shr(level).unwrap_or(0).max(1))
    }

    /// The maximum number of mip levels of an image of this size.
    pub fn max_levels(&self) -> u32 {
        let largest = self.size.into_iter().max().unwrap_or(1).max(1);
        largest.ilog2() + 1
    }
}

impl Layout {
    /// The layout for texels of `texel_bytes` bytes; `None` for an image above [`MAX_IMAGE_BYTES`].
    pub fn new(extent: &Extent, texel_bytes: u32, rows: Rows) -> Option<Self> {
        let mut levels = [Level::default(); MAX_LEVELS];
        let mut offset = 0u64;
        for (number, level) in (0..extent.levels).zip(&mut levels) {
            let [width, height, depth] = extent.level(number).map(u64::from);
            let mut row = (width * u64::from(texel_bytes)).next_multiple_of(ROW_ALIGNMENT.into());
            if rows == Rows::Spread && row.is_multiple_of(CROWDED) && height > 1 {
                row += u64::from(ROW_ALIGNMENT);
            }
            let slice = row.checked_mul(height).filter(|&slice| slice <= MAX_IMAGE_BYTES)?;
            *level = Level { offset: offset as u32, row_pitch: row as u32, slice_pitch: slice as u32 };
            offset = offset.checked_add(slice.checked_mul(depth)?).filter(|&end| end <= MAX_IMAGE_BYTES)?;
        }
        let bytes = offset.checked_mul(extent.layers.into()).filter(|&bytes| bytes <= MAX_IMAGE_BYTES)?;
        Some(Self { levels, layer_pitch: offset as u32, bytes })
    }
}

//! Where the texels of an image lie: rows of texels, levels of a layer one after the other, layers at equal distances.
//!
//! Linear and optimal tiling differ in the gaps between rows alone. Rows of texels are what kernels read fastest here, and a
//! row that begins at a cache line is what vectors want.

use super::descriptor::{Level, MAX_LEVELS};

/// Most bytes of an image (`maxResourceSize`): every offset fits 32 bits with room for one texel more.
pub const MAX_IMAGE_BYTES: u64 = 1 << 31;

/// Rows begin at multiples of this many bytes.
pub const ROW_ALIGNMENT: u32 = 64;

/// Rows at a distance that is a multiple of this share few sets of a cache: a workgroup of 16 rows would not fit there.
const CROWDED: u64 = 1024;

/// How rows follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One begins at the first multiple of [`ROW_ALIGNMENT`] behind the other: linear tiling.
    Packed,
    /// One cache line further on where rows would crowd in a cache: optimal tiling.
    Spread,
}

/// Size of an image.
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
    /// Its levels, the first [`Extent::levels`] of them.
    pub levels: [Level; MAX_LEVELS],
    /// Bytes from a layer to the next.
    pub layer_pitch: u32,
    /// Bytes of all.
    pub bytes: u64,
}

impl Extent {
    /// Width, height and depth of a level.
    pub fn level(&self, level: u32) -> [u32; 3] {
        self.size.map(|size| size.checked_shr(level).unwrap_or(0).max(1))
    }

    /// Most levels that an image of this size has.
    pub fn most_levels(&self) -> u32 {
        let largest = self.size.into_iter().max().unwrap_or(1).max(1);
        largest.ilog2() + 1
    }
}

impl Layout {
    /// The layout of texels of so many bytes; `None` for an image above [`MAX_IMAGE_BYTES`].
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

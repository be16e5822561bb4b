//! Parts of resources: the sizes that images have, where their levels and layers are among their texels, and which
//! words a slot or a command means after a resource got another size.

use std::ops::Range;

/// Width and height of the images. All have two levels and two layers, and no two levels have as many texels, so the
/// number of texels tells the size of a level, and that of an image.
pub(crate) const SIZES: [[u32; 2]; 3] = [[6, 3], [4, 4], [2, 10]];

/// A size with room for one level only.
pub(crate) const TOO_SMALL: [u32; 2] = [1, 1];

/// Width and height of both levels.
fn levels([width, height]: [u32; 2]) -> [[usize; 2]; 2] {
    let at = |level: u32| [width, height].map(|size| (size >> level).max(1) as usize);
    [at(0), at(1)]
}

/// Texels of all levels of a layer.
fn layer(size: [u32; 2]) -> usize {
    levels(size).iter().map(|[width, height]| width * height).sum()
}

/// Texels of all levels and layers of an image.
pub(crate) fn texels(size: [u32; 2]) -> u64 {
    2 * layer(size) as u64
}

/// Width and height of the level that has this number of texels.
pub(crate) fn size_of_level(texels: usize) -> [usize; 2] {
    let mut all = SIZES.into_iter().flat_map(levels);
    all.find(|[width, height]| width * height == texels).unwrap_or_else(|| panic!("no level has {texels} texels"))
}

/// The range of a level of a layer among the texels of an image with this number of texels.
pub(crate) fn level_of(all: u64, level: u32, of: u32) -> Range<u64> {
    let size = SIZES.into_iter().find(|size| texels(*size) == all);
    let size = size.unwrap_or_else(|| panic!("no image has {all} texels"));
    let [first, second] = levels(size).map(|[width, height]| width * height);
    let start = of as usize * layer(size) + if level == 0 { 0 } else { first };
    start as u64..(start + if level == 0 { first } else { second }) as u64
}

/// What a slot or a command names of a resource.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Words of a buffer.
    Words(Range<u64>),
    /// The words from here to the end of a buffer.
    ToEnd(u64),
    /// A level of a layer of an image.
    Level(u32, u32),
}

impl Place {
    /// The words of a resource of this size; `None` if it does not have them.
    pub(crate) fn of(&self, size: u64) -> Option<Range<u64>> {
        let words = match self {
            Self::Words(words) => words.clone(),
            Self::ToEnd(start) => *start..size,
            Self::Level(level, layer) => level_of(size, *level, *layer),
        };
        (words.start < words.end && words.end <= size).then_some(words)
    }
}

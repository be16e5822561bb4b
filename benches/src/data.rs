//! The same pseudo-random input on every machine.

use rayon::prelude::*;

/// 32 random bits: element `index` of the sequence `seed` (the mixing function of SplitMix64).
pub(crate) fn word(seed: u64, index: usize) -> u32 {
    let mut bits = (seed << 40).wrapping_add(index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 32) as u32
}

/// `count` random words.
pub(crate) fn words(seed: u64, count: usize) -> Vec<u32> {
    (0..count).into_par_iter().map(|index| word(seed, index)).collect()
}

/// `count` random floats from `low` up to `high`.
pub(crate) fn floats(seed: u64, count: usize, low: f32, high: f32) -> Vec<f32> {
    let fraction = |index| (word(seed, index) >> 8) as f32 / 16_777_216.0;
    (0..count).into_par_iter().map(|index| low + (high - low) * fraction(index)).collect()
}

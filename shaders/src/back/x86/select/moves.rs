//! Constant shuffles that the machine has an instruction for.

/// The immediate of a shuffle within 128-bit lanes, if all lanes have the same order of words; `None` if words cross
/// 128-bit lanes or the orders differ.
pub(super) fn within_lanes128(words: &[u8; 16]) -> Option<u8> {
    let fits = |lane: usize| usize::from(words[lane] / 4) == lane / 4 && words[lane] % 4 == words[lane % 4] % 4;
    (0..16).all(fits).then(|| order([0, 1, 2, 3].map(|lane| words[lane] % 4)))
}

/// The immediate of a shuffle of whole 128-bit lanes, if words keep their position within the lane.
pub(super) fn of_lanes128(words: &[u8; 16]) -> Option<u8> {
    let fits = |lane: usize| {
        words[lane] < 16 && usize::from(words[lane] % 4) == lane % 4 && words[lane] / 4 == words[lane & !3] / 4
    };
    (0..16).all(fits).then(|| order([0, 4, 8, 12].map(|lane| words[lane] / 4)))
}

/// Packs four 2-bit numbers into a shuffle immediate.
pub(super) fn order(numbers: [u8; 4]) -> u8 {
    numbers[0] | numbers[1] << 2 | numbers[2] << 4 | numbers[3] << 6
}

//! Words that move within vectors in ways that the machine has an instruction for.

/// The order of four words that all quarters have, as the machine's shuffles take it; `None` if words come from other quarters,
/// or in another order in one of them.
pub(super) fn in_quarters(words: &[u8; 16]) -> Option<u8> {
    let fits = |lane: usize| usize::from(words[lane] / 4) == lane / 4 && words[lane] % 4 == words[lane % 4] % 4;
    (0..16).all(fits).then(|| order([0, 1, 2, 3].map(|lane| words[lane] % 4)))
}

/// The order of the quarters, if words move with them only.
pub(super) fn of_quarters(words: &[u8; 16]) -> Option<u8> {
    let fits = |lane: usize| {
        words[lane] < 16 && usize::from(words[lane] % 4) == lane % 4 && words[lane] / 4 == words[lane & !3] / 4
    };
    (0..16).all(fits).then(|| order([0, 4, 8, 12].map(|lane| words[lane] / 4)))
}

/// Four numbers of two bits.
pub(super) fn order(numbers: [u8; 4]) -> u8 {
    numbers[0] | numbers[1] << 2 | numbers[2] << 4 | numbers[3] << 6
}

//! Costs of access patterns, and the one choice between them for loads, stores and interleave groups.

use super::pattern::AccessPattern;

/// What the parts of an access cost, in contiguous accesses that hit the first cache.
struct Costs {
    /// A row, or a word for all lanes.
    row: u32,
    /// A shuffle of two vectors or a permutation of one.
    shuffle: u32,
    /// A store's mask that has to be computed.
    mask: u32,
    /// A gather of 16 words. It takes as long as a dozen rows, but needs neither shuffles with constants nor several
    /// addresses and limits.
    gather: u32,
    /// A scatter of 16 words.
    scatter: u32,
}

/// The costs for AVX-512 and AVX2: no choice has been measured to differ between them. Another instruction set is
/// another row.
const COSTS: Costs = Costs { row: 1, shuffle: 1, mask: 1, gather: 9, scatter: 9 };

/// What is asked of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessKind {
    pub(super) store: bool,
    /// Words of each lane that are accessed together; 1 outside of interleave groups.
    pub(super) words: u32,
}

/// The cheapest pattern; among equal ones the first. Without candidates each lane is accessed on its own.
pub(super) fn choose(candidates: impl Iterator<Item = AccessPattern>, kind: AccessKind) -> AccessPattern {
    candidates.min_by_key(|pattern| cost(pattern, kind)).unwrap_or(AccessPattern::PerLane)
}

fn cost(pattern: &AccessPattern, AccessKind { store, words }: AccessKind) -> u32 {
    let Costs { row, shuffle, mask, gather, scatter } = COSTS;
    match pattern {
        AccessPattern::Uniform | AccessPattern::Contiguous { .. } => row,
        AccessPattern::Strided(element) => element.rows(words) * row,
        AccessPattern::Segments(segments) if store => segments.runs.len() as u32 * (row + mask),
        AccessPattern::Segments(segments) => segments.rows() * row + segments.shuffles() * shuffle,
        AccessPattern::Offsets(offsets) => {
            let rows = offsets.rows(words).len() as u32;
            rows * row + words * rows.saturating_sub(1) * shuffle
        }
        AccessPattern::Clamped(_) => row + shuffle,
        AccessPattern::PerLane => words * if store { scatter } else { gather },
    }
}

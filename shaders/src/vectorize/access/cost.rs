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
        AccessPattern::PerLane => words * if store { scatter } else { gather },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::LaneConstants;
    use crate::ir::Value;
    use crate::vectorize::access::constant_offsets::ConstantOffsets;
    use crate::vectorize::access::offset::OffsetTerm;

    /// Offsets in as many rows, and a gather or scatter; whether the rows are chosen.
    fn chooses_rows(rows: u32, kind: AccessKind) -> bool {
        let bytes: LaneConstants = std::array::from_fn(|lane| lane as u32 % rows * 16 * 4);
        let offsets = ConstantOffsets { term: OffsetTerm { value: Value::from_u32(0), stride: 4 }, bytes };
        assert_eq!(offsets.rows(1).len() as u32, rows);
        let candidates = [AccessPattern::Offsets(Box::new(offsets)), AccessPattern::PerLane];
        matches!(choose(candidates.into_iter(), kind), AccessPattern::Offsets(_))
    }

    #[test]
    fn a_gather_is_worth_five_rows_and_their_shuffles() {
        for store in [false, true] {
            for rows in 1..=8 {
                assert_eq!(chooses_rows(rows, AccessKind { store, words: 1 }), rows <= 5, "{rows} rows");
            }
        }
    }

    #[test]
    fn the_first_of_equal_patterns_is_chosen() {
        let index = Value::from_u32(0);
        let candidates = [AccessPattern::Contiguous { index }, AccessPattern::Uniform];
        let kind = AccessKind { store: false, words: 1 };
        assert!(matches!(choose(candidates.into_iter(), kind), AccessPattern::Contiguous { .. }));
    }
}

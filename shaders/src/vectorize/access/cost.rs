//! Costs of access patterns and of interleave groups: the choice between them follows from these.

use super::constant_offsets::covering_rows;
use super::elements::{ElementWord, LaneElements, MAX_WORDS};
use super::pattern::AccessPattern;
use crate::ir::Width;

/// What the parts of an access cost on an instruction set, in contiguous accesses that hit the first cache.
#[derive(Clone, Copy, Debug)]
pub struct AccessCosts {
    /// A row, or a word for all lanes.
    row: u32,
    /// A shuffle of two vectors or a permutation of one.
    shuffle: u32,
    /// What it costs, beside the rows, to transpose loaded elements of one to four words.
    transpose: [u32; MAX_WORDS as usize],
    /// What a row costs more if stored words are spread over it, with gaps between them.
    spread: u32,
    /// A gather of 16 words.
    gather: u32,
    /// A gather of two adjacent words for each lane, and of three or four.
    gather_pair: u32,
    gather_quad: u32,
    /// A scatter of 16 words.
    scatter: u32,
    /// A load of up to four words of elements that are far from each other: a short row for each lane, transposed. It
    /// costs a gather at least, so that one word alone is gathered: short rows at odd strides cross cache lines.
    long_element: u32,
    /// A store of up to four words of such elements.
    store_long_element: u32,
}

impl AccessCosts {
    /// The bench `shapes` measures them; `docs/compiler.md` has the figures.
    pub const AVX512: Self = Self {
        row: 1,
        shuffle: 1,
        transpose: [0, 2, 5, 4],
        spread: 0,
        gather: 17,
        gather_pair: 21,
        gather_quad: 25,
        scatter: 14,
        long_element: 17,
        store_long_element: 10,
    };

    /// Gathers of several words are no better than several gathers; stores under a mask do not spread words by
    /// themselves, and how fast they are differs between processors.
    pub const AVX2: Self = Self {
        row: 1,
        shuffle: 1,
        transpose: [0, 1, 2, 4],
        spread: 1,
        gather: 12,
        gather_pair: 23,
        gather_quad: 30,
        scatter: 12,
        long_element: 12,
        store_long_element: 10,
    };

    /// An access on its own, with a pattern that has no elements.
    pub(super) fn of_access(&self, pattern: &AccessPattern, store: bool) -> u32 {
        match pattern {
            AccessPattern::Uniform | AccessPattern::Contiguous { .. } => self.row,
            AccessPattern::Segments(segments) if store => segments.runs.len() as u32 * self.row,
            AccessPattern::Segments(segments) => segments.rows() * self.row + segments.shuffles() * self.shuffle,
            AccessPattern::PerLane | AccessPattern::Strided(_) | AccessPattern::Offsets(_) if store => self.scatter,
            AccessPattern::PerLane | AccessPattern::Strided(_) | AccessPattern::Offsets(_) => self.gather,
        }
    }

    /// An interleave group that accesses these words of each lane's element.
    pub(super) fn of_elements(&self, lanes: &LaneElements, width: Width, store: bool, words: &[ElementWord]) -> u32 {
        let count = words.len() as u32;
        match lanes {
            LaneElements::Coalesced { offsets, .. } => {
                let rows = covering_rows(words.iter().flat_map(|word| offsets.words(word.number as u32))).len() as u32;
                rows * self.row + count * rows.saturating_sub(1) * self.shuffle
            }
            LaneElements::Gathered(_) => {
                let (first, last) = ElementWord::span(words.iter().copied());
                if last.distance(first) < 2 { self.gather_pair } else { self.gather_quad }
            }
            _ if width != Width::Word => (lanes.rows(count) * self.row).min(count * self.scatter),
            _ if lanes.are_long() && store => self.store_long_element,
            _ if lanes.are_long() => self.long_element,
            _ => {
                // All rows of the elements are accessed, whichever words are wanted.
                let words = lanes.words_of_element(width).len() as u32;
                let rows = lanes.rows(words);
                let transpose = self.transpose[words as usize - 1];
                let spread = if words > 1 { rows } else { 0 };
                rows * self.row + if store { spread * self.spread } else { transpose }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_words_are_gathered_together_where_that_is_faster() {
        let words = [0, 1, 2, 3].map(|number| ElementWord { number, step: 0 });
        for costs in [AccessCosts::AVX512, AccessCosts::AVX2] {
            let gathered = |words: &[ElementWord]| {
                costs.of_elements(&LaneElements::Gathered(Default::default()), Width::Word, false, words)
            };
            let alone = |words: u32| words * costs.of_access(&AccessPattern::PerLane, false);
            assert!(gathered(&words[..1]) > alone(1));
            (2..=4).for_each(|count| assert!(gathered(&words[..count]) < alone(count as u32), "{count}"));
        }
        let apart = [AccessCosts::AVX512, AccessCosts::AVX2].map(|costs| {
            let together = costs.of_elements(
                &LaneElements::Gathered(Default::default()),
                Width::Word,
                false,
                &[words[0], words[3]],
            );
            together < 2 * costs.of_access(&AccessPattern::PerLane, false)
        });
        assert_eq!(apart, [true, false], "two of four words: with AVX2 two gathers are faster than four");
    }
}

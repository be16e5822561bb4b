//! Words that lanes access at constant distances, close to each other: rows that hold them all, and picks.
//!
//! A gather or a scatter takes as long as a dozen rows. Loads pick the lanes' words out of rows; stores pick what each row
//! gets, and leave the words between alone.

use foldhash::HashMap;
use smallvec::SmallVec;

use super::address::{MemoryRegion, Offset, Term};
use crate::analysis::{LaneOffsetTable, Shape};
use crate::ir::Width;
use crate::simd::builder::ALL;
use crate::simd::{InstData, LANES, Row};
use crate::vectorize::{Type, Value, Widen};

/// The farthest word that is looked at.
const MAX_DISTANCE: u32 = 1 << 16;

/// A word for each lane: its place in the window.
pub(in crate::vectorize) type LaneWords = [u32; LANES as usize];

/// The one term of an offset that lanes differ in, if they do by constants that cannot wrap: the bytes of each lane beyond
/// the base.
pub(in crate::vectorize) struct LaneConstants {
    term: Term,
    lanes: LaneWords,
}

impl LaneConstants {
    /// Places of the word that is so many words further on in each lane.
    pub(in crate::vectorize) fn words(&self, word: u32) -> LaneWords {
        self.lanes.map(|bytes| bytes / 4 + word)
    }
}

/// Rows that hold some words, by their first.
pub(in crate::vectorize) type CoveringRows = SmallVec<[u32; 8]>;

/// Rows for words, as few as may be; none beyond the last word, if there are enough words.
pub(in crate::vectorize) fn covering_rows(words: impl IntoIterator<Item = u32>) -> CoveringRows {
    let mut words: SmallVec<[u32; 64]> = words.into_iter().collect();
    words.sort_unstable();
    let last = words.last().map_or(0, |&last| last.saturating_sub(LANES - 1));
    let mut rows = CoveringRows::new();
    for word in words {
        if rows.last().is_none_or(|&row| word - row >= LANES) {
            rows.push(word.min(last));
        }
    }
    rows
}

/// The row of a word, and its lane there.
fn find(rows: &CoveringRows, word: u32) -> (usize, u8) {
    let row = rows.iter().position(|&row| word >= row && word - row < LANES).unwrap_or(0);
    (row, (word - rows[row]) as u8)
}

impl Widen<'_> {
    /// The window of an offset, if it has one.
    pub(in crate::vectorize) fn lane_constants(&self, offset: &Offset) -> Option<LaneConstants> {
        let [term @ Term { value, stride }] = offset.lanes[..] else { return None };
        let Shape::Affine(pattern) = self.shape(value) else { return None };
        let zeros = self.uniformity.zeros(value);
        let lanes = *self.uniformity.patterns.lanes(pattern);
        let fits = |&lane: &u32| (zeros >= 32 || lane >> zeros == 0) && lane < MAX_DISTANCE / stride.max(1);
        let row = pattern == LaneOffsetTable::CONTIGUOUS && stride == 4;
        let usable = !row && stride.is_multiple_of(4) && lanes.iter().all(fits);
        usable.then(|| LaneConstants { term, lanes: lanes.map(|lane| lane * stride) })
    }

    /// Whether rows are quicker than `words` gathers or scatters.
    pub(in crate::vectorize) fn rows_are_profitable(rows: &CoveringRows, words: usize) -> bool {
        rows.len() + words * rows.len().saturating_sub(1) <= 9 * words
    }

    /// Where a window begins, and the number of words from there on.
    pub(in crate::vectorize) fn coalesced_start(
        &mut self,
        region: MemoryRegion,
        offset: &Offset,
        constants: &LaneConstants,
    ) -> (Value, Value) {
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        let base = self.get(constants.term.value);
        let skip = self.scaled_base(base, constants.term.stride);
        let region = self.skip(region, skip);
        (region.base, self.count(region.len, 4))
    }

    /// Loads words of a window: one vector for each of `places`.
    pub(in crate::vectorize) fn load_coalesced(
        &mut self,
        (base, limit): (Value, Value),
        rows: &CoveringRows,
        places: &[LaneWords],
    ) -> SmallVec<[Value; 4]> {
        let loaded: SmallVec<[Value; 8]> = rows
            .iter()
            .map(|&row| {
                let index = self.builder.s32(row);
                self.builder.emit_value(InstData::LoadRow { row: Row { base, index, limit, width: Width::Word } })
            })
            .collect();
        places.iter().map(|places| self.pick_covered(&loaded, rows, places)).collect()
    }

    /// In each lane the word at its place, out of rows that are loaded.
    pub(in crate::vectorize) fn pick_covered(
        &mut self,
        loaded: &[Value],
        rows: &CoveringRows,
        places: &LaneWords,
    ) -> Value {
        self.pick_from(loaded, &places.map(|word| find(rows, word)))
    }

    /// In each lane a word of one of some vectors.
    fn pick_from(&mut self, vectors: &[Value], places: &[(usize, u8); LANES as usize]) -> Value {
        let used = |number: usize| places.iter().any(|place| place.0 == number);
        let mut used = (0..vectors.len()).filter(|&number| used(number));
        let Some(first) = used.next() else { return vectors[0] };
        let second = used.next();
        let mut words: Box<[u8; LANES as usize]> = Box::new(places.map(|(number, lane)| match number {
            _ if number == first => lane,
            _ if Some(number) == second => lane + LANES as u8,
            _ => 0,
        }));
        let mut found =
            self.pick(vectors[first], second.map_or(vectors[first], |second| vectors[second]), words.clone());
        for number in used {
            for (lane, word) in words.iter_mut().enumerate() {
                *word = if places[lane].0 == number { places[lane].1 + LANES as u8 } else { lane as u8 };
            }
            found = self.pick(found, vectors[number], words.clone());
        }
        found
    }

    fn pick(&mut self, first: Value, second: Value, words: Box<[u8; LANES as usize]>) -> Value {
        if words.iter().enumerate().all(|(lane, &word)| lane == usize::from(word)) {
            return first;
        }
        self.builder.emit_value(InstData::Pick { first, second, words })
    }

    /// Stores words of a window, one vector for each of `places`, for all lanes.
    pub(in crate::vectorize) fn store_coalesced(
        &mut self,
        (base, limit): (Value, Value),
        rows: &CoveringRows,
        places: &[LaneWords],
        values: &[Value],
    ) {
        // Of lanes that store the same word the last one counts, as in a scatter.
        let mut last: HashMap<u32, (usize, u8)> = HashMap::default();
        for lane in 0..LANES as usize {
            for (number, places) in places.iter().enumerate() {
                last.insert(places[lane], (number, lane as u8));
            }
        }
        for (number, &row) in rows.iter().enumerate() {
            let mut mask = 0;
            let from: [(usize, u8); LANES as usize] = std::array::from_fn(|lane| {
                let word = row + lane as u32;
                let source = last.get(&word).filter(|_| find(rows, word).0 == number);
                mask |= u64::from(source.is_some()) << lane;
                source.copied().unwrap_or((usize::MAX, 0))
            });
            let value = self.pick_from(values, &from);
            let index = self.builder.s32(row);
            let mask = self.builder.constant(Type::Mask, mask);
            self.builder.emit(InstData::StoreRow { row: Row { base, index, limit, width: Width::Word }, value, mask });
        }
    }

    /// Whether all lanes are on for certain.
    pub(in crate::vectorize) fn all_lanes_active(&self) -> bool {
        self.builder.kernel.constant(self.exec) == Some(ALL)
    }
}

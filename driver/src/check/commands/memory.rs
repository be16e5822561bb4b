//! The last accesses of commands to device memory: for each byte the last write, the reads since, and atomics.
//!
//! Memory is divided into chunks of 2 MiB, and those into pages of 4 KiB. Most have the same last accesses everywhere,
//! since transfers and whole buffers are large; other pages have a cell for each word, and those with sub-word accesses
//! one for each byte.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// An access of a command, by its index in a table; 0 is none.
pub(super) type AccessId = u32;

/// The last accesses to a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) write: AccessId,
    /// Other accesses that the last write does not stand for, by their index in [`Sets`](super::sets::Sets): the reads
    /// since, and what `race.rs` says of atomics.
    pub(super) others: u32,
}

/// The cells of a page.
#[derive(Clone, Debug)]
enum Page<T> {
    /// The same for all bytes.
    Even(T),
    /// For each word.
    Words(Box<[T]>),
    /// For each byte.
    Bytes(Box<[T]>),
}

impl<T: Copy + PartialEq> Page<T> {
    /// Bytes of a cell.
    fn grain(&self) -> u64 {
        match self {
            Self::Even(_) => PAGE,
            Self::Words(_) => 4,
            Self::Bytes(_) => 1,
        }
    }

    fn at(&self, byte: u64) -> T {
        match self {
            Self::Even(cell) => *cell,
            Self::Words(cells) => cells[byte as usize / 4],
            Self::Bytes(cells) => cells[byte as usize],
        }
    }

    /// Divides the cells until each is at most `grain` bytes.
    fn refine(&mut self, grain: u64) {
        if grain >= self.grain() {
            return;
        }
        let bytes = if grain >= 4 { 4 } else { 1 };
        let cells = (0..PAGE / bytes).map(|cell| self.at(cell * bytes)).collect();
        *self = if bytes == 4 { Self::Words(cells) } else { Self::Bytes(cells) };
    }

    /// One past the last byte, up to `end`, that has the same cell as `byte`.
    fn run(&self, byte: u64, end: u64) -> u64 {
        let (Self::Words(cells) | Self::Bytes(cells)) = self else { return end };
        let grain = self.grain();
        let cells = &cells[(byte / grain) as usize..end.div_ceil(grain) as usize];
        let same = cells.iter().take_while(|cell| **cell == cells[0]).count() as u64;
        ((byte / grain + same) * grain).min(end)
    }

    fn set(&mut self, range: Range<u64>, cell: T) {
        if range == (0..PAGE) {
            *self = Self::Even(cell);
            return;
        }
        if !matches!(self, Self::Even(same) if *same == cell) {
            let aligned = range.start.is_multiple_of(4) && range.end.is_multiple_of(4);
            self.refine(if aligned { 4 } else { 1 });
            let grain = self.grain();
            let (Self::Words(cells) | Self::Bytes(cells)) = self else { return };
            cells[(range.start / grain) as usize..(range.end / grain) as usize].fill(cell);
        }
    }

    /// Gives each run of a range, whose addresses begin at `base`, another value.
    fn update(&mut self, range: Range<u64>, base: u64, mut new: impl FnMut(Range<u64>, T) -> T) {
        let mut at = range.start;
        while at < range.end {
            let (end, known) = (self.run(at, range.end), self.at(at));
            let value = new(base + at..base + end, known);
            if value != known {
                self.set(at..end, value);
            }
            at = end;
        }
    }

    /// Changes all cells; the outcome is even if all are the same.
    fn change(&mut self, change: &mut impl FnMut(T) -> T) {
        match self {
            Self::Even(cell) => *cell = change(*cell),
            Self::Words(cells) | Self::Bytes(cells) => {
                let mut last = None;
                for cell in cells.iter_mut() {
                    let new = match last {
                        Some((old, new)) if old == *cell => new,
                        _ => change(*cell),
                    };
                    last = Some((*cell, new));
                    *cell = new;
                }
                if cells.iter().all(|cell| *cell == cells[0]) {
                    *self = Self::Even(cells[0]);
                }
            }
        }
    }
}

/// Bytes of a chunk.
const CHUNK: u64 = 512 * PAGE;

/// The pages of a chunk.
#[derive(Clone, Debug)]
enum PageChunk<T> {
    /// The same value for all bytes.
    Even(T),
    Pages(Box<[Page<T>]>),
}

impl<T: Copy + PartialEq + Default> PageChunk<T> {
    fn at(&self, byte: u64) -> T {
        match self {
            Self::Even(value) => *value,
            Self::Pages(pages) => pages[(byte / PAGE) as usize].at(byte % PAGE),
        }
    }

    fn set(&mut self, range: Range<u64>, value: T) {
        match self {
            _ if range == (0..CHUNK) => *self = Self::Even(value),
            Self::Even(same) if *same == value => {}
            Self::Even(same) => {
                *self = Self::Pages(vec![Page::Even(*same); (CHUNK / PAGE) as usize].into());
                self.set(range, value);
            }
            Self::Pages(pages) => {
                parts(range, PAGE).for_each(|(number, part)| pages[number as usize].set(part, value));
            }
        }
    }

    /// Changes all values; the outcome is even if all pages are and have the same value.
    fn change(&mut self, change: &mut impl FnMut(T) -> T) {
        let pages = match self {
            Self::Even(value) => {
                *value = change(*value);
                return;
            }
            Self::Pages(pages) => pages,
        };
        pages.iter_mut().for_each(|page| page.change(change));
        if let Some(Page::Even(first)) = pages.first()
            && pages.iter().all(|page| matches!(page, Page::Even(value) if value == first))
        {
            *self = Self::Even(*first);
        }
    }

    /// Pages with cells of their own, or the chunk itself.
    fn parts(&self) -> &[Page<T>] {
        match self {
            Self::Even(_) => &[],
            Self::Pages(pages) => pages,
        }
    }
}

/// A map from addresses to values, in chunks of pages.
#[derive(Clone, Debug)]
pub(super) struct Pages<T> {
    chunks: BTreeMap<u64, PageChunk<T>>,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self { chunks: BTreeMap::new() }
    }
}

/// The run of equal values that may go on.
struct Runs<T, F> {
    last: Option<(Range<u64>, T)>,
    each: F,
}

impl<T: PartialEq, F: FnMut(Range<u64>, T)> Runs<T, F> {
    fn add(&mut self, range: Range<u64>, value: T) {
        match &mut self.last {
            Some((last, same)) if *same == value && last.end == range.start => last.end = range.end,
            last => {
                let before = last.replace((range, value));
                before.into_iter().for_each(|(range, value)| (self.each)(range, value));
            }
        }
    }

    fn finish(mut self) {
        self.last.into_iter().for_each(|(range, value)| (self.each)(range, value));
    }
}

impl<T: Copy + PartialEq + Default> Pages<T> {
    /// Sets all bytes of a range.
    pub(super) fn set(&mut self, range: Range<u64>, value: T) {
        for (number, part) in parts(range, CHUNK) {
            self.chunks.entry(number).or_insert_with(|| PageChunk::Even(T::default())).set(part, value);
        }
    }

    /// Gives each run of equal values of the ranges another value. Runs end with their pages.
    pub(super) fn update<K>(
        &mut self,
        ranges: impl IntoIterator<Item = (Range<u64>, K)>,
        mut new: impl FnMut(&K, Range<u64>, T) -> T,
    ) {
        // Ranges that follow each other are short, as a rule, so that a chunk has many.
        let mut open: Option<(u64, &mut PageChunk<T>)> = None;
        for (range, of) in ranges {
            for (number, part) in parts(range, CHUNK) {
                let base = number * CHUNK;
                if open.as_ref().is_none_or(|(known, _)| *known != number) {
                    open = Some((number, self.chunks.entry(number).or_insert_with(|| PageChunk::Even(T::default()))));
                }
                let Some((_, chunk)) = &mut open else { continue };
                let pages = match &mut **chunk {
                    PageChunk::Even(value) => {
                        let value = new(&of, base + part.start..base + part.end, *value);
                        chunk.set(part, value);
                        continue;
                    }
                    PageChunk::Pages(pages) => pages,
                };
                for (number, part) in parts(part, PAGE) {
                    pages[number as usize].update(part, base + number * PAGE, |run, value| new(&of, run, value));
                }
            }
        }
    }

    /// The value of a byte.
    pub(super) fn at(&self, address: u64) -> T {
        self.chunks.get(&(address / CHUNK)).map_or_else(T::default, |chunk| chunk.at(address % CHUNK))
    }

    /// Passes the runs of equal values of each range, in ascending order and as long as they are; memory that was never
    /// set has the default.
    pub(super) fn runs<K>(
        &self,
        ranges: impl IntoIterator<Item = (Range<u64>, K)>,
        mut each: impl FnMut(&K, Range<u64>, T),
    ) {
        // Ranges that follow each other are short, as a rule, so that a chunk has many.
        let mut last: Option<(u64, Option<&PageChunk<T>>)> = None;
        for (range, of) in ranges {
            let mut runs = Runs { last: None, each: |run, value| each(&of, run, value) };
            for (number, part) in parts(range, CHUNK) {
                let base = number * CHUNK;
                let (_, chunk) = match last {
                    Some(known) if known.0 == number => known,
                    _ => *last.insert((number, self.chunks.get(&number))),
                };
                match chunk {
                    None => runs.add(base + part.start..base + part.end, T::default()),
                    Some(PageChunk::Even(value)) => runs.add(base + part.start..base + part.end, *value),
                    Some(PageChunk::Pages(pages)) => {
                        for (number, part) in parts(part, PAGE) {
                            let (page, base) = (&pages[number as usize], base + number * PAGE);
                            let mut at = part.start;
                            while at < part.end {
                                let end = page.run(at, part.end);
                                runs.add(base + at..base + end, page.at(at));
                                at = end;
                            }
                        }
                    }
                }
            }
            runs.finish();
        }
    }

    /// Passes the runs of all values that are not the default.
    pub(super) fn all(&self, mut each: impl FnMut(Range<u64>, T)) {
        for &number in self.chunks.keys() {
            self.runs([(number * CHUNK..(number + 1) * CHUNK, ())], |(), range, value| {
                if value != T::default() {
                    each(range, value);
                }
            });
        }
    }

    /// Changes all values; chunks with the default everywhere are dropped.
    pub(super) fn change(&mut self, mut change: impl FnMut(T) -> T) {
        self.chunks.retain(|_, chunk| {
            chunk.change(&mut change);
            !matches!(chunk, PageChunk::Even(value) if *value == T::default())
        });
    }

    /// All values of a range become the default, with others of its pages where that takes less memory.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        for (number, part) in parts(range, CHUNK) {
            match self.chunks.get_mut(&number) {
                Some(PageChunk::Pages(pages)) => {
                    parts(part, PAGE).for_each(|(number, _)| pages[number as usize] = Page::Even(T::default()));
                }
                Some(even) => *even = PageChunk::Even(T::default()),
                None => {}
            }
        }
    }

    /// Number of chunks that are even, and of pages of others.
    pub(super) fn len(&self) -> usize {
        self.chunks.values().map(|chunk| chunk.parts().len().max(1)).sum()
    }

    /// Bytes of host memory that the chunks occupy, about.
    pub(super) fn bytes(&self) -> u64 {
        let of = |page: &Page<T>| {
            let cells = if page.grain() == PAGE { 0 } else { PAGE / page.grain() * size_of::<T>() as u64 };
            size_of::<Page<T>>() as u64 + cells
        };
        self.chunks.values().map(|chunk| 64 + chunk.parts().iter().map(of).sum::<u64>()).sum()
    }
}

/// The parts of a range in pieces of `size` bytes: the number of the piece, and offsets in it.
fn parts(range: Range<u64>, size: u64) -> impl Iterator<Item = (u64, Range<u64>)> {
    let (first, last) = (range.start / size, range.end.max(range.start).div_ceil(size));
    (first..last).map(move |number| {
        let base = number * size;
        (number, range.start.max(base) - base..range.end.min(base + size) - base)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pages: &Pages<u32>) -> Vec<(Range<u64>, u32)> {
        let mut list: Vec<(Range<u64>, u32)> = Vec::new();
        pages.all(|range, value| match list.last_mut() {
            Some((last, same)) if last.end == range.start && *same == value => last.end = range.end,
            _ => list.push((range, value)),
        });
        list
    }

    #[test]
    fn ranges_overwrite_each_other_at_any_grain() {
        let mut pages = Pages::default();
        pages.set(100..9000, 1);
        pages.set(4096..8192, 2);
        pages.set(5000..5004, 3);
        pages.set(5001..5002, 4);
        let expected =
            [(100..4096, 1), (4096..5000, 2), (5000..5001, 3), (5001..5002, 4), (5002..5004, 3), (5004..8192, 2)];
        assert_eq!(all(&pages)[..6], expected);
        assert_eq!(all(&pages)[6..], [(8192..9000, 1)]);
        pages.set(0..2 * CHUNK, 5);
        pages.set(CHUNK - 3..CHUNK + 2, 6);
        assert_eq!(all(&pages), [(0..CHUNK - 3, 5), (CHUNK - 3..CHUNK + 2, 6), (CHUNK + 2..2 * CHUNK, 5)]);
        let mut runs = Vec::new();
        pages.runs([(CHUNK + 2..4 * CHUNK, ())], |(), range, value| runs.push((range, value)));
        assert_eq!(runs, [(CHUNK + 2..2 * CHUNK, 5), (2 * CHUNK..4 * CHUNK, 0)], "runs are as long as they are");
        pages.set(0..2 * CHUNK, 1);
        assert_eq!(pages.len(), 2, "whole chunks are even");
        pages.set(0..8192, 2);
        pages.set(5000..5004, 3);
        pages.set(5001..5002, 4);
        assert_eq!([pages.at(99), pages.at(5001), pages.at(9000)], [2, 4, 1]);
    }

    #[test]
    fn memory_that_is_alike_again_is_one_page() {
        let mut pages = Pages::default();
        pages.set(10..20, 1u32);
        pages.change(|value| if value == 1 { 0 } else { value });
        assert_eq!(pages.bytes(), 0);
        pages.set(0..PAGE, 2);
        pages.set(4..8, 2);
        assert_eq!(pages.len(), 512);
        pages.set(PAGE..CHUNK, 2);
        pages.change(|value| value);
        assert_eq!((pages.len(), pages.bytes()), (1, 64));
    }

    #[test]
    fn a_forgotten_range_has_nothing_and_takes_no_cells() {
        let mut pages = Pages::default();
        (0..2 * PAGE).step_by(8).for_each(|at| pages.set(at..at + 4, 1u32));
        pages.set(CHUNK..2 * CHUNK, 2);
        let before = pages.bytes();
        pages.forget(PAGE..PAGE + 4);
        assert_eq!([pages.at(0), pages.at(PAGE), pages.at(2 * PAGE - 8)], [1, 0, 0]);
        assert_eq!(before - pages.bytes(), PAGE);
        pages.forget(CHUNK + 8..4 * CHUNK);
        assert_eq!([pages.at(0), pages.at(CHUNK), pages.at(3 * CHUNK)], [1, 0, 0]);
    }

    #[test]
    fn random_ranges_agree_with_a_list_of_bytes() {
        let (mut pages, mut bytes) = (Pages::default(), vec![0u32; 3 * PAGE as usize]);
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % below
        };
        for value in 1..500 {
            let start = next(3 * PAGE - 1);
            let mut range = start..start + 1 + next((3 * PAGE - start).min(5000));
            if next(3) > 0 {
                range = range.start & !3..(range.end + 3) & !3;
            }
            let value = value % 7;
            if next(2) == 0 {
                pages.set(range.clone(), value);
            } else {
                pages.update([(range.clone(), ())], |(), run, known| {
                    assert!(bytes[run.start as usize..run.end as usize].iter().all(|byte| *byte == known), "{run:?}");
                    value
                });
            }
            bytes[range.start as usize..range.end as usize].fill(value);
        }
        pages.runs([(0..3 * PAGE, ())], |(), range, value| {
            assert!(bytes[range.start as usize..range.end as usize].iter().all(|byte| *byte == value), "{range:?}");
        });
    }
}

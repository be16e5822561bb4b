//! The runs of bytes that the same instructions of a dispatch accessed, read from their marks.
//!
//! Marks are read part by part, so that no list of all runs is needed (`dispatch_runs.rs`).

use std::ops::Range;

use spelter_shaders::check::{GRANULE, Plane, Planes};
use spelter_shaders::guest::GuestSlice;

use super::marks::{PageOfMarks, Touch};

/// Marks of at most [`GRANULE`] bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum MarkedPart<'a> {
    Granule(MarkedGranule<'a>),
    Page(PageOfMarks<'a>),
}

/// A byte for each word of a granule, in planes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedGranule<'a> {
    pub(super) planes: &'a Planes,
    pub(super) granule: u64,
    /// Whether there may be marks of writes, of reads.
    pub(super) kinds: [bool; 2],
    /// The address that the planes' address 0 stands for, and the bytes that a word of the planes stands for.
    pub(super) base: u64,
    pub(super) grain: u64,
    /// Whether other dispatches mark the planes, too.
    pub(super) is_shared: bool,
}

/// What reads marks.
#[derive(Debug, Default)]
pub(super) struct MarkReader {
    /// The marks of a granule: of writes, of reads.
    copies: [Vec<u8>; 2],
    runs: Vec<(Range<u64>, Touch)>,
}

impl MarkReader {
    /// The runs of a part, in ascending order.
    pub(super) fn runs(&mut self, part: &MarkedPart<'_>) -> &[(Range<u64>, Touch)] {
        self.runs.clear();
        match part {
            MarkedPart::Granule(granule) => self.read(granule),
            MarkedPart::Page(page) => page.runs(|range, touch| self.runs.push((range, touch))),
        }
        &self.runs
    }

    fn read(&mut self, of: &MarkedGranule<'_>) {
        let slices = of.slices(of.all());
        // Most granules have marks of one kind only: the others are not looked at.
        for ((slice, marks), _) in slices.iter().zip(&mut self.copies).zip(of.kinds).filter(|(_, marked)| *marked) {
            marks.resize(slice.len() as usize, 0);
            slice.read(0, marks);
        }
        let [writes, reads] = &self.copies;
        let (mut at, words) = (0, slices[0].len() as usize);
        while at < words {
            let (write, read, end) = match of.kinds {
                [true, true] => (writes[at], reads[at], at + run(&writes[at..], &reads[at..])),
                [true, false] => (writes[at], 0, at + run_of(&writes[at..])),
                [false, true] => (0, reads[at], at + run_of(&reads[at..])),
                [false, false] => (0, 0, words),
            };
            if (write, read) != (0, 0) {
                self.runs.push((of.address(at)..of.address(end), Touch::new(write.into(), read.into())));
            }
            at = end;
        }
    }
}

impl MarkedGranule<'_> {
    fn all(&self) -> Range<u64> {
        self.granule * GRANULE..(self.granule + 1) * GRANULE
    }

    fn slices(&self, words: Range<u64>) -> [GuestSlice; 2] {
        [Plane::Wrote, Plane::HasRead].map(|plane| self.planes.slice(plane, words.clone()))
    }

    /// Where the memory of a word begins.
    fn address(&self, word: usize) -> u64 {
        self.base + (self.granule * (GRANULE / 4) + word as u64) * self.grain
    }
}

impl MarkedPart<'_> {
    /// Removes the marks if they are in planes that other dispatches mark, too: from the first of these runs to the
    /// last one, at once, as runs may be as short as a word; without runs all.
    pub(super) fn clear(&self, runs: Option<&[(Range<u64>, Touch)]>) {
        let Self::Granule(granule) = self else { return };
        if !granule.is_shared {
            return;
        }
        let words = match runs {
            Some([(first, _), .., (last, _)]) => first.start..last.end,
            Some([(only, _)]) => only.clone(),
            Some([]) => return,
            None => granule.all(),
        };
        for (slice, _) in granule.slices(words).iter().zip(granule.kinds).filter(|(_, marked)| *marked) {
            fill(*slice, 0);
        }
    }
}

/// Sets all marks of a part of a plane.
#[inline]
pub(super) fn fill(marks: GuestSlice, mark: u8) {
    let whole = marks.len() / 4 * 4;
    if whole > 0 {
        marks.fill(0, whole, u32::from_ne_bytes([mark; 4]));
    }
    (whole..marks.len()).for_each(|at| marks.store_u8(at, mark));
}

/// The number of words from the first on with the same marks.
fn run(writes: &[u8], reads: &[u8]) -> usize {
    let (Some(&write), Some(&read)) = (writes.first(), reads.first()) else { return 0 };
    // Most runs are long.
    let same = writes.as_chunks::<16>().0.iter().zip(reads.as_chunks::<16>().0);
    let whole = same.take_while(|(writes, reads)| **writes == [write; 16] && **reads == [read; 16]).count() * 16;
    let tail = writes[whole..].iter().zip(&reads[whole..]);
    whole + tail.take_while(|&(&a, &b)| (a, b) == (write, read)).count()
}

/// The number of marks from the first on that are the same.
fn run_of(marks: &[u8]) -> usize {
    let Some(&mark) = marks.first() else { return 0 };
    let whole = marks.as_chunks::<32>().0.iter().take_while(|marks| **marks == [mark; 32]).count() * 32;
    whole + marks[whole..].iter().take_while(|&&other| other == mark).count()
}

//! The instructions that accessed words and bytes last, where no plane of the shadow has them.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;
use spelter_shaders::ir::Site;

use super::memory::PAGE;

/// An instruction, counted from 1; 0 is none.
pub(super) type SiteNumber = u32;

/// The instructions that wrote and that read a byte. An atomic is in both if it does both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::check) struct Touch {
    write: SiteNumber,
    read: SiteNumber,
}

impl Touch {
    pub(super) fn new(write: SiteNumber, read: SiteNumber) -> Self {
        Self { write, read }
    }

    /// The instruction that wrote last.
    pub(super) fn write(self) -> Option<Site> {
        self.write.checked_sub(1).map(Site::from_u32)
    }

    /// The instruction that read last.
    pub(super) fn read(self) -> Option<Site> {
        self.read.checked_sub(1).map(Site::from_u32)
    }

    #[cfg(test)]
    pub(super) fn numbers(self) -> (SiteNumber, SiteNumber) {
        (self.write, self.read)
    }

    #[inline]
    fn add(&mut self, Mark { number, wrote, reads }: Mark) {
        if wrote {
            self.write = number;
        }
        if reads {
            self.read = number;
        }
    }
}

/// What an instruction did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) number: SiteNumber,
    pub(super) wrote: bool,
    pub(super) reads: bool,
}

/// Pages that are found without the map.
const RECENT: usize = 16;

/// The marks of some accesses.
#[derive(Debug, Default)]
pub(super) struct Marks {
    words: MarkPages<4>,
    /// Sub-word accesses.
    bytes: MarkPages<1>,
}

/// A mark for each so many bytes of pages.
#[derive(Debug, Default)]
struct MarkPages<const GRAIN: u64> {
    pages: Vec<(u64, Box<[Touch]>)>,
    places: HashMap<u64, u32, FixedState>,
    recent: [u32; RECENT],
}

impl<const GRAIN: u64> MarkPages<GRAIN> {
    /// The page with this number, for which bytes of the budget are taken if it is new.
    #[inline]
    fn page(&mut self, number: u64, budget: &mut u64) -> Option<&mut [Touch]> {
        let recent = &mut self.recent[number as usize % RECENT];
        if self.pages.get(*recent as usize).is_none_or(|(known, _)| *known != number) {
            *recent = match self.places.get(&number) {
                Some(place) => *place,
                None => {
                    let marks = PAGE / GRAIN;
                    *budget = budget.checked_sub(marks * size_of::<Touch>() as u64)?;
                    let place = self.pages.len() as u32;
                    self.places.insert(number, place);
                    self.pages.push((number, vec![Touch::default(); marks as usize].into_boxed_slice()));
                    place
                }
            };
        }
        let recent = *recent as usize;
        self.pages.get_mut(recent).map(|(_, marks)| &mut **marks)
    }

    #[inline]
    fn touch(&mut self, range: Range<u64>, mark: Mark, budget: &mut u64) -> bool {
        let mut at = range.start;
        while at < range.end {
            let Some(page) = self.page(at / PAGE, budget) else { return false };
            page[(at % PAGE / GRAIN) as usize].add(mark);
            at += GRAIN;
        }
        true
    }

    /// The pages, in ascending order.
    fn pages(&self) -> impl Iterator<Item = PageOfMarks<'_>> {
        let mut order: Vec<_> = self.pages.iter().collect();
        order.sort_unstable_by_key(|(number, _)| *number);
        order.into_iter().map(|(number, marks)| PageOfMarks { start: number * PAGE, grain: GRAIN, marks })
    }
}

impl Marks {
    /// Marks whole words; false if the budget does not suffice.
    #[inline]
    pub(super) fn touch(&mut self, words: Range<u64>, mark: Mark, budget: &mut u64) -> bool {
        self.words.touch(words, mark, budget)
    }

    /// Marks bytes; false if the budget does not suffice.
    #[cold]
    pub(super) fn touch_part(&mut self, bytes: Range<u64>, mark: Mark, budget: &mut u64) -> bool {
        self.bytes.touch(bytes, mark, budget)
    }

    /// The pages of words in ascending order, then those of sub-word accesses.
    pub(super) fn pages(&self) -> impl Iterator<Item = PageOfMarks<'_>> {
        self.words.pages().chain(self.bytes.pages())
    }
}

/// The marks of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageOfMarks<'a> {
    start: u64,
    grain: u64,
    marks: &'a [Touch],
}

impl PageOfMarks<'_> {
    /// Passes the runs of equal marks, in ascending order.
    pub(super) fn runs(&self, mut each: impl FnMut(Range<u64>, Touch)) {
        let mut at = self.start;
        for run in self.marks.chunk_by(|first, second| first == second) {
            let end = at + run.len() as u64 * self.grain;
            if run[0] != Touch::default() {
                each(at..end, run[0]);
            }
            at = end;
        }
    }
}

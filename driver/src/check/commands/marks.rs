//! The instructions that accessed words and bytes last, where no plane of the shadow has them.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;
use spelter_shaders::ir::Site;

use super::memory::{PAGE, Pages};

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

/// Words of a page.
const WORDS: usize = PAGE as usize / 4;

/// Pages that are found without the map.
const RECENT: usize = 16;

/// The marks of some accesses.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Whole words.
    pages: Vec<(u64, Box<[Touch]>)>,
    places: HashMap<u64, u32, FixedState>,
    recent: [u32; RECENT],
    /// Sub-word accesses.
    parts: Pages<Touch>,
}

impl Marks {
    /// The page with this number, for which bytes of the budget are taken if it is new.
    #[inline]
    fn page(&mut self, number: u64, budget: &mut u64) -> Option<&mut [Touch]> {
        let recent = &mut self.recent[number as usize % RECENT];
        if self.pages.get(*recent as usize).is_none_or(|(known, _)| *known != number) {
            *recent = match self.places.get(&number) {
                Some(place) => *place,
                None => {
                    *budget = budget.checked_sub(2 * PAGE)?;
                    let place = self.pages.len() as u32;
                    self.places.insert(number, place);
                    self.pages.push((number, vec![Touch::default(); WORDS].into_boxed_slice()));
                    place
                }
            };
        }
        let recent = *recent as usize;
        self.pages.get_mut(recent).map(|(_, words)| &mut **words)
    }

    /// Marks whole words; false if the budget does not suffice.
    #[inline]
    pub(super) fn touch(&mut self, words: Range<u64>, mark: Mark, budget: &mut u64) -> bool {
        let mut at = words.start;
        while at < words.end {
            let Some(page) = self.page(at / PAGE, budget) else { return false };
            page[(at % PAGE / 4) as usize].add(mark);
            at += 4;
        }
        true
    }

    /// Marks bytes.
    #[cold]
    pub(super) fn touch_part(&mut self, bytes: Range<u64>, mark: Mark) {
        for byte in bytes {
            let mut touch = self.parts.at(byte);
            touch.add(mark);
            self.parts.set(byte..byte + 1, touch);
        }
    }

    /// Passes the runs of equal marks: words in ascending order, then those of sub-word accesses.
    pub(super) fn runs(&self, each: &mut impl FnMut(Range<u64>, Touch)) {
        let mut order: Vec<_> = self.pages.iter().collect();
        order.sort_unstable_by_key(|(number, _)| *number);
        let mut open: Option<(Range<u64>, Touch)> = None;
        for (number, words) in order {
            for (word, &touch) in words.iter().enumerate() {
                let at = number * PAGE + 4 * word as u64;
                match &mut open {
                    Some((range, same)) if *same == touch && range.end == at => range.end = at + 4,
                    _ => {
                        let last = open.replace((at..at + 4, touch));
                        if let Some((range, touch)) = last.filter(|(_, touch)| *touch != Touch::default()) {
                            each(range, touch);
                        }
                    }
                }
            }
        }
        if let Some((range, touch)) = open.filter(|(_, touch)| *touch != Touch::default()) {
            each(range, touch);
        }
        self.parts.all(each);
    }
}

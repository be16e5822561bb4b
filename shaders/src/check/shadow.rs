//! The shadow: for each word of memory a cell of its last write and one of its last reads, in pages by address.
//!
//! Two planes of four bytes a word, as the memory itself is laid out. Those of a range with reserved planes lie
//! beside each other, so that machine code can address them; others are made when they are first used. Pages are found
//! by a map.
//!
//! The system commits a plane where it is first written, and reading elsewhere commits nothing. So a page counts with
//! the planes that accesses write: a word that is written only has one cell, and one mark.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::cells::Cell;
use super::page::{AttributeId, PAGE_BYTES, Page, UNUSED};
use super::planes::Planes;
use crate::ir::{Plane, PlaneSet};

/// The numbers of the pages that a range has a part of.
fn pages(range: &Range<u64>) -> Range<u64> {
    let end = if range.is_empty() { range.start / PAGE_BYTES } else { range.end.div_ceil(PAGE_BYTES) };
    range.start / PAGE_BYTES..end
}

/// Pages that are found without the map: accesses alternate between a few arrays.
const RECENT: usize = 16;

/// The pages of a memory.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// The planes of ranges that machine code may access.
    reserved: SmallVec<[Arc<Planes>; 2]>,
    pages: Vec<Page>,
    places: HashMap<u64, u32, foldhash::fast::FixedState>,
    /// Places of the pages that were used last, by the low bits of their numbers.
    recent: [u32; RECENT],
    /// Bytes of the planes that count.
    bytes: u64,
    /// Whether what this window has not used is gone, to make room.
    tight: bool,
}

impl Shadow {
    /// Uses these planes for the pages of their range. There must be no page of it yet.
    pub(super) fn reserve(&mut self, planes: Arc<Planes>) {
        self.reserved.push(planes);
    }

    /// The reserved planes of a range.
    pub(super) fn reserved(&self, range: &Range<u64>) -> Option<&Arc<Planes>> {
        self.reserved.iter().find(|planes| planes.cover(range))
    }

    /// Whether there are reserved planes.
    pub(super) fn has_reserved(&self) -> bool {
        !self.reserved.is_empty()
    }

    /// Whether there is no page.
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Gives the accesses to a range an attribute in advance, so that machine code need not, which may write these
    /// planes. False if the range has no reserved planes, or the shadow would occupy more than `limit` bytes. No access
    /// of the dispatch was marked yet.
    pub(super) fn bind(&mut self, range: Range<u64>, attribute: AttributeId, planes: PlaneSet, limit: u64) -> bool {
        if self.reserved(&range).is_none() || range.is_empty() {
            return false;
        }
        if !self.has_room(&[(range.clone(), planes)], limit) {
            return false;
        }
        for number in pages(&range) {
            let position = self.commit(number, planes, limit);
            let Some(page) = position.and_then(|position| self.pages.get_mut(position)) else { return false };
            let first = number * PAGE_BYTES;
            let word = |address: u64| (address.saturating_sub(first).min(PAGE_BYTES) / 4) as usize;
            page.bind(word(range.start)..word(range.end.next_multiple_of(4)), attribute);
        }
        true
    }

    /// Counts planes of a range that machine code writes, whatever accesses there are else. False if the range has no
    /// reserved planes. There is room for them.
    pub(super) fn mark(&mut self, range: Range<u64>, planes: PlaneSet) -> bool {
        self.reserved(&range).is_some() && pages(&range).all(|number| self.commit(number, planes, u64::MAX).is_some())
    }

    /// Whether these planes of some ranges can be written without that the shadow occupies more than `limit` bytes. If
    /// not, nothing is bound, so that accesses by calls have the room, as far as it goes.
    pub(super) fn has_room(&mut self, ranges: &[(Range<u64>, PlaneSet)], limit: u64) -> bool {
        let missing = |shadow: &Self| -> u64 {
            let of = |(range, planes): &(Range<u64>, PlaneSet)| -> u64 {
                pages(range).map(|number| shadow.missing(number, *planes).bytes()).sum()
            };
            ranges.iter().map(of).sum()
        };
        if self.bytes + missing(self) > limit {
            for (range, planes) in ranges {
                pages(range).for_each(|number| self.keep(number, *planes));
            }
            self.make_room(PlaneSet::ALL);
        }
        self.bytes + missing(self) <= limit
    }

    /// The page with this number, for an access with `attribute` that may write these planes. `None` if the shadow
    /// would occupy more than `limit` bytes then. All accesses of a new page have the attribute at first.
    #[inline]
    pub(super) fn page(
        &mut self,
        number: u64,
        attribute: AttributeId,
        needs: PlaneSet,
        limit: u64,
    ) -> Option<&mut Page> {
        let recent = self.recent[number as usize % RECENT] as usize;
        let is_ready = |page: &Page| {
            page.number == number && page.attribute != UNUSED && page.used.has(page.needs(attribute, needs))
        };
        if !self.pages.get(recent).is_some_and(is_ready) {
            return self.find(number, attribute, needs, limit);
        }
        self.pages.get_mut(recent)
    }

    #[cold]
    fn find(&mut self, number: u64, attribute: AttributeId, needs: PlaneSet, limit: u64) -> Option<&mut Page> {
        let page = self.places.get(&number).map(|place| &self.pages[*place as usize]);
        let needs = page.map_or(needs, |page| page.needs(attribute, needs));
        let place = self.commit(number, needs, limit)?;
        self.recent[number as usize % RECENT] = place as u32;
        let page = self.pages.get_mut(place)?;
        if page.attribute == UNUSED {
            page.attribute = attribute;
        }
        Some(page)
    }

    /// The page with this number, if it exists.
    pub(super) fn existing(&mut self, number: u64) -> Option<&mut Page> {
        let place = *self.places.get(&number)?;
        self.pages.get_mut(place as usize)
    }

    /// Those of the planes that do not count for a page yet.
    fn missing(&self, number: u64, planes: PlaneSet) -> PlaneSet {
        let page = self.places.get(&number).map(|place| &self.pages[*place as usize]);
        page.map_or(planes, |page| planes.without(page.committed))
    }

    /// Notes that this window needs what there is of the planes of a page.
    fn keep(&mut self, number: u64, planes: PlaneSet) {
        if let Some(page) = self.existing(number) {
            page.used = page.used.or(planes.both(page.committed));
        }
    }

    /// The place of a page with these planes, which is made if there is none, unless the shadow would occupy more than
    /// `limit` bytes.
    fn commit(&mut self, number: u64, planes: PlaneSet, limit: u64) -> Option<usize> {
        let missing = self.missing(number, planes).bytes();
        if self.bytes + missing > limit {
            self.keep(number, planes);
            // The commands of the window have their marks.
            self.make_room(PlaneSet::CELLS);
            if self.bytes + missing > limit {
                return None;
            }
        }
        let place = match self.places.get(&number) {
            Some(&place) => place as usize,
            None => self.add(number)?,
        };
        let page = &mut self.pages[place];
        (page.used, page.committed) = (page.used.or(planes), page.committed.or(planes));
        self.bytes += missing;
        Some(place)
    }

    #[cold]
    fn add(&mut self, number: u64) -> Option<usize> {
        let range = number * PAGE_BYTES..(number + 1) * PAGE_BYTES;
        let planes = match self.reserved(&range) {
            Some(planes) => Arc::clone(planes),
            None => Planes::new(range)?,
        };
        self.places.insert(number, self.pages.len() as u32);
        self.pages.push(Page::new(number, planes));
        Some(self.pages.len() - 1)
    }

    /// Gives back those of the planes that this window does not use: all cells there are settled.
    #[cold]
    pub(super) fn make_room(&mut self, planes: PlaneSet) {
        if std::mem::replace(&mut self.tight, true) {
            return;
        }
        for page in &mut self.pages {
            self.bytes -= page.release(planes.without(page.used));
        }
        self.pages.retain(|page| page.used.or(page.committed) != PlaneSet::NONE);
        self.places = self.pages.iter().zip(0..).map(|(page, place)| (page.number, place)).collect();
    }

    /// Bytes that the pages occupy, without histories.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes the histories, whose accesses are all settled, and lets pages go if there are more than fit `limit`. No
    /// access is marked.
    pub(super) fn settle(&mut self, limit: u64) {
        self.tight = false;
        if self.bytes > limit {
            self.pages.iter_mut().for_each(|page| _ = page.release(PlaneSet::ALL));
            self.pages.clear();
            self.places.clear();
            self.bytes = 0;
        }
        for page in &mut self.pages {
            let detailed: Vec<_> = page.histories.keys().copied().collect();
            detailed.into_iter().for_each(|word| page.condense(word, Cell::EMPTY, Cell::EMPTY));
            page.forget();
            page.used = PlaneSet::NONE;
        }
    }

    /// Replaces the cells by others. Those that no access of the window has written are settled, and empty afterwards.
    pub(super) fn renumber(&mut self, to: impl Fn(Cell) -> Cell) {
        for page in &mut self.pages {
            self.bytes -= page.release(PlaneSet::CELLS.without(page.used));
            for plane in [Plane::Written, Plane::Read] {
                if page.committed.has(PlaneSet::of(plane)) {
                    let cells = page.plane(plane).iter_mut().filter(|cell| **cell != Cell::DETAILED.0);
                    cells.for_each(|cell| *cell = to(Cell(*cell)).0);
                }
            }
            let accesses = page.histories.values_mut().flat_map(|history| &mut history.accesses);
            accesses.for_each(|access| access.cell = to(access.cell));
        }
    }

    /// Empties all cells. Pages keep their marks.
    pub(super) fn clear(&mut self) {
        for page in &mut self.pages {
            self.bytes -= page.release(PlaneSet::CELLS);
            page.forget();
            page.used = page.used.without(PlaneSet::CELLS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: PlaneSet = PlaneSet::of(Plane::Written);
    const CELLS: PlaneSet = PlaneSet::CELLS;
    const MARKED: PlaneSet = WRITTEN.and(Plane::Wrote);

    #[test]
    fn pages_are_made_when_they_are_used_and_up_to_a_limit() {
        let mut shadow = Shadow::default();
        shadow.page(7, 1, WRITTEN, PAGE_BYTES).unwrap().set_written(5, Cell(40));
        assert!(shadow.page(8, 1, WRITTEN, 2 * PAGE_BYTES - 1).is_none(), "a second page does not fit");
        assert!(shadow.page(8, 1, WRITTEN, 2 * PAGE_BYTES).is_some());
        assert_eq!(shadow.page(7, 1, WRITTEN, 0).unwrap().cells(5), (Cell(40), Cell::EMPTY));
        assert!(shadow.page(7, 1, CELLS, 2 * PAGE_BYTES).is_none(), "nor do cells of reads");
        assert!(shadow.page(7, 1, CELLS, 3 * PAGE_BYTES).is_some());
        assert_eq!(shadow.bytes(), 3 * PAGE_BYTES);
        shadow.settle(PAGE_BYTES);
        assert_eq!(shadow.bytes(), 0);
    }

    #[test]
    fn an_access_unlike_the_others_may_write_the_cells_of_writes() {
        let mut shadow = Shadow::default();
        let read = PlaneSet::of(Plane::Read);
        shadow.page(7, 1, read, u64::MAX).unwrap();
        assert_eq!(shadow.bytes(), PAGE_BYTES);
        shadow.page(7, 2, read, u64::MAX).unwrap();
        assert_eq!(shadow.bytes(), 2 * PAGE_BYTES);
    }

    #[test]
    fn what_a_window_does_not_use_makes_room() {
        let mut shadow = Shadow::default();
        shadow.page(7, 1, CELLS, u64::MAX).unwrap().set_written(5, Cell(40));
        shadow.page(8, 1, CELLS, u64::MAX).unwrap().set_written(5, Cell(40));
        shadow.settle(u64::MAX);
        assert!(shadow.page(7, 1, WRITTEN, u64::MAX).is_some());
        let three = 3 * PAGE_BYTES;
        assert!(shadow.page(9, 1, CELLS, three).is_some(), "page 8 goes, and the cells of reads of page 7");
        assert_eq!(shadow.bytes(), three);
        assert_eq!(shadow.page(7, 1, WRITTEN, three).unwrap().cells(5), (Cell(40), Cell::EMPTY));
        assert!(shadow.page(8, 1, WRITTEN, three).is_none());
        assert_eq!(shadow.page(8, 1, CELLS, u64::MAX).unwrap().cells(5), (Cell::EMPTY, Cell::EMPTY));
    }

    #[test]
    fn words_of_a_page_may_differ_in_their_attribute() {
        let mut shadow = Shadow::default();
        let page = shadow.page(0, 3, CELLS, u64::MAX).unwrap();
        page.set_attribute(9, 4);
        assert_eq!([page.attribute(8), page.attribute(9)], [3, 4]);
        assert!(page.row(9..10, 4).is_some() && page.row(8..10, 4).is_none() && page.row(0..9, 3).is_some());
    }

    #[test]
    fn ranges_have_attributes_until_the_window_ends() {
        let mut shadow = Shadow::default();
        shadow.reserve(Planes::new(0..4 * PAGE_BYTES).unwrap());
        let (first, second) = (PAGE_BYTES - 64..PAGE_BYTES + 64, PAGE_BYTES + 64..2 * PAGE_BYTES);
        assert!(!shadow.bind(first.clone(), 1, MARKED, 2 * PAGE_BYTES), "two pages do not fit");
        assert_eq!(shadow.bytes(), 0);
        assert!(shadow.bind(first, 1, MARKED, u64::MAX) && shadow.bind(second, 2, MARKED, u64::MAX));
        assert!(!shadow.bind(3 * PAGE_BYTES..5 * PAGE_BYTES, 1, MARKED, u64::MAX), "there are no planes");
        assert_eq!(shadow.bytes(), 2 * MARKED.bytes());
        let page = shadow.page(1, 9, WRITTEN, u64::MAX).unwrap();
        assert_eq!([page.attribute(15), page.attribute(16)], [1, 2]);
        page.set_written(15, Cell(8));
        assert_eq!(page.cells(15), (Cell(8), Cell::EMPTY));
        shadow.settle(u64::MAX);
        assert_eq!(shadow.page(1, 9, WRITTEN, u64::MAX).unwrap().attribute(15), 9);
    }

    #[test]
    fn marks_stay_while_a_window_lasts() {
        let mut shadow = Shadow::default();
        let planes = Planes::new(0..4 * PAGE_BYTES).unwrap();
        shadow.reserve(Arc::clone(&planes));
        shadow.page(1, 1, MARKED, u64::MAX).unwrap().set_written(5, Cell(40));
        shadow.settle(u64::MAX);
        let mark = planes.slice(Plane::Wrote, PAGE_BYTES..PAGE_BYTES + 16);
        mark.fill(0, 4, 0x0707_0707);
        assert!(shadow.page(2, 1, MARKED, 2 * PAGE_BYTES).is_some(), "the cells of page 1 go");
        shadow.clear();
        assert_eq!((mark.load_u8(0), shadow.bytes()), (7, 2 * PlaneSet::of(Plane::Wrote).bytes()));
        shadow.settle(u64::MAX);
        assert!(shadow.bind(0..PAGE_BYTES, 1, MARKED, MARKED.bytes()));
        assert_eq!((mark.load_u8(0), shadow.bytes()), (0, MARKED.bytes()));
    }
}

//! The shadow: for each word of memory a cell of its last write and one of its last reads, in pages by address.
//!
//! Two planes of four bytes a word, as the memory itself is laid out. Those of a range with reserved planes lie
//! beside each other, so that machine code can address them; others are made when they are first used. Pages are found
//! by a map.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::cells::Cell;
use super::history::History;
use super::planes::{GRANULE, Plane, Planes};

/// Bytes of memory that a page covers.
pub(super) const PAGE_BYTES: u64 = GRANULE;

/// Words that a page covers.
const WORDS: usize = PAGE_BYTES as usize / 4;

/// Index of an [attribute](super::history::Attributes) in the detector's table.
pub(super) type AttributeId = u16;

/// That of a page without accesses.
const UNUSED: AttributeId = AttributeId::MAX;

/// The shadow of a page.
#[derive(Debug)]
pub(super) struct Page {
    number: u64,
    /// Where its cells are.
    planes: Arc<Planes>,
    /// What the plain accesses of the page have in common, or of each word if they differ.
    attribute: AttributeId,
    attributes: Option<Box<[AttributeId]>>,
    /// The words whose accesses the cells cannot express.
    histories: HashMap<u16, Box<History>, foldhash::fast::FixedState>,
}

/// Where a word is: its place in its page.
pub(super) type Word = u16;

impl Page {
    fn new(number: u64, attribute: AttributeId, planes: Arc<Planes>) -> Self {
        Self { number, planes, attribute, attributes: None, histories: HashMap::default() }
    }

    #[inline]
    fn plane(&self, plane: Plane) -> &mut [u32] {
        self.planes.cells(plane, self.number)
    }

    /// Sets the attribute of all accesses to some words, which have none in this window so far.
    fn bind(&mut self, words: Range<usize>, attribute: AttributeId) {
        match &mut self.attributes {
            None if self.attribute == UNUSED || self.attribute == attribute => self.attribute = attribute,
            attributes => {
                let first = self.attribute;
                attributes.get_or_insert_with(|| vec![first; WORDS].into_boxed_slice())[words].fill(attribute);
            }
        }
    }

    /// The cells of a word: of writes and of reads.
    #[inline]
    pub(super) fn cells(&self, word: Word) -> (Cell, Cell) {
        let at = usize::from(word);
        (Cell(self.plane(Plane::Written)[at]), Cell(self.plane(Plane::Read)[at]))
    }

    /// The cells of some words, of writes and of reads, if all their accesses have that attribute; `None`, too, where
    /// the page has not so many words.
    #[inline]
    pub(super) fn row(&mut self, words: Range<usize>, attribute: AttributeId) -> Option<(&mut [u32], &mut [u32])> {
        let alike = match &self.attributes {
            None => self.attribute == attribute,
            Some(attributes) => attributes.get(words.clone())?.iter().all(|&other| other == attribute),
        };
        if !alike {
            return None;
        }
        Some((self.plane(Plane::Written).get_mut(words.clone())?, self.plane(Plane::Read).get_mut(words)?))
    }

    /// Sets the cell of a word's writes.
    #[inline]
    pub(super) fn set_written(&mut self, word: Word, cell: Cell) {
        self.plane(Plane::Written)[usize::from(word)] = cell.0;
    }

    /// Sets the cell of a word's reads.
    #[inline]
    pub(super) fn set_read(&mut self, word: Word, cell: Cell) {
        self.plane(Plane::Read)[usize::from(word)] = cell.0;
    }

    /// The attribute of a word's accesses.
    #[inline]
    pub(super) fn attribute(&self, word: Word) -> AttributeId {
        self.attributes.as_ref().map_or(self.attribute, |attributes| attributes[usize::from(word)])
    }

    /// Sets the attribute of a word's accesses.
    pub(super) fn set_attribute(&mut self, word: Word, attribute: AttributeId) {
        let attributes = self.attributes.get_or_insert_with(|| vec![self.attribute; WORDS].into_boxed_slice());
        attributes[usize::from(word)] = attribute;
    }

    /// The history of a word, if its cells are [`Cell::DETAILED`].
    pub(super) fn history(&mut self, word: Word) -> Option<&mut History> {
        self.histories.get_mut(&word).map(|history| &mut **history)
    }

    /// Gives the word a history.
    pub(super) fn detail(&mut self, word: Word, history: History) {
        self.histories.insert(word, Box::new(history));
        self.set_written(word, Cell::DETAILED);
        self.set_read(word, Cell::DETAILED);
    }

    /// Removes the history of a word, and gives it cells.
    pub(super) fn condense(&mut self, word: Word, written: Cell, read: Cell) {
        self.histories.remove(&word);
        self.set_written(word, written);
        self.set_read(word, read);
    }
}

/// Pages that are found without the map: accesses alternate between a few arrays.
const RECENT: usize = 16;

/// The pages of a memory.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// The planes of a range that machine code may access.
    reserved: Option<Arc<Planes>>,
    pages: Vec<Page>,
    places: HashMap<u64, u32, foldhash::fast::FixedState>,
    /// Places of the pages that were used last, by the low bits of their numbers.
    recent: [u32; RECENT],
    /// Whether the pages that this window has not used are gone, to make room.
    tight: bool,
    /// Ranges whose accesses have an attribute in this window, whether or not there are any.
    bound: Vec<(Range<u64>, AttributeId)>,
}

/// Bytes that a page occupies, without histories.
const BYTES_OF_PAGE: u64 = 5 * PAGE_BYTES / 2;

impl Shadow {
    /// Uses these planes for the pages of their range. There must be no page yet.
    pub(super) fn reserve(&mut self, planes: Arc<Planes>) {
        debug_assert!(self.pages.is_empty(), "pages have their planes already");
        self.reserved = Some(planes);
    }

    /// The reserved planes.
    pub(super) fn reserved(&self) -> Option<&Arc<Planes>> {
        self.reserved.as_ref()
    }

    /// Whether there is no page.
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Gives the accesses to a range an attribute in advance, so that machine code need not. False if the range has no
    /// reserved planes, or the shadow would occupy more than `limit` bytes.
    pub(super) fn bind(&mut self, range: Range<u64>, attribute: AttributeId, limit: u64) -> bool {
        if !self.reserved.as_ref().is_some_and(|planes| planes.cover(&range)) || range.is_empty() {
            return false;
        }
        let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        let missing = |shadow: &Self| pages.clone().filter(|number| !shadow.places.contains_key(number)).count() as u64;
        if self.bytes() + missing(self) * BYTES_OF_PAGE > limit {
            self.make_room();
            if self.bytes() + missing(self) * BYTES_OF_PAGE > limit {
                return false;
            }
        }
        for number in pages {
            let place = match self.places.get(&number) {
                Some(place) => Some(*place as usize),
                None => self.add(number, UNUSED, limit),
            };
            let Some(page) = place.and_then(|place| self.pages.get_mut(place)) else { return false };
            let first = number * PAGE_BYTES;
            let word = |address: u64| (address.saturating_sub(first).min(PAGE_BYTES) / 4) as usize;
            page.bind(word(range.start)..word(range.end.next_multiple_of(4)), attribute);
        }
        self.bound.push((range, attribute));
        true
    }

    /// The page with this number. A new one is made unless the shadow would occupy more than `limit` bytes then; all
    /// its accesses have `attribute` at first.
    #[inline]
    pub(super) fn page(&mut self, number: u64, attribute: AttributeId, limit: u64) -> Option<&mut Page> {
        let recent = self.recent[number as usize % RECENT] as usize;
        if self.pages.get(recent).is_none_or(|page| page.number != number || page.attribute == UNUSED) {
            return self.find(number, attribute, limit);
        }
        self.pages.get_mut(recent)
    }

    fn find(&mut self, number: u64, attribute: AttributeId, limit: u64) -> Option<&mut Page> {
        let place = match self.places.get(&number) {
            Some(place) => *place as usize,
            None => self.add(number, attribute, limit)?,
        };
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

    #[cold]
    fn add(&mut self, number: u64, attribute: AttributeId, limit: u64) -> Option<usize> {
        if self.bytes() + BYTES_OF_PAGE > limit {
            self.make_room();
            if self.bytes() + BYTES_OF_PAGE > limit {
                return None;
            }
        }
        let range = number * PAGE_BYTES..(number + 1) * PAGE_BYTES;
        let planes = match &self.reserved {
            Some(planes) if planes.cover(&range) => Arc::clone(planes),
            _ => Planes::new(range)?,
        };
        self.places.insert(number, self.pages.len() as u32);
        self.pages.push(Page::new(number, attribute, planes));
        Some(self.pages.len() - 1)
    }

    /// Removes the pages without accesses in this window: all cells there are settled.
    #[cold]
    fn make_room(&mut self) {
        if std::mem::replace(&mut self.tight, true) {
            return;
        }
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pages).into_iter().partition(|page| page.attribute != UNUSED);
        gone.iter().for_each(|page| page.planes.empty(page.number));
        self.places = kept.iter().zip(0..).map(|(page, place)| (page.number, place)).collect();
        self.pages = kept;
    }

    /// Bytes that the pages occupy, without histories.
    pub(super) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * BYTES_OF_PAGE
    }

    /// Removes the histories, whose accesses are all settled, and lets pages go if there are more than fit `limit`.
    pub(super) fn settle(&mut self, limit: u64) {
        self.bound.clear();
        self.tight = false;
        if self.bytes() > limit {
            return self.clear();
        }
        for page in &mut self.pages {
            let detailed: Vec<_> = page.histories.keys().copied().collect();
            detailed.into_iter().for_each(|word| page.condense(word, Cell::EMPTY, Cell::EMPTY));
            (page.attribute, page.attributes) = (UNUSED, None);
        }
    }

    /// Removes all pages. Ranges keep their attributes until the window ends.
    pub(super) fn clear(&mut self) {
        let bound = std::mem::take(&mut self.bound);
        self.places.clear();
        for page in self.pages.drain(..) {
            page.planes.empty(page.number);
        }
        for (range, attribute) in bound {
            self.bind(range, attribute, u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_made_when_they_are_used_and_up_to_a_limit() {
        let mut shadow = Shadow::default();
        shadow.page(7, 1, 4 * PAGE_BYTES).unwrap().set_written(5, Cell(40));
        assert!(shadow.page(8, 1, 4 * PAGE_BYTES).is_none(), "a second page does not fit");
        assert!(shadow.page(8, 1, 5 * PAGE_BYTES).is_some());
        assert_eq!(shadow.page(7, 2, 0).unwrap().cells(5), (Cell(40), Cell::EMPTY));
        shadow.settle(PAGE_BYTES);
        assert_eq!(shadow.bytes(), 0);
    }

    #[test]
    fn pages_that_a_window_does_not_use_make_room() {
        let mut shadow = Shadow::default();
        shadow.page(7, 1, u64::MAX).unwrap().set_written(5, Cell(40));
        shadow.page(8, 1, u64::MAX).unwrap().set_written(5, Cell(40));
        shadow.settle(u64::MAX);
        assert!(shadow.page(7, 1, u64::MAX).is_some());
        assert!(shadow.page(9, 1, 2 * BYTES_OF_PAGE).is_some(), "page 8 goes");
        assert_eq!(shadow.page(7, 1, u64::MAX).unwrap().cells(5), (Cell(40), Cell::EMPTY));
        assert!(shadow.page(8, 1, 2 * BYTES_OF_PAGE).is_none());
        assert_eq!(shadow.page(8, 1, u64::MAX).unwrap().cells(5), (Cell::EMPTY, Cell::EMPTY));
    }

    #[test]
    fn words_of_a_page_may_differ_in_their_attribute() {
        let mut shadow = Shadow::default();
        let page = shadow.page(0, 3, u64::MAX).unwrap();
        page.set_attribute(9, 4);
        assert_eq!([page.attribute(8), page.attribute(9)], [3, 4]);
        assert!(page.row(9..10, 4).is_some() && page.row(8..10, 4).is_none() && page.row(0..9, 3).is_some());
    }

    #[test]
    fn ranges_have_attributes_and_zeroed_cells_in_every_era() {
        let mut shadow = Shadow::default();
        shadow.reserve(Planes::new(0..4 * PAGE_BYTES).unwrap());
        let (first, second) = (PAGE_BYTES - 64..PAGE_BYTES + 64, PAGE_BYTES + 64..2 * PAGE_BYTES);
        assert!(!shadow.bind(first.clone(), 1, BYTES_OF_PAGE), "two pages do not fit");
        assert!(shadow.bind(first, 1, u64::MAX) && shadow.bind(second, 2, u64::MAX));
        assert!(!shadow.bind(3 * PAGE_BYTES..5 * PAGE_BYTES, 1, u64::MAX), "there are no planes");
        for _ in 0..2 {
            let page = shadow.page(1, 9, u64::MAX).unwrap();
            assert_eq!([page.attribute(15), page.attribute(16)], [1, 2]);
            assert_eq!(page.cells(15), (Cell::EMPTY, Cell::EMPTY));
            page.set_written(15, Cell(8));
            shadow.clear();
        }
        shadow.settle(u64::MAX);
        assert_eq!(shadow.page(1, 9, u64::MAX).unwrap().attribute(15), 9);
    }
}

//! The shadow: for each word of memory a cell of its last write and one of its last reads, in pages by address.
//!
//! Two planes of four bytes a word, as the memory itself is laid out. Pages are made when they are first used, and are
//! found by a map; that they are is known only here.

use std::collections::HashMap;

use super::cells::Cell;
use super::history::History;

/// Bytes of memory that a page covers.
pub(super) const PAGE_BYTES: u64 = 64 << 10;

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
    /// Zeroed memory of the operating system, which costs nothing until it is used: so not of type `Cell`.
    written: Box<[u32]>,
    read: Box<[u32]>,
    /// What the plain accesses of the page have in common, or of each word if they differ.
    attribute: AttributeId,
    attributes: Option<Box<[AttributeId]>>,
    /// The words whose accesses the cells cannot express.
    histories: HashMap<u16, Box<History>, foldhash::fast::FixedState>,
}

/// Where a word is: its place in its page.
pub(super) type Word = u16;

impl Page {
    fn new(number: u64, attribute: AttributeId) -> Self {
        let plane = || vec![0; WORDS].into_boxed_slice();
        Self { number, written: plane(), read: plane(), attribute, attributes: None, histories: HashMap::default() }
    }

    /// The cells of a word: of writes and of reads.
    #[inline]
    pub(super) fn cells(&self, word: Word) -> (Cell, Cell) {
        (Cell(self.written[usize::from(word)]), Cell(self.read[usize::from(word)]))
    }

    /// The cells of all words, of writes and of reads, if all accesses have that attribute.
    #[inline]
    pub(super) fn planes(&mut self, attribute: AttributeId) -> Option<(&mut [u32], &mut [u32])> {
        let alike = self.attributes.is_none() && self.attribute == attribute;
        alike.then_some((&mut *self.written, &mut *self.read))
    }

    /// Sets the cell of a word's writes.
    #[inline]
    pub(super) fn set_written(&mut self, word: Word, cell: Cell) {
        self.written[usize::from(word)] = cell.0;
    }

    /// Sets the cell of a word's reads.
    #[inline]
    pub(super) fn set_read(&mut self, word: Word, cell: Cell) {
        self.read[usize::from(word)] = cell.0;
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
    pages: Vec<Page>,
    places: HashMap<u64, u32, foldhash::fast::FixedState>,
    /// Places of the pages that were used last, by the low bits of their numbers.
    recent: [u32; RECENT],
}

/// Bytes that a page occupies, without histories.
const BYTES_OF_PAGE: u64 = 5 * PAGE_BYTES / 2;

impl Shadow {
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
            return None;
        }
        self.places.insert(number, self.pages.len() as u32);
        self.pages.push(Page::new(number, attribute));
        Some(self.pages.len() - 1)
    }

    /// Bytes that the pages occupy, without histories.
    pub(super) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * BYTES_OF_PAGE
    }

    /// Removes the histories, whose accesses are all settled, and lets pages go if there are more than fit `limit`.
    pub(super) fn settle(&mut self, limit: u64) {
        if self.bytes() > limit {
            return self.clear();
        }
        for page in &mut self.pages {
            let detailed: Vec<_> = page.histories.keys().copied().collect();
            detailed.into_iter().for_each(|word| page.condense(word, Cell::EMPTY, Cell::EMPTY));
            (page.attribute, page.attributes) = (UNUSED, None);
        }
    }

    /// Removes all pages.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
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
    fn words_of_a_page_may_differ_in_their_attribute() {
        let mut page = Page::new(0, 3);
        page.set_attribute(9, 4);
        assert_eq!([page.attribute(8), page.attribute(9)], [3, 4]);
    }
}

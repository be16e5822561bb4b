//! A page of the shadow: the cells of some words, what their accesses have in common, and the histories of those that
//! cells cannot express.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::cells::Cell;
use super::history::History;
use super::planes::{GRANULE, Planes};
use crate::ir::{Plane, PlaneSet};

/// Bytes of memory that a page covers.
pub(super) const PAGE_BYTES: u64 = GRANULE;

/// Words that a page covers.
const WORDS: usize = PAGE_BYTES as usize / 4;

/// Index of an [attribute](super::history::Attributes) in the detector's table.
pub(super) type AttributeId = u16;

/// That of a page without accesses.
pub(super) const UNUSED: AttributeId = AttributeId::MAX;

/// The shadow of a page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) number: u64,
    /// Where its cells are.
    planes: Arc<Planes>,
    /// The planes that accesses of this window may write.
    pub(super) used: PlaneSet,
    /// The planes that accesses may have written, and that count therefore.
    pub(super) committed: PlaneSet,
    /// What the plain accesses of the page have in common, or of each word if they differ.
    pub(super) attribute: AttributeId,
    attributes: Option<Box<[AttributeId]>>,
    /// The words whose accesses the cells cannot express.
    pub(super) histories: HashMap<u16, Box<History>, foldhash::fast::FixedState>,
}

/// Where a word is: its place in its page.
pub(super) type Word = u16;

impl Page {
    pub(super) fn new(number: u64, planes: Arc<Planes>) -> Self {
        Self {
            number,
            planes,
            used: PlaneSet::NONE,
            committed: PlaneSet::NONE,
            attribute: UNUSED,
            attributes: None,
            histories: HashMap::default(),
        }
    }

    /// The planes that an access with this attribute may write, of which the access as such needs some. Where words
    /// have several attributes any access may give one a history, which the cell of writes says.
    #[inline]
    pub(super) fn needs(&self, attribute: AttributeId, needs: PlaneSet) -> PlaneSet {
        let is_even = self.attributes.is_none() && (self.attribute == attribute || self.attribute == UNUSED);
        if is_even { needs } else { needs.and(Plane::Written) }
    }

    /// Removes all that is known of accesses, except for the cells.
    pub(super) fn forget(&mut self) {
        self.histories.clear();
        (self.attribute, self.attributes) = (UNUSED, None);
    }

    /// Empties planes. The bytes that they had.
    pub(super) fn release(&mut self, planes: PlaneSet) -> u64 {
        let planes = self.committed.both(planes);
        self.planes.empty(self.number, planes);
        self.committed = self.committed.without(planes);
        planes.bytes()
    }

    #[inline]
    pub(super) fn plane(&self, plane: Plane) -> &mut [u32] {
        self.planes.cells(plane, self.number)
    }

    /// Sets the attribute of all accesses to some words, which have none in this window so far.
    pub(super) fn bind(&mut self, words: Range<usize>, attribute: AttributeId) {
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
    /// the page has fewer words.
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

    /// Gives the word a history. The cell of writes says so, and that of reads says nothing from now on.
    pub(super) fn detail(&mut self, word: Word, history: History) {
        self.histories.insert(word, Box::new(history));
        self.set_written(word, Cell::DETAILED);
    }

    /// Removes the history of a word, and gives it cells.
    pub(super) fn condense(&mut self, word: Word, written: Cell, read: Cell) {
        self.histories.remove(&word);
        self.set_written(word, written);
        // What was never written is not committed for a zero.
        if self.cells(word).1 != read {
            self.set_read(word, read);
        }
    }
}

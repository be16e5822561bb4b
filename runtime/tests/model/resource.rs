//! A buffer or an image of the naive reference: a list of words.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::model::kernels::Word;

/// Words of a buffer, or the texels of all levels and layers of an image: `shape.rs` says where they are.
#[derive(Debug)]
pub(crate) struct Resource {
    words: RefCell<Vec<Word>>,
    destroyed: Cell<bool>,
    /// The words that commands use that may be unfinished, with the number of times that all contexts were finished.
    pending: RefCell<(u64, Vec<Range<u64>>)>,
}

pub(crate) type Handle = Rc<Resource>;

impl Resource {
    pub(crate) fn new(words: Vec<Word>) -> Handle {
        Rc::new(Self { words: RefCell::new(words), destroyed: Cell::new(false), pending: RefCell::default() })
    }

    pub(crate) fn size(&self) -> u64 {
        self.words.borrow().len() as u64
    }

    /// Another number of words, none of them defined.
    pub(crate) fn respecify(&self, words: u64) {
        *self.words.borrow_mut() = vec![None; words as usize];
    }

    pub(crate) fn is_undefined(&self) -> bool {
        self.words.borrow().iter().all(Option::is_none)
    }

    pub(crate) fn get(&self, range: &Range<u64>) -> Vec<Word> {
        self.words.borrow()[range.start as usize..range.end as usize].to_vec()
    }

    pub(crate) fn put(&self, at: u64, words: &[Word]) {
        self.words.borrow_mut()[at as usize..at as usize + words.len()].copy_from_slice(words);
    }

    pub(crate) fn forget(&self, range: &Range<u64>) {
        self.words.borrow_mut()[range.start as usize..range.end as usize].fill(None);
    }

    /// Notes that a command uses these words, after all contexts were finished `finished` times.
    pub(crate) fn use_words(&self, finished: u64, range: &Range<u64>) {
        let mut pending = self.pending.borrow_mut();
        if pending.0 != finished {
            *pending = (finished, Vec::new());
        }
        pending.1.push(range.clone());
    }

    /// Whether a command that may be unfinished uses any of the words.
    pub(crate) fn is_pending(&self, finished: u64, range: &Range<u64>) -> bool {
        let pending = self.pending.borrow();
        pending.0 == finished && pending.1.iter().any(|used| used.start < range.end && range.start < used.end)
    }

    pub(crate) fn destroy(&self) {
        self.destroyed.set(true);
    }

    pub(crate) fn is_destroyed(&self) -> bool {
        self.destroyed.get()
    }
}

/// Whether two parts have a word in common.
pub(crate) fn overlap(a: (&Handle, &Range<u64>), b: (&Handle, &Range<u64>)) -> bool {
    Rc::ptr_eq(a.0, b.0) && a.1.start < b.1.end && b.1.start < a.1.end
}

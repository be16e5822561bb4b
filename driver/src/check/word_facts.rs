//! Facts about all accesses of a word, which its pairs share: computed once for candidates of the word that follow each
//! other.

use std::rc::Rc;

use super::barrier_order::WordOrder;
use super::link_order::WordLinks;
use super::log::{Accessed, Index, Log, Word};

/// What is known of the accesses of a word, whatever is asked about them. A word may have millions.
pub(super) struct WordFacts<'a> {
    pub(super) described: Vec<Accessed>,
    /// What barriers order of them, and what all releases and acquires do.
    pub(super) order: Option<WordOrder<'a>>,
    pub(super) links: WordLinks<'a>,
}

impl<'a> WordFacts<'a> {
    pub(super) fn new(log: &'a Log, accesses: &'a [Index]) -> Self {
        let described = accesses.iter().map(|&index| log.accessed(index)).collect();
        Self { described, order: WordOrder::new(log, accesses), links: WordLinks::new(log, accesses) }
    }
}

/// The facts of the word that was asked about last: candidates of one word often follow each other.
#[derive(Default)]
pub(super) struct LastWord<'a>(Option<(Word, Rc<WordFacts<'a>>)>);

impl<'a> LastWord<'a> {
    pub(super) fn facts(&mut self, log: &'a Log, word: Word, accesses: &'a [Index]) -> Rc<WordFacts<'a>> {
        if let Some((last, facts)) = &self.0
            && *last == word
        {
            return Rc::clone(facts);
        }
        // Two of them would be too much memory.
        self.0 = None;
        let facts = Rc::new(WordFacts::new(log, accesses));
        self.0 = Some((word, Rc::clone(&facts)));
        facts
    }
}

//! Races of one cause: neighbouring lines without a barrier race in pairs, which one repair mends.

use super::finding::Repair;

/// Several races of a dispatch with one cause and one repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingGroup {
    /// What is wrong, in a phrase.
    pub title: String,
    /// Why, in a sentence.
    pub reason: String,
    /// The change that repairs all of them: the dispatch ran with it, and none of them raced.
    pub repair: Repair,
    /// How many there are.
    pub count: usize,
}

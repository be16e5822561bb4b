//! The verdict on a candidate: the axioms of the memory model on slices of the recording.

mod budget;
mod pairs;

use std::rc::Rc;

use spelter_shaders::check::observer::Invocation;
use spelter_shaders::ir::Site;

pub(super) use budget::VerdictBudget;
pub(super) use pairs::{Pairs, RacingPair};

use super::log::{Accessed, Index, Log, Word};
use super::slice::{MAX_EFFORT_OF_CANDIDATE, OnePath, Purpose, Slice, Undecided, by_a_path, decide_long, slice_of};
use super::word_facts::WordFacts;

/// What the detector suspects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A word that both accesses touch.
    pub word: Word,
    /// What is known of the earlier access.
    pub first: AccessFilter,
    /// What is known of the later access.
    pub second: AccessFilter,
}

/// What is known of an access: `None` is anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessFilter {
    /// Its dispatch in the window.
    pub dispatch: Option<u32>,
    /// Its instruction.
    pub site: Option<Site>,
    /// Its invocation.
    pub by: Option<Invocation>,
}

impl AccessFilter {
    pub(super) fn matches(&self, access: &Accessed) -> bool {
        self.dispatch.is_none_or(|dispatch| dispatch == access.dispatch)
            && self.site.is_none_or(|site| site == access.site)
            && self.by.is_none_or(|by| by == access.by)
    }
}

/// A race.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The earlier access.
    pub first: Accessed,
    /// The later access.
    pub second: Accessed,
    /// The events that decide, with the pair in it, and those that a repair may change.
    pub slice: Slice,
    /// The update of the word of which each of the two accesses is a part, if both are.
    pub updates: Option<[Update; 2]>,
}

/// A plain read of a word and the next access of the invocation to it, a plain write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The instruction that reads.
    pub read: Site,
    /// The instruction that writes.
    pub write: Site,
}

/// The update of a word of which the access at a place in the list of the word's accesses is a part.
fn update_at(log: &Log, accesses: &[Index], at: usize) -> Option<Update> {
    let by = |index: &Index| log.entry(*index).thread == log.entry(accesses[at]).thread;
    let plain = |index: Index| Some(log.operation(index)).filter(|operation| !operation.atomic());
    let writes = plain(accesses[at])?.writes();
    let other = match writes {
        true => accesses[..at].iter().rev().copied().find(by),
        false => accesses[at + 1..].iter().copied().find(by),
    };
    let other = other.filter(|&other| plain(other).is_some_and(|operation| operation.writes() != writes))?;
    let [mine, other] = [accesses[at], other].map(|index| log.entry(index).site);
    Some(if writes { Update { read: other, write: mine } } else { Update { read: mine, write: other } })
}

/// Whether a candidate is a race.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The axioms say that it is, in this execution.
    Confirmed(Box<Confirmed>),
    /// Every pair of accesses is ordered.
    Refuted,
    /// It is not known.
    Undecided(Undecided),
}

/// Decides about a candidate: the first pair of its accesses, in the order of the execution, that races.
///
/// Every pair was decided if the answer is [`Verdict::Refuted`]. If a pair cannot be decided and no other one races,
/// the answer is [`Verdict::Undecided`].
pub fn confirm(log: &Log, candidate: &Candidate) -> Verdict {
    confirm_within(log, candidate, &mut VerdictBudget::default())
}

/// The same with what is left of the effort for a dispatch.
pub(super) fn confirm_within(log: &Log, candidate: &Candidate, budget: &mut VerdictBudget) -> Verdict {
    let mut pairs = Pairs::new(log, candidate, budget);
    let race = pairs.first_race().map(|race| pairs.confirmed(race));
    pairs.give_back(budget);
    match race {
        Some(race) => Verdict::Confirmed(Box::new(race)),
        None => match pairs.undecided() {
            Some((reason, _)) => Verdict::Undecided(reason),
            None => Verdict::Refuted,
        },
    }
}

/// Whether a candidate is a race, without what a report says about it.
///
/// # Errors
///
/// It is not known.
pub(super) fn is_race(log: &Log, candidate: &Candidate, budget: &mut VerdictBudget) -> Result<bool, Undecided> {
    // Of a word that thousands of instructions access, few accesses are those of two instructions.
    let is_asked = |accessed: Accessed| candidate.first.matches(&accessed) || candidate.second.matches(&accessed);
    let all = log.words.get(&candidate.word).map_or(&[][..], Vec::as_slice);
    let accesses: Vec<Index> = all.iter().copied().filter(|&index| is_asked(log.accessed(index))).collect();
    let mut pairs = Pairs::of(log, candidate, &accesses, Rc::new(WordFacts::new(log, &accesses)), budget);
    let is_race = pairs.first_race().is_some();
    pairs.give_back(budget);
    match pairs.undecided() {
        Some((why, _)) if !is_race => Err(why),
        _ => Ok(is_race),
    }
}

/// Whether two events of a log race.
///
/// # Errors
///
/// The events that may order them are too many.
pub fn verdict(log: &Log, first: usize, second: usize) -> Result<bool, Undecided> {
    let (first, second) = (Index(first.min(second) as u32), Index(first.max(second) as u32));
    if !conflict(log, first, second) {
        return Ok(false);
    }
    Ok(decide(log, (first, second), &mut { MAX_EFFORT_OF_CANDIDATE })?.is_some())
}

/// The verdict on two accesses that conflict: a slice in which they race; `None` if they are ordered, or the profile
/// accepts what orders them.
fn decide(log: &Log, pair: (Index, Index), effort: &mut usize) -> Result<Option<Slice>, Undecided> {
    let race = decide_by_axioms(log, pair, effort)?;
    match race.is_some().then(|| log.leniently(pair, || decide_by_axioms(log, pair, effort))).flatten() {
        Some(accepted) => Ok(accepted?.and(race)),
        None => Ok(race),
    }
}

fn decide_by_axioms(log: &Log, pair: (Index, Index), effort: &mut usize) -> Result<Option<Slice>, Undecided> {
    match slice_of(log, pair, Purpose::Verdict, effort) {
        Ok(slice) => Ok(slice.is_race().then_some(slice)),
        Err(Undecided::TooLarge) => match by_a_path(log, pair, effort)? {
            OnePath::None(slice) => Ok(slice.is_race().then_some(*slice)),
            OnePath::Orders => Ok(None),
            OnePath::Open => decide_long(log, pair, effort),
        },
        Err(reason) => Err(reason),
    }
}

/// Whether two accesses race unless they are ordered.
fn conflict(log: &Log, first: Index, second: Index) -> bool {
    let (x, y) = (log.operation(first), log.operation(second));
    let (Some(a), Some(b)) = (x.access(), y.access()) else { return false };
    let mutual = a.atomic && b.atomic && log.mutual(first, second);
    first != second && a.location.overlaps(&b.location) && (a.writes || b.writes) && !mutual
}

//! The verdict on a candidate: the axioms of the memory model on slices of the recording.

use spelter_shaders::check::observer::Invocation;
use spelter_shaders::ir::Site;

use super::log::{Accessed, Index, Log, Word};
use super::slice::{EFFORT, Purpose, Slice, Undecided, decide_long, for_repair, ordered_by_a_path, slice_of};

/// The most pairs of accesses that are decided for a candidate.
const MAX_PAIRS: usize = 4096;

/// The most pairs that are looked at, most of which conflict with nothing or are not asked for.
const MAX_LOOKS: usize = 1 << 24;

/// What the detector suspects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A word that both accesses touch.
    pub word: Word,
    /// What is known of the earlier access.
    pub first: Filter,
    /// What is known of the later access.
    pub second: Filter,
}

/// What is known of an access: `None` is anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Its dispatch in the window.
    pub dispatch: Option<u32>,
    /// Its instruction.
    pub site: Option<Site>,
    /// Its invocation.
    pub by: Option<Invocation>,
}

impl Filter {
    fn matches(&self, access: &Accessed) -> bool {
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
    let accesses = log.words.get(&candidate.word).map_or(&[][..], Vec::as_slice);
    let described: Vec<_> = accesses.iter().map(|&index| log.accessed(index)).collect();
    let mut open = None;
    let mut effort = EFFORT;
    let (mut pairs, mut looks) = (0, 0);
    for (at, &second) in accesses.iter().enumerate() {
        if !candidate.second.matches(&described[at]) {
            continue;
        }
        for (before, &first) in accesses[..at].iter().enumerate() {
            looks += 1;
            if looks > MAX_LOOKS {
                return Verdict::Undecided(Undecided::TooManyPairs);
            }
            if !candidate.first.matches(&described[before]) || !conflict(log, first, second) {
                continue;
            }
            pairs += 1;
            if pairs > MAX_PAIRS {
                return Verdict::Undecided(Undecided::TooManyPairs);
            }
            match decide(log, (first, second), &mut effort) {
                Ok(None) => {}
                Ok(Some(slice)) => {
                    // More events for the explanation, if there is room for them; they change no verdict.
                    let slice = for_repair(log, (first, second)).filter(Slice::is_race).unwrap_or(slice);
                    let updates = [before, at].map(|at| update_at(log, accesses, at));
                    let updates = updates[0].zip(updates[1]).map(|(first, second)| [first, second]);
                    let (first, second) = (described[before], described[at]);
                    return Verdict::Confirmed(Box::new(Confirmed { first, second, slice, updates }));
                }
                Err(reason) => _ = open.get_or_insert(reason),
            }
        }
    }
    match open {
        Some(reason) => Verdict::Undecided(reason),
        None if log.cut => Verdict::Undecided(Undecided::Memory),
        None if pairs == 0 => Verdict::Undecided(Undecided::NotReproduced),
        None => Verdict::Refuted,
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
    Ok(decide(log, (first, second), &mut { EFFORT })?.is_some())
}

/// The verdict on two accesses that conflict: a slice in which they race, or `None` if they are ordered.
fn decide(log: &Log, pair: (Index, Index), effort: &mut usize) -> Result<Option<Slice>, Undecided> {
    match slice_of(log, pair, Purpose::Verdict, effort) {
        Ok(slice) => Ok(slice.is_race().then_some(slice)),
        Err(Undecided::TooLarge) if ordered_by_a_path(log, pair, effort) => Ok(None),
        Err(Undecided::TooLarge) => decide_long(log, pair, effort),
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

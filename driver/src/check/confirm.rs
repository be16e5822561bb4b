//! The verdict on a candidate: the axioms of the memory model on slices of the recording.

use std::ops::Range;
use std::rc::Rc;

use spelter_shaders::check::observer::Invocation;
use spelter_shaders::check::{self, Agents};
use spelter_shaders::ir::Site;

use super::log::{Accessed, Index, Log, Word};
use super::slice::{
    MAX_EFFORT_OF_CANDIDATE, OnePath, Purpose, Slice, Undecided, by_a_path, decide_long, for_repair, slice_of,
};
use super::word_facts::{LastWord, WordFacts};

/// The most pairs of accesses that are decided for a candidate.
const MAX_PAIRS: usize = 4096;

/// The most pairs that are looked at, most of which conflict with nothing, are not asked for, or are ordered by a
/// barrier; and how many are as much effort as a node of a path.
const MAX_LOOKS: usize = 1 << 24;
const LOOKS_OF_EFFORT: usize = 4;

/// The most effort for all candidates of a dispatch, in nodes of paths.
const MAX_EFFORT: usize = 4 * MAX_EFFORT_OF_CANDIDATE;

/// The most for all slices for repairs of a dispatch: races that come later are explained by what decides.
const MAX_FOR_REPAIR: usize = MAX_EFFORT_OF_CANDIDATE / 4;

/// The part of what is left for a candidate that the slice for a repair may take.
const EFFORT_OF_REPAIR: usize = 4;

/// The part of the effort for a candidate that is for the pairs of the suspicion alone, and how many are decided.
const EFFORT_OF_SUSPICION: usize = 8;
const MAX_PAIRS_OF_SUSPICION: usize = 64;

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

/// The pairs of accesses to a candidate's word.
pub(super) struct Pairs<'a> {
    log: &'a Log,
    pub(super) candidate: &'a Candidate,
    /// The accesses of the word, in order.
    pub(super) accesses: &'a [Index],
    facts: Rc<WordFacts<'a>>,
    effort: usize,
    for_repair: usize,
    /// Whether any pair conflicts, and those that were decided with a slice.
    conflicting: bool,
    decided: usize,
    /// The first pair that could not be decided, and why.
    open: Option<(Undecided, Option<(usize, usize)>)>,
    /// The suspicion: the pairs whose later access is by its instruction come first.
    suspected: Option<&'a check::Candidate>,
}

/// Two accesses that race, by their places among those of the word.
pub(super) struct RacingPair {
    pub(super) places: (usize, usize),
    pub(super) slice: Slice,
}

impl<'a> Pairs<'a> {
    /// The pairs, with a part of the effort that is left for the dispatch.
    pub(super) fn new(log: &'a Log, candidate: &'a Candidate, budget: &mut VerdictBudget) -> Self {
        Self::with(&mut LastWord::default(), log, candidate, budget)
    }

    /// The same, with what is known of the word that was asked about before.
    pub(super) fn with<'l: 'a>(
        last: &mut LastWord<'l>,
        log: &'l Log,
        candidate: &'a Candidate,
        budget: &mut VerdictBudget,
    ) -> Self {
        let accesses = log.words.get(&candidate.word).map_or(&[][..], Vec::as_slice);
        Self::of(log, candidate, accesses, last.facts(log, candidate.word, accesses), budget)
    }

    /// The pairs of some accesses to the word, of which these are the facts.
    fn of(
        log: &'a Log,
        candidate: &'a Candidate,
        accesses: &'a [Index],
        facts: Rc<WordFacts<'a>>,
        budget: &mut VerdictBudget,
    ) -> Self {
        Self {
            log,
            candidate,
            accesses,
            facts,
            effort: budget.take_effort(),
            for_repair: std::mem::take(&mut budget.for_repair),
            conflicting: false,
            decided: 0,
            open: None,
            suspected: None,
        }
    }

    /// The accesses of the word.
    pub(super) fn described(&self) -> &[Accessed] {
        &self.facts.described
    }

    /// Gives back the effort that is left.
    pub(super) fn give_back(&mut self, budget: &mut VerdictBudget) {
        budget.effort += std::mem::take(&mut self.effort);
        budget.for_repair += std::mem::take(&mut self.for_repair);
    }

    /// The places before one of which the accesses may race with it: barriers order those in between.
    pub(super) fn before(&self, second: usize) -> [Range<usize>; 2] {
        let ordered = self.facts.order.as_ref().map_or(0..0, |order| order.ordered_before(second));
        [0..ordered.start, ordered.end..second]
    }

    /// Whether releases and acquires order two accesses, or one invocation makes both alike, which its program orders.
    pub(super) fn are_ordered(&self, (first, second): (usize, usize)) -> bool {
        self.facts.order.as_ref().is_some_and(|order| order.orders(first, second))
            || self.facts.links.orders(first, second)
    }

    /// Those with a later access by the instruction of this suspicion come first, and its own pairs have some effort
    /// for themselves.
    pub(super) fn suspecting(self, suspected: &'a check::Candidate) -> Self {
        Self { suspected: Some(suspected), ..self }
    }

    /// The first pair that races.
    pub(super) fn first_race(&mut self) -> Option<RacingPair> {
        let Some(suspected) = self.suspected else { return self.first_of_all() };
        let own = self.effort / EFFORT_OF_SUSPICION;
        self.effort -= own;
        let race = self.first_of_all();
        self.effort += own;
        if race.is_some() || self.open.is_none() { race } else { self.first_of(suspected) }
    }

    /// The first race of those two accesses that a suspicion is about, as far as it says which they are: of each later
    /// one the nearest earlier ones.
    fn first_of(&mut self, suspected: &check::Candidate) -> Option<RacingPair> {
        let mut decided = 0;
        for second in 0..self.accesses.len() {
            let later = &self.facts.described[second];
            if (later.site, later.by) != (suspected.second.site, suspected.second.invocation) {
                continue;
            }
            let [others, near] = self.before(second);
            for first in others.chain(near).rev() {
                let pair = (first, second);
                let is_of = is_of(&self.facts.described[first].by, suspected.first.agents, self.log.subgroup_size());
                if !is_of || !self.conflicts(pair) || self.are_ordered(pair) {
                    continue;
                }
                decided += 1;
                if decided > MAX_PAIRS_OF_SUSPICION {
                    return None;
                }
                if let Ok(Some(slice)) = self.decide(pair) {
                    return Some(RacingPair { places: pair, slice });
                }
            }
        }
        None
    }

    fn first_of_all(&mut self) -> Option<RacingPair> {
        let mut looks = 0usize;
        let preferred = self.suspected.map(|suspected| suspected.second.site);
        let is_preferred = |pairs: &Self, second: usize| Some(pairs.facts.described[second].site) == preferred;
        for pass in [true, false] {
            for second in 0..self.accesses.len() {
                if is_preferred(self, second) != pass || !self.candidate.second.matches(&self.facts.described[second]) {
                    continue;
                }
                let [others, near] = self.before(second);
                if !self.conflicting {
                    self.conflicting = (others.end..near.start).any(|first| self.conflicts((first, second)));
                }
                for first in others.chain(near) {
                    looks += 1;
                    // A look is cheap, but a word that all invocations access has millions of pairs.
                    let is_spent = looks.is_multiple_of(LOOKS_OF_EFFORT) && !self.spend(1);
                    if looks > MAX_LOOKS || is_spent {
                        self.open = Some((Undecided::TooManyPairs, None));
                        return None;
                    }
                    if !self.conflicts((first, second)) {
                        continue;
                    }
                    self.conflicting = true;
                    if self.are_ordered((first, second)) {
                        continue;
                    }
                    self.decided += 1;
                    if self.decided > MAX_PAIRS {
                        self.open = Some((Undecided::TooManyPairs, Some((first, second))));
                        return None;
                    }
                    match self.decide((first, second)) {
                        Ok(Some(slice)) => return Some(RacingPair { places: (first, second), slice }),
                        Ok(None) => {}
                        Err(reason) => _ = self.open.get_or_insert((reason, Some((first, second)))),
                    }
                }
            }
        }
        None
    }

    fn spend(&mut self, effort: usize) -> bool {
        self.effort.checked_sub(effort).inspect(|left| self.effort = *left).is_some()
    }

    /// The two accesses of a pair, the earlier one first.
    pub(super) fn accesses(&self, race: &RacingPair) -> (Accessed, Accessed) {
        let (first, second) = race.places;
        (self.facts.described[first], self.facts.described[second])
    }

    /// Why it is not known whether a pair races, if none was found to, and the pair if there is one.
    pub(super) fn undecided(&self) -> Option<(Undecided, Option<(Accessed, Accessed)>)> {
        let described = |pair: (usize, usize)| (self.facts.described[pair.0], self.facts.described[pair.1]);
        match self.open {
            Some((reason, pair)) => Some((reason, pair.map(described))),
            None if self.log.stopped.is_some() => self.log.stopped.map(|why| (why, None)),
            None if self.log.cut => Some((Undecided::Memory, None)),
            None if !self.conflicting => Some((Undecided::NotReproduced, None)),
            None => None,
        }
    }

    pub(super) fn conflicts(&self, (first, second): (usize, usize)) -> bool {
        self.candidate.first.matches(&self.facts.described[first])
            && conflict(self.log, self.accesses[first], self.accesses[second])
    }

    /// The slice of a pair that conflicts, if it is a race.
    pub(super) fn decide(&mut self, (first, second): (usize, usize)) -> Result<Option<Slice>, Undecided> {
        decide(self.log, (self.accesses[first], self.accesses[second]), &mut self.effort)
    }

    /// What is reported about a pair.
    pub(super) fn confirmed(&mut self, race: RacingPair) -> Confirmed {
        let (first, second) = race.places;
        let pair = (self.accesses[first], self.accesses[second]);
        // More events for the explanation, if there is room for them; they change no verdict.
        let most = (self.effort / EFFORT_OF_REPAIR).min(self.for_repair);
        let mut effort = most;
        let slice = for_repair(self.log, pair, &mut effort).filter(Slice::is_race).unwrap_or(race.slice);
        self.effort -= most - effort;
        self.for_repair -= most - effort;
        let updates = [first, second].map(|at| update_at(self.log, self.accesses, at));
        let updates = updates[0].zip(updates[1]).map(|(first, second)| [first, second]);
        Confirmed { first: self.facts.described[first], second: self.facts.described[second], slice, updates }
    }
}

/// Remaining budget of a dispatch's verdicts.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerdictBudget {
    /// Nodes of paths.
    effort: usize,
    /// Those of them that slices for repairs may take.
    for_repair: usize,
    /// Pairs of accesses that the search for further races looks at.
    looks: usize,
    /// Pairs that it decides.
    decisions: usize,
}

impl Default for VerdictBudget {
    fn default() -> Self {
        Self { effort: MAX_EFFORT, for_repair: MAX_FOR_REPAIR, looks: MAX_LOOKS, decisions: 4 * MAX_PAIRS }
    }
}

impl VerdictBudget {
    /// For trials of repairs that may do so much work.
    pub(super) fn within(work: u64) -> Self {
        let all = Self::default();
        Self { effort: all.effort.min(usize::try_from(work).unwrap_or(usize::MAX)), ..all }
    }

    /// How much of the work was done.
    pub(super) fn spent(&self, work: u64) -> u64 {
        (Self::within(work).effort - self.effort) as u64
    }

    /// The effort for a candidate: a part of what is left, so that there is some for the last one.
    fn take_effort(&mut self) -> usize {
        let effort = MAX_EFFORT_OF_CANDIDATE.min(self.effort / 4);
        self.effort -= effort;
        effort
    }

    /// A part of what is left for the search for further races.
    pub(super) fn at_most(&self, looks: usize, decisions: usize) -> Self {
        Self { effort: 0, for_repair: 0, looks: self.looks.min(looks), decisions: self.decisions.min(decisions) }
    }

    /// Takes what the search did not leave of that part.
    pub(super) fn take(&mut self, part: Self, left: Self) {
        self.looks -= part.looks - left.looks;
        self.decisions -= part.decisions - left.decisions;
    }

    pub(super) fn can_decide(&self) -> bool {
        self.decisions > 0
    }

    pub(super) fn look(&mut self) -> bool {
        self.looks.checked_sub(1).inspect(|left| self.looks = *left).is_some()
    }

    pub(super) fn decide(&mut self) -> bool {
        self.decisions.checked_sub(1).inspect(|left| self.decisions = *left).is_some()
    }
}

/// Whether an invocation is one of those that the detector knows to have made an access.
fn is_of(by: &Invocation, agents: Agents, subgroup_size: u32) -> bool {
    match agents {
        Agents::Invocation { invocation, .. } => *by == invocation,
        Agents::Subgroup { workgroup, subgroup, .. } => {
            (by.workgroup, by.local / subgroup_size) == (workgroup, subgroup)
        }
        Agents::Workgroup { workgroup, .. } => by.workgroup == workgroup,
        Agents::Several { .. } => true,
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

//! The pairs of accesses to a word: which of them are looked at, in which order, until one races.

use std::ops::Range;
use std::rc::Rc;

use spelter_shaders::check::observer::Invocation;
use spelter_shaders::check::{self, Agents};

use super::budget::{MAX_LOOKS, MAX_PAIRS};
use super::{Candidate, Confirmed, VerdictBudget, conflict, decide, update_at};
use crate::check::log::{Accessed, Index, Log};
use crate::check::slice::{Slice, Undecided, for_repair};
use crate::check::word_facts::{LastWord, WordFacts};

/// How many looks at pairs are as much effort as a node of a path.
const LOOKS_OF_EFFORT: usize = 4;

/// The part of what is left for a candidate that the slice for a repair may take.
const EFFORT_OF_REPAIR: usize = 4;

/// The part of the effort for a candidate that is for the pairs of the suspicion alone, and how many are decided.
const EFFORT_OF_SUSPICION: usize = 8;
const MAX_PAIRS_OF_SUSPICION: usize = 64;

/// The pairs of accesses to a candidate's word.
pub(in crate::check) struct Pairs<'a> {
    log: &'a Log,
    pub(in crate::check) candidate: &'a Candidate,
    /// The accesses of the word, in order.
    pub(in crate::check) accesses: &'a [Index],
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
pub(in crate::check) struct RacingPair {
    pub(in crate::check) places: (usize, usize),
    pub(in crate::check) slice: Slice,
}

impl<'a> Pairs<'a> {
    /// The pairs, with a part of the effort that is left for the dispatch.
    pub(in crate::check) fn new(log: &'a Log, candidate: &'a Candidate, budget: &mut VerdictBudget) -> Self {
        Self::with(&mut LastWord::default(), log, candidate, budget)
    }

    /// The same, with what is known of the word that was asked about before.
    pub(in crate::check) fn with<'l: 'a>(
        last: &mut LastWord<'l>,
        log: &'l Log,
        candidate: &'a Candidate,
        budget: &mut VerdictBudget,
    ) -> Self {
        let accesses = log.words.get(&candidate.word).map_or(&[][..], Vec::as_slice);
        Self::of(log, candidate, accesses, last.facts(log, candidate.word, accesses), budget)
    }

    /// The pairs of some accesses to the word, of which these are the facts.
    pub(super) fn of(
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
    pub(in crate::check) fn described(&self) -> &[Accessed] {
        &self.facts.described
    }

    /// Gives back the effort that is left.
    pub(in crate::check) fn give_back(&mut self, budget: &mut VerdictBudget) {
        budget.effort += std::mem::take(&mut self.effort);
        budget.for_repair += std::mem::take(&mut self.for_repair);
    }

    /// The places before one of which the accesses may race with it: barriers order those in between.
    pub(in crate::check) fn before(&self, second: usize) -> [Range<usize>; 2] {
        let ordered = self.facts.order.as_ref().map_or(0..0, |order| order.ordered_before(second));
        [0..ordered.start, ordered.end..second]
    }

    /// Whether releases and acquires order two accesses, or one invocation makes both alike, which its program orders.
    pub(in crate::check) fn are_ordered(&self, (first, second): (usize, usize)) -> bool {
        self.facts.order.as_ref().is_some_and(|order| order.orders(first, second))
            || self.facts.links.orders(first, second)
    }

    /// Those with a later access by the instruction of this suspicion come first, and its own pairs have some effort
    /// for themselves.
    pub(in crate::check) fn suspecting(self, suspected: &'a check::Candidate) -> Self {
        Self { suspected: Some(suspected), ..self }
    }

    /// The first pair that races.
    pub(in crate::check) fn first_race(&mut self) -> Option<RacingPair> {
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
    pub(in crate::check) fn accesses(&self, race: &RacingPair) -> (Accessed, Accessed) {
        let (first, second) = race.places;
        (self.facts.described[first], self.facts.described[second])
    }

    /// Why it is not known whether a pair races, if none was found to, and the pair if there is one.
    pub(in crate::check) fn undecided(&self) -> Option<(Undecided, Option<(Accessed, Accessed)>)> {
        let described = |pair: (usize, usize)| (self.facts.described[pair.0], self.facts.described[pair.1]);
        match self.open {
            Some((reason, pair)) => Some((reason, pair.map(described))),
            None if self.log.stopped.is_some() => self.log.stopped.map(|why| (why, None)),
            None if self.log.cut => Some((Undecided::Memory, None)),
            None if !self.conflicting => Some((Undecided::NotReproduced, None)),
            None => None,
        }
    }

    pub(in crate::check) fn conflicts(&self, (first, second): (usize, usize)) -> bool {
        self.candidate.first.matches(&self.facts.described[first])
            && conflict(self.log, self.accesses[first], self.accesses[second])
    }

    /// The slice of a pair that conflicts, if it is a race.
    pub(in crate::check) fn decide(&mut self, (first, second): (usize, usize)) -> Result<Option<Slice>, Undecided> {
        decide(self.log, (self.accesses[first], self.accesses[second]), &mut self.effort)
    }

    /// What is reported about a pair.
    pub(in crate::check) fn confirmed(&mut self, race: RacingPair) -> Confirmed {
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

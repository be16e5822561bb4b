//! Races of a word beside the first one: each pair of lines once. So that one which is suppressed hides no other.
//!
//! The search has bounds, for each word and for all of a dispatch. Which pairs of lines it leaves open is part of its
//! result: what is not decided must not look as if it were free of races.

use std::collections::BTreeMap;
use std::hash::Hash;

use foldhash::{HashMap, HashSet};
use spelter_shaders::ir::Site;

use super::confirm::{Confirmed, Pairs, RacingPair, VerdictBudget};
use super::log::Accessed;
use super::slice::Undecided;

/// The most pairs of accesses to a word that are decided, and that are looked at.
const MAX_PAIRS_OF_ONE: usize = 512;
const MAX_LOOKS_OF_ONE: usize = 1 << 18;

/// The most pairs of instructions that a word leaves open: of thousands of instructions that access it, the number of
/// pairs is the square.
const MAX_OPEN_OF_ONE: usize = 1 << 14;

/// The pairs by two instructions that are found to be ordered before more of them wait until all others are decided.
const MANY_ORDERED: u32 = 16;

/// The nearest earlier accesses by one instruction that are compared with a later one of another invocation than the
/// suspicion's.
const MAX_NEAREST: usize = 4;

/// What the search found.
pub(super) struct Further<K> {
    /// Races that were not known.
    pub(super) races: Vec<Confirmed>,
    /// What is still open, and no known race.
    pub(super) open: Vec<(K, OpenPair)>,
}

/// Two accesses that conflict and were not decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenPair {
    pub(super) accesses: (Accessed, Accessed),
    pub(super) why: Undecided,
    /// Whether they may race as far as is known. Where many pairs of accesses by the two instructions are ordered, more
    /// are so, as a rule.
    pub(super) is_suspect: bool,
}

/// The state of a search.
struct PairSearch<K> {
    /// The remaining budget of the word.
    budget: VerdictBudget,
    /// Pairs of instructions by how many of their pairs of accesses are ordered. Those that are ordered in one round of
    /// a loop are so in the next, as a rule.
    ordered: HashMap<(Site, Site), u32>,
    /// Pairs that wait: of each later access the nearest one of two instructions, and the others.
    waiting: [Vec<(K, (usize, usize))>; 2],
    /// The first pair of each that stays open, and whether it was looked at.
    open: HashMap<K, ((usize, usize), Undecided, bool)>,
}

impl Pairs<'_> {
    /// Races that are not known yet, of which each `key` is one, the nearest accesses first, and what stays open if
    /// `budget` does not suffice.
    pub(super) fn further_races<K: Copy + Eq + Hash>(
        &mut self,
        budget: &mut VerdictBudget,
        known: &mut HashSet<K>,
        key: impl Fn(&Accessed, &Accessed) -> K,
    ) -> Further<K> {
        let share = budget.at_most(MAX_LOOKS_OF_ONE, MAX_PAIRS_OF_ONE);
        let (ordered, waiting, open) = (HashMap::default(), Default::default(), HashMap::default());
        let mut search = PairSearch { budget: share, ordered, waiting, open };
        let mut races = Vec::new();
        let of =
            |pairs: &Self, (first, second): (usize, usize)| key(&pairs.described()[first], &pairs.described()[second]);
        'all: for second in 0..self.accesses.len() {
            if !self.candidate.second.matches(&self.described()[second]) {
                continue;
            }
            let [others, near] = self.before(second);
            let mut nearest = HashSet::default();
            for first in others.chain(near).rev() {
                if !search.budget.look() {
                    self.leave_open(&mut search, second, &of);
                    break 'all;
                }
                let (pair, key) = ((first, second), of(self, (first, second)));
                let is_left = !search.budget.can_decide() && search.open.contains_key(&key);
                if is_left || known.contains(&key) || !self.conflicts(pair) || self.are_ordered(pair) {
                    continue;
                }
                // Lines that were ordered many times mostly are so again: others go first. Of these the nearest pair of
                // each later access goes before the rest.
                if search.ordered.get(&self.sites(pair)).is_some_and(|&ordered| ordered >= MANY_ORDERED) {
                    let waiting = &mut search.waiting[usize::from(!nearest.insert(self.sites(pair)))];
                    match waiting.len() < MAX_PAIRS_OF_ONE {
                        true => waiting.push((key, pair)),
                        false => _ = search.open.entry(key).or_insert((pair, Undecided::TooManyPairs, true)),
                    }
                } else if let Some(race) = self.decide_further(&mut search, key, pair) {
                    known.insert(key);
                    races.push(self.confirmed(race));
                }
            }
        }
        for (key, pair) in std::mem::take(&mut search.waiting).into_iter().flatten() {
            if known.contains(&key) {
                continue;
            }
            if let Some(race) = self.decide_further(&mut search, key, pair) {
                known.insert(key);
                races.push(self.confirmed(race));
            }
        }
        races.append(&mut self.races_of_others(&mut search, known, &of));
        budget.take(share, search.budget);
        let described = |(key, (pair, why, is_seen)): (K, ((usize, usize), Undecided, bool))| {
            let accesses = (self.described()[pair.0], self.described()[pair.1]);
            let are_ordered = search.ordered.get(&self.sites(pair)).is_some_and(|&ordered| ordered >= MANY_ORDERED);
            (key, OpenPair { accesses, why, is_suspect: is_seen && !are_ordered })
        };
        let open = search.open.into_iter().filter(|(key, _)| !known.contains(key)).map(described).collect();
        Further { races, open }
    }

    /// Races whose later access is of another invocation than the suspicion's: of each two instructions one. Where
    /// invocations execute an instruction at once, the suspicion is of one of them, and each may race with another one.
    fn races_of_others<K: Copy + Eq + Hash>(
        &mut self,
        search: &mut PairSearch<K>,
        known: &mut HashSet<K>,
        key: &impl Fn(&Self, (usize, usize)) -> K,
    ) -> Vec<Confirmed> {
        let mut places: BTreeMap<Site, Vec<usize>> = BTreeMap::new();
        for (place, access) in self.described().iter().enumerate() {
            places.entry(access.site).or_default().push(place);
        }
        let places: Vec<Vec<usize>> = places.into_values().collect();
        let lists = || places.iter().map(Vec::as_slice);
        let pairs = lists().flat_map(|first| lists().map(move |second| [first, second]));
        pairs.filter_map(|pair| self.race_of_others(search, known, pair, key)).collect()
    }

    /// Such a race of two instructions, whose accesses have these places: of each later access with the nearest earlier
    /// ones, until many are ordered.
    fn race_of_others<K: Copy + Eq + Hash>(
        &mut self,
        search: &mut PairSearch<K>,
        known: &mut HashSet<K>,
        [firsts, seconds]: [&[usize]; 2],
        key: &impl Fn(&Self, (usize, usize)) -> K,
    ) -> Option<Confirmed> {
        let before = |place: usize| firsts.partition_point(|&first| first < place);
        let mut ordered = 0;
        for &second in seconds {
            if self.candidate.second.matches(&self.described()[second]) {
                continue;
            }
            let [others, near] = self.before(second);
            let [others, near] = [before(others.start)..before(others.end), before(near.start)..before(near.end)];
            for &first in firsts[others].iter().chain(&firsts[near]).rev().take(MAX_NEAREST) {
                let pair = (first, second);
                let key = key(self, pair);
                if known.contains(&key) || !search.budget.look() {
                    return None;
                }
                if !self.conflicts(pair) || self.are_ordered(pair) {
                    continue;
                }
                if !search.budget.can_decide() {
                    search.open.entry(key).or_insert((pair, Undecided::TooManyPairs, false));
                    return None;
                }
                if let Some(race) = self.decide_further(search, key, pair) {
                    known.insert(key);
                    return Some(self.confirmed(race));
                }
                ordered += 1;
                if ordered >= MANY_ORDERED {
                    return None;
                }
            }
        }
        None
    }

    /// Decides about a pair if there is room for it: a race, if it is one. What is not decided stays open.
    fn decide_further<K: Copy + Eq + Hash>(
        &mut self,
        search: &mut PairSearch<K>,
        key: K,
        places: (usize, usize),
    ) -> Option<RacingPair> {
        let decided = if search.budget.decide() { self.decide(places) } else { Err(Undecided::TooManyPairs) };
        match decided {
            Ok(Some(slice)) => return Some(RacingPair { places, slice }),
            Ok(None) => *search.ordered.entry(self.sites(places)).or_default() += 1,
            Err(why) => _ = search.open.entry(key).or_insert((places, why, true)),
        }
        None
    }

    /// Leaves open what the accesses from a place on may race with: for each two instructions, one pair of accesses,
    /// whatever orders it. The last accesses are first if they are too many.
    fn leave_open<K: Copy + Eq + Hash>(
        &self,
        search: &mut PairSearch<K>,
        from: usize,
        key: &impl Fn(&Self, (usize, usize)) -> K,
    ) {
        let mut looks = MAX_LOOKS_OF_ONE;
        let mut seen = HashSet::default();
        let earlier: Vec<_> = (0..self.accesses.len()).filter(|&at| seen.insert(self.described()[at].site)).collect();
        seen.clear();
        let matches = |&at: &usize| self.candidate.second.matches(&self.described()[at]);
        let later = (from..self.accesses.len()).rev().filter(matches);
        for second in later.filter(|&at| seen.insert(self.described()[at].site)) {
            let pairs = earlier.iter().take_while(|&&first| first < second).map(|&first| (first, second));
            for pair in pairs {
                if looks == 0 || search.open.len() >= MAX_OPEN_OF_ONE {
                    return;
                }
                looks -= 1;
                if !self.conflicts(pair) {
                    continue;
                }
                search.open.entry(key(self, pair)).or_insert((pair, Undecided::TooManyPairs, false));
            }
        }
    }

    fn sites(&self, (first, second): (usize, usize)) -> (Site, Site) {
        (self.described()[first].site, self.described()[second].site)
    }
}

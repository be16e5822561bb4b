//! Decides about what the detector suspects of a dispatch: it runs again, each time for as many suspicions as the
//! record has memory for, and the axioms are asked about the accesses to their words.
//!
//! A suspicion has the later access of a race and a word. All pairs of lines that race in that word are reported, each
//! once, however often they do: so that one that is suppressed hides no other.

mod rounds;

use std::collections::{BTreeMap, HashMap};

use foldhash::HashSet;
use spelter_shaders::check::{self, CandidateKind, Candidates, Cause};
use spelter_shaders::ir::{Kernel, Site};

use super::confirm::{AccessFilter, Candidate, Confirmed, Pairs, Verdict, VerdictBudget, confirm_within};
use super::dispatch::DispatchRun;
use super::further::{Further, OpenPair};
use super::log::{Accessed, Log, Word, word};
use super::record::{Interrupted, Record, Wanted};
use super::slice::Undecided;
use super::word_facts::LastWord;
use rounds::Rounds;

/// The most warnings about lines that were not compared at each word that they access.
const MAX_WARNINGS: usize = 16;

/// The most candidates of a kind, beside its examples, that are recorded at once.
pub(super) const MAX_LATER: usize = 56;

/// The most of these of which it is found out whether all their lines are known.
const MAX_LEFT_OUT: usize = 256;

/// What makes two races of a dispatch one finding: the places of the two accesses in the source, the reference of the
/// later one, and which of them write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RaceKey {
    earlier: u32,
    later: u32,
    reference: u32,
    writes: [bool; 2],
}

/// A race of two lines.
struct LineRace {
    confirmed: Confirmed,
    /// A word that both access.
    word: Word,
    cause: Cause,
    /// How often it was seen, if that is known.
    count: u64,
    /// The kinds of suspicions that it confirmed.
    kinds: Vec<CandidateKind>,
}

/// The races of a dispatch.
struct Races {
    /// For each site the number of its place in the source, and that of its line.
    lines: Vec<[u32; 2]>,
    /// Those that are not reported yet, and the place of each in the list.
    found: Vec<LineRace>,
    places: HashMap<RaceKey, usize>,
    /// All so far.
    known: HashSet<RaceKey>,
    /// Lines that access a word with a race, and may race, too: the search for further races ended before.
    open: BTreeMap<RaceKey, (check::Candidate, OpenPair)>,
    /// Suspicions with words that no record had room for.
    left_out: usize,
    budget: VerdictBudget,
}

/// Candidates of a kind that are not decided yet.
struct Suspicion<'a> {
    of: &'a Candidates,
    examples: Vec<&'a check::Candidate>,
    /// More of them: other lines may have made the earlier accesses. Until one of the kind is confirmed they are
    /// examples like the others.
    later: Vec<&'a check::Candidate>,
    /// Those of them that no record had room for.
    left_out: Vec<&'a check::Candidate>,
    /// More of them, for another round if all others are refuted.
    rest: Vec<&'a check::Candidate>,
    /// Whether that round is the next one.
    is_of_rest: bool,
    /// Whether another example of the kind was confirmed.
    is_confirmed: bool,
}

/// An example that was not decided.
struct Open<'a> {
    example: &'a check::Candidate,
    why: Undecided,
    /// The two accesses, if they are known.
    pair: Option<(Accessed, Accessed)>,
}

impl<'a> Suspicion<'a> {
    fn new(of: &'a Candidates) -> Self {
        let distance = of.later.len().div_ceil(MAX_LATER).max(1);
        let at = |number: &(usize, _)| number.0.is_multiple_of(distance);
        let (later, rest): (Vec<_>, Vec<_>) = of.later.iter().enumerate().partition(at);
        let [later, rest] = [later, rest].map(|list| list.into_iter().map(|(_, example)| example).collect());
        let (examples, left_out) = (of.examples.iter().collect(), Vec::new());
        Self { of, examples, later, left_out, rest, is_of_rest: false, is_confirmed: false }
    }

    /// Looks at no more than the examples.
    fn leave_out_later(&mut self) {
        if !self.later.is_empty() {
            self.left_out = std::mem::take(&mut self.later);
        }
    }

    /// Goes on with the rest of the candidates: all others were refuted.
    fn go_on_with_rest(&mut self) {
        self.examples = std::mem::take(&mut self.rest);
        self.examples.append(&mut self.left_out);
        self.later = Vec::new();
        self.is_of_rest = true;
    }

    /// Whether there are candidates for another round, if all others are refuted.
    fn has_rest(&self) -> bool {
        !self.rest.is_empty() || !self.left_out.is_empty()
    }

    /// Whether there were more candidates of the kind than were kept.
    fn is_a_part(&self) -> bool {
        self.of.count > (self.of.examples.len() + self.of.later.len()) as u64
    }

    /// All candidates whose words are to be recorded.
    fn candidates(&self) -> impl Iterator<Item = &'a check::Candidate> {
        self.examples.iter().chain(&self.later).copied()
    }
}

impl DispatchRun<'_> {
    /// Reports what is a race of these candidates, and what may be one. Says where the kernel was if the device stopped
    /// it meanwhile.
    pub(super) fn decide_all(&self, kinds: &[Candidates]) -> Option<Interrupted> {
        Rounds::new(self, kinds).run()
    }

    /// Counts the lines that may race beside a race that was found, and warns of the first ones. Of those that were
    /// ordered wherever they were compared it does not warn.
    fn warn_of_open_lines(&self, races: &Races) {
        let open: Vec<_> =
            races.open.iter().filter(|(key, _)| !races.known.contains(key)).map(|(_, open)| open).collect();
        self.code.checker.count(|counts| counts.lines_not_compared += open.len() as u64);
        let warned = open.into_iter().filter(|(_, pair)| pair.is_suspect).take(MAX_WARNINGS);
        warned.for_each(|(example, pair)| self.suspect(example, &pair.why.to_string(), Some(pair.accesses), 0));
    }

    /// Counts a confirmed suspicion if other lines may race at words that no record had room for, and warns of the
    /// first ones.
    fn warn_of_left_out(&self, races: &mut Races, suspicion: &Suspicion<'_>) {
        let Some(&example) = suspicion.left_out.first().filter(|_| suspicion.is_confirmed) else { return };
        if races.left_out < MAX_LEFT_OUT && self.is_known(races, example, None) {
            return;
        }
        if races.left_out < MAX_WARNINGS {
            self.suspect(example, "the recording has no room for more words", None, 0);
        }
        races.left_out += 1;
        self.code.checker.count(|counts| counts.lines_not_compared += 1);
    }

    /// Warns of a suspicion that is not looked at any further.
    fn give_up(&self, races: &Races, suspicion: &Suspicion<'_>, why: &str) {
        let is_open = |example: &&&check::Candidate| !suspicion.is_confirmed || !self.is_known(races, example, None);
        let open = suspicion.examples.iter().filter(is_open);
        self.warn(suspicion, open.map(|&example| (example, why.to_owned(), None)));
    }

    /// Warns of the examples of a suspicion that were not decided.
    fn warn<'a>(
        &self,
        suspicion: &Suspicion<'_>,
        open: impl Iterator<Item = (&'a check::Candidate, String, Option<(Accessed, Accessed)>)>,
    ) {
        let mut count = if suspicion.is_confirmed { 0 } else { suspicion.of.count };
        for (example, why, pair) in open {
            if count > 0 {
                self.code.checker.count(|counts| counts.undecided += 1);
            }
            self.suspect(example, &why, pair, count);
            count = 0;
        }
    }

    /// Whether races of the lines of an example are known, whichever of the instructions that may have made the earlier
    /// access did.
    fn is_known(&self, races: &Races, example: &check::Candidate, pair: Option<(Accessed, Accessed)>) -> bool {
        if let Some((first, second)) = pair {
            return races.known.contains(&key(&races.lines, &first, &second));
        }
        let mut earlier = self.may_access(example).into_iter().peekable();
        let is_known = |site: Site| {
            let (first, second, _) = numbers(&races.lines, site, example.second.site);
            races.known.iter().any(|key| (key.earlier, key.later) == (first, second))
        };
        earlier.peek().is_some() && earlier.all(is_known)
    }

    /// Atomics that order nothing are not needed for a verdict, but a repair may make them order something. Returns
    /// the record that has them.
    fn with_atomics(&self, races: &mut [LineRace], budget: &mut VerdictBudget) -> Option<Record> {
        let record = self.record(&Wanted::of_races(races.iter().map(|race| (race.word, &race.confirmed))))?;
        for race in races {
            let filter = |of: Accessed| AccessFilter { dispatch: None, site: Some(of.site), by: Some(of.by) };
            let (first, second) = (filter(race.confirmed.first), filter(race.confirmed.second));
            let candidate = Candidate { word: race.word, first, second };
            if let Verdict::Confirmed(found) = confirm_within(&record.log, &candidate, budget) {
                race.confirmed = *found;
            }
        }
        Some(record)
    }
}

impl Races {
    fn new(kernel: &Kernel) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |word: u32| {
            let line = kernel.line_of_word(word);
            let place = line.map(|line| (&line.file, line.line, line.column));
            let row = line.map(|line| (&line.file, line.line, u32::MAX));
            [place, row].map(|name| {
                let next = numbers.len() as u32;
                *numbers.entry((name, if name.is_none() { word } else { 0 })).or_insert(next)
            })
        };
        let lines = kernel.sites.values().map(|site| number(site.word)).collect();
        let (found, places, known) = (Vec::new(), HashMap::new(), HashSet::default());
        Self { lines, found, places, known, open: BTreeMap::new(), left_out: 0, budget: VerdictBudget::default() }
    }

    /// Asks the axioms about the examples of a kind, and adds the races: the first one counts for the kind. Returns
    /// what stays undecided, which is all that is left once it is late.
    fn decide<'a, 'l>(
        &mut self,
        (log, last): (&'l Log, &mut LastWord<'l>),
        suspicion: &mut Suspicion<'a>,
        is_late: &dyn Fn() -> bool,
    ) -> Vec<Open<'a>> {
        let Suspicion { of: Candidates { kind, count, .. }, examples, later, is_confirmed, .. } = suspicion;
        let mut open = Vec::new();
        let all = examples.iter().map(|&example| (example, false)).chain(later.iter().map(|&example| (example, true)));
        for (example, is_later) in all {
            if is_late() {
                open.push(Open { example, why: Undecided::TooLong, pair: None });
                continue;
            }
            let candidate = candidate(example);
            if is_later && *is_confirmed {
                let mut pairs = Pairs::with(last, log, &candidate, &mut self.budget);
                self.add_further(&mut pairs, example, kind.cause);
                pairs.give_back(&mut self.budget);
                continue;
            }
            let mut pairs = Pairs::with(last, log, &candidate, &mut self.budget).suspecting(example);
            if let Some(race) = pairs.first_race() {
                let (first, second) = pairs.accesses(&race);
                let count = if *is_confirmed { 0 } else { *count };
                if !*is_confirmed || !self.known.contains(&key(&self.lines, &first, &second)) {
                    let race = pairs.confirmed(race);
                    self.add(race, (candidate.word, kind.cause), count, (!*is_confirmed).then_some(*kind));
                }
                *is_confirmed = true;
                // It may be of another line than the suspicion.
                if second.site != kind.site
                    && let Some((why, pair)) = pairs.undecided()
                {
                    open.push(Open { example, why, pair });
                }
                self.add_further(&mut pairs, example, kind.cause);
            } else if let Some((why, pair)) = pairs.undecided() {
                open.push(Open { example, why, pair });
            }
            pairs.give_back(&mut self.budget);
        }
        open
    }

    /// Adds the races of a word beside the first one.
    fn add_further(&mut self, pairs: &mut Pairs<'_>, example: &check::Candidate, cause: Cause) {
        let lines = &self.lines;
        let key = |first: &Accessed, second: &Accessed| key(lines, first, second);
        let Further { races, open } = pairs.further_races(&mut self.budget, &mut self.known, key);
        for (key, pair) in open {
            self.open.entry(key).or_insert((*example, pair));
        }
        for race in races {
            self.add(race, (word(example), cause), 0, None);
        }
    }

    /// Those since the last call.
    fn take(&mut self) -> Vec<LineRace> {
        self.places.clear();
        std::mem::take(&mut self.found)
    }

    fn add(&mut self, confirmed: Confirmed, (word, cause): (Word, Cause), count: u64, kind: Option<CandidateKind>) {
        let key = key(&self.lines, &confirmed.first, &confirmed.second);
        self.known.insert(key);
        let place = *self.places.entry(key).or_insert(self.found.len());
        match self.found.get_mut(place) {
            Some(race) => {
                race.count = race.count.saturating_add(count);
                race.kinds.extend(kind);
            }
            None => self.found.push(LineRace { confirmed, word, cause, count, kinds: kind.into_iter().collect() }),
        }
    }
}

fn key(lines: &[[u32; 2]], first: &Accessed, second: &Accessed) -> RaceKey {
    let (earlier, later, is_one) = numbers(lines, first.site, second.site);
    let writes = if is_one { [true, true] } else { [first.writes, second.writes] };
    RaceKey { earlier, later, reference: second.reference, writes }
}

/// The numbers of two instructions' places, and whether they are of one line. A line that reads and writes, as updates
/// do, races with itself in three ways, which are one mistake: then it is the number of the line.
fn numbers(lines: &[[u32; 2]], first: Site, second: Site) -> (u32, u32, bool) {
    let of = |site: Site| lines.get(site.as_u32() as usize).copied().unwrap_or_default();
    let ([earlier, row], [later, other]) = (of(first), of(second));
    if row == other { (row, other, true) } else { (earlier, later, false) }
}

/// What is asked about an example: whether an access of its later invocation races. Its instruction may stand for
/// others, which have no check of their own.
pub(super) fn candidate(example: &check::Candidate) -> Candidate {
    let second = AccessFilter { by: Some(example.second.invocation), ..AccessFilter::default() };
    Candidate { word: word(example), first: AccessFilter::default(), second }
}

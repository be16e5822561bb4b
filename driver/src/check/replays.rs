//! Decides about what the detector suspects of a dispatch: it runs again, each time for as many suspicions as the
//! record has memory for, and the axioms are asked about the accesses to their words.
//!
//! A suspicion has the later access of a race and a word. All pairs of lines that race in that word are reported, each
//! once, however often they do: so that one that is suppressed hides no other.

use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use foldhash::HashSet;
use spelter_shaders::abi::{Outcome, Stop};
use spelter_shaders::check::{self, Candidates, Cause};
use spelter_shaders::ir::{Kernel, Site};

use super::confirm::{Candidate, Confirmed, Filter, Pairs, Room, Verdict, confirm};
use super::deadline;
use super::dispatch::{DispatchRun, word};
use super::guards::Guards;
use super::log::{Accessed, Log, Word};
use super::repair::{Bounded, Budget};
use super::slice::Undecided;

/// Words that one replay records, at most: each needs a look-up for every access.
const MAX_WORDS: usize = 1 << 15;

/// What the replays of a dispatch observe, at most: another one begins only below.
const MAX_WORK: u64 = 1 << 26;

/// Replays that a dispatch may have whatever they observe.
const MIN_REPLAYS: u32 = 16;

/// What is observed of a dispatch that was stopped, and may have no end, and how long it may run then: a program that
/// ends when its device is lost waits five seconds for reports.
const MAX_STOPPED_WORK: u64 = 1 << 21;
const MAX_STOPPED_TIME: Duration = Duration::from_secs(4);

/// A replay that did not come to its end: how it ended, and where the kernel was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interrupted {
    pub(super) outcome: Outcome,
    pub(super) at: Option<Stop>,
}

/// What a replay recorded.
struct Record {
    log: Log,
    interrupted: Option<Interrupted>,
    /// The accesses and barriers that it observed.
    work: u64,
}

/// What makes two races of a dispatch one finding: the lines, the reference of the later access, and which one writes.
type Key = (u32, u32, u32, (bool, bool));

/// A race of two lines.
struct Race {
    confirmed: Confirmed,
    /// A word that both access.
    word: Word,
    cause: Cause,
    /// How often it was seen, if that is known.
    count: u64,
}

/// The races of a dispatch.
struct Races {
    /// A number for each site, equal for those of one line.
    lines: Vec<u32>,
    /// Those that are not reported yet, and the place of each in the list.
    found: Vec<Race>,
    places: HashMap<Key, usize>,
    /// All so far.
    known: HashSet<Key>,
    room: Room,
}

/// What the axioms say about the candidates of a kind.
enum Decided {
    Confirmed,
    Refuted,
    Undecided(Undecided, Option<(Accessed, Accessed)>),
}

impl DispatchRun<'_> {
    /// Reports what is a race of these candidates, and what may be one. Says where the kernel was if the device stopped
    /// it meanwhile.
    pub(super) fn decide_all(&self, kinds: &[Candidates]) -> Option<Interrupted> {
        if self.snapshot.is_none() {
            let why = "the dispatch could not run again: the copy of the memory that it may write exceeds the limit";
            kinds.iter().for_each(|kind| self.suspect(kind, why, None));
            return None;
        }
        let mut races = Races::new(&self.code.all().kernel);
        let mut left: Vec<&Candidates> = kinds.iter().collect();
        let (mut most, mut replays, mut work) = (left.len(), 0, 0);
        let mut interrupted = None;
        while !left.is_empty() && interrupted.is_none() && (replays < MIN_REPLAYS || work < MAX_WORK) {
            let mut words = 0;
            let fits = |kind: &&&Candidates| {
                words += kind.examples.len();
                words <= MAX_WORDS
            };
            let count = left.iter().take_while(fits).count().min(most).max(1);
            let later = left.split_off(count);
            let Some(record) = self.record(&left, false) else {
                left.extend(later);
                break;
            };
            replays += 1;
            work += record.work;
            interrupted = record.interrupted;
            let mut again = Vec::new();
            for kind in left {
                match races.decide(&record.log, kind) {
                    Decided::Confirmed => self.code.checker.count(|counts| counts.confirmed += 1),
                    Decided::Refuted => self.code.checker.count(|counts| counts.refuted += 1),
                    // With fewer words there may be room for all that happens.
                    Decided::Undecided(Undecided::Memory, _) if count > 1 => again.push(kind),
                    Decided::Undecided(why, pair) => self.suspect(kind, &why.to_string(), pair),
                }
            }
            if !again.is_empty() {
                most = count / 2;
            }
            let mut found = races.take();
            let mut with_atomics = None;
            if interrupted.is_none() && !found.is_empty() && !record.log.has_all_atomics() {
                with_atomics = self.with_atomics(&mut found);
                work += with_atomics.as_ref().map_or(0, |record| record.work);
                interrupted = with_atomics.as_ref().and_then(|record| record.interrupted);
                replays += 1;
            }
            let guards =
                Guards::new(&with_atomics.as_ref().unwrap_or(&record).log, found.iter().map(|race| &race.confirmed));
            for Race { confirmed, cause, count, .. } in &found {
                self.race(confirmed, (*cause, (*count).max(1)), &|| self.flag(&guards, confirmed));
            }
            again.extend(later);
            left = again;
        }
        let why = match interrupted {
            Some(_) => "the dispatch was stopped, and was not repeated to its end",
            None => "repeating the dispatch for each suspicion would take too long",
        };
        left.into_iter().for_each(|kind| self.suspect(kind, why, None));
        interrupted.filter(|_| self.ended)
    }

    /// Atomics that order nothing are not needed for a verdict, but a repair may make them order something. Returns
    /// the record that has them.
    fn with_atomics(&self, races: &mut [Race]) -> Option<Record> {
        let record = self.record_words(races.iter().map(|race| race.word), true)?;
        for race in races {
            let filter = |of: Accessed| Filter { dispatch: None, site: Some(of.site), by: Some(of.by) };
            let (first, second) = (filter(race.confirmed.first), filter(race.confirmed.second));
            if let Verdict::Confirmed(found) = confirm(&record.log, &Candidate { word: race.word, first, second }) {
                race.confirmed = *found;
            }
        }
        Some(record)
    }

    /// The log of the words of candidates; `None` if the dispatch cannot run again.
    pub(super) fn log(&self, kinds: &[Candidates]) -> Result<Option<Log>, Interrupted> {
        let Some(record) = self.record(&kinds.iter().collect::<Vec<_>>(), false) else { return Ok(None) };
        record.interrupted.map_or_else(|| Ok(Some(record.log)), Err)
    }

    fn record(&self, kinds: &[&Candidates], all_atomics: bool) -> Option<Record> {
        self.record_words(kinds.iter().flat_map(|kind| &kind.examples).map(word), all_atomics)
    }

    fn record_words(&self, words: impl IntoIterator<Item = Word>, all_atomics: bool) -> Option<Record> {
        let mut recorder = self.recorder(self.code.all(), words, all_atomics);
        let budget = Budget::new(if self.ended { u64::MAX } else { MAX_STOPPED_WORK });
        let before = budget.left();
        let (own, never) = (AtomicU32::new(0), AtomicU32::new(0));
        // The device has been stopped where the dispatch was: its flag is set.
        let (stop, device) = if self.ended { (self.args.stop, self.args.stop) } else { (&own, &never) };
        let mut bounded = Bounded { observer: &mut recorder, budget: &budget, stop, device };
        let (outcome, at) = match self.ended {
            true => self.replay(&mut bounded, stop)?,
            false => deadline::within(self.elapsed.min(MAX_STOPPED_TIME), stop, || self.replay(&mut bounded, stop))??,
        };
        let interrupted = (outcome != Outcome::Done).then_some(Interrupted { outcome, at });
        let work = before - budget.left();
        self.observed.set(work);
        let log = if interrupted.is_some() { recorder.finish_stopped() } else { recorder.finish() };
        Some(Record { log, interrupted, work })
    }
}

impl Races {
    fn new(kernel: &Kernel) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |word: u32| {
            let line = kernel.line_of_word(word);
            let name = (line.map(|line| (&line.file, line.line, line.column)), if line.is_none() { word } else { 0 });
            let next = numbers.len() as u32;
            *numbers.entry(name).or_insert(next)
        };
        let lines = kernel.sites.values().map(|site| number(site.word)).collect();
        Self { lines, found: Vec::new(), places: HashMap::new(), known: HashSet::default(), room: Room::default() }
    }

    /// What the axioms say about the examples of a kind: the first one that is a race counts for it. Adds the races of
    /// all examples then.
    fn decide(&mut self, log: &Log, kind: &Candidates) -> Decided {
        let mut found = Decided::Refuted;
        for example in &kind.examples {
            let candidate = candidate(example);
            let mut pairs = Pairs::new(log, &candidate).preferring(kind.kind.site);
            if let Some(race) = pairs.first_race() {
                if !matches!(found, Decided::Confirmed) {
                    found = Decided::Confirmed;
                    self.add(race, (candidate.word, kind.kind.cause), kind.count);
                } else if !self.known.contains(&key(&self.lines, &race.first, &race.second)) {
                    self.add(race, (candidate.word, kind.kind.cause), 0);
                }
                let lines = &self.lines;
                let key = |first: &Accessed, second: &Accessed| key(lines, first, second);
                for race in pairs.further_races(&mut self.room, &mut self.known, key) {
                    self.add(race, (candidate.word, kind.kind.cause), 0);
                }
            } else if let (Some((why, pair)), false) = (pairs.undecided(), matches!(found, Decided::Confirmed)) {
                found = Decided::Undecided(why, pair);
            }
        }
        found
    }

    /// Those since the last call.
    fn take(&mut self) -> Vec<Race> {
        self.places.clear();
        std::mem::take(&mut self.found)
    }

    fn add(&mut self, confirmed: Confirmed, (word, cause): (Word, Cause), count: u64) {
        let key = key(&self.lines, &confirmed.first, &confirmed.second);
        self.known.insert(key);
        let place = *self.places.entry(key).or_insert(self.found.len());
        match self.found.get_mut(place) {
            Some(race) => race.count = race.count.saturating_add(count),
            None => self.found.push(Race { confirmed, word, cause, count }),
        }
    }
}

fn key(lines: &[u32], first: &Accessed, second: &Accessed) -> Key {
    let line = |site: Site| lines.get(site.as_u32() as usize).copied().unwrap_or_default();
    (line(first.site), line(second.site), second.reference, (first.writes, second.writes))
}

/// What is asked about an example: whether an access of its later invocation races. Its instruction may stand for
/// others, which have no check of their own.
pub(super) fn candidate(example: &check::Candidate) -> Candidate {
    let second = Filter { by: Some(example.second.invocation), ..Filter::default() };
    Candidate { word: word(example), first: Filter::default(), second }
}

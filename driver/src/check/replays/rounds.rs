//! The rounds of a dispatch's replays. A round decides about as many suspicions as one record has words for; what the
//! record had no memory for gets another round, with half as many suspicions.

use spelter_shaders::check::Candidates;

use super::{LineRace, Open, Races, Suspicion};
use crate::check::dispatch::DispatchRun;
use crate::check::guards::Guards;
use crate::check::log::Log;
use crate::check::record::{Interrupted, Record, Wanted};
use crate::check::slice::Undecided;
use crate::check::word_facts::LastWord;

/// Words that one replay records, at most: each needs a look-up for every access.
const MAX_WORDS: usize = 1 << 15;

/// What the replays of a dispatch observe, at most: another one begins only below.
const MAX_WORK: u64 = 1 << 26;

/// Replays that a dispatch may have whatever they observe.
const MIN_REPLAYS: u32 = 16;

/// The rounds of a dispatch.
pub(super) struct Rounds<'r, 'd> {
    dispatch: &'r DispatchRun<'d>,
    races: Races,
    /// What is not decided yet.
    left: Vec<Suspicion<'r>>,
    /// The most suspicions of the next round.
    max_suspicions: usize,
    /// How often the dispatch ran again, and what was observed.
    replays: u32,
    work: u64,
    interrupted: Option<Interrupted>,
}

impl<'r, 'd> Rounds<'r, 'd> {
    pub(super) fn new(dispatch: &'r DispatchRun<'d>, kinds: &'r [Candidates]) -> Self {
        let (races, left) = (Races::new(&dispatch.code.all().kernel), kinds.iter().map(Suspicion::new).collect());
        Self { dispatch, races, left, max_suspicions: kinds.len(), replays: 0, work: 0, interrupted: None }
    }

    /// Decides about all suspicions, as far as the bounds allow. Returns where the kernel was if the device stopped it
    /// when it ran again, unless it had stopped it before, too.
    pub(super) fn run(mut self) -> Option<Interrupted> {
        if self.dispatch.snapshot.is_none() {
            let why = "the dispatch could not run again: the copy of the memory that it may write exceeds the limit";
            self.give_up(why);
            return None;
        }
        while !self.left.is_empty() && self.may_replay() && self.round() {}
        let why = match self.interrupted {
            Some(_) => "the dispatch was stopped, and was not repeated to its end",
            None => "repeating the dispatch for each suspicion would take too long",
        };
        self.give_up(why);
        self.dispatch.warn_of_open_lines(&self.races);
        self.interrupted.filter(|_| self.dispatch.ended)
    }

    /// Whether another replay may begin.
    fn may_replay(&self) -> bool {
        let is_within = self.replays < MIN_REPLAYS || self.work < MAX_WORK;
        self.interrupted.is_none() && is_within && !self.dispatch.pass.is_over()
    }

    /// Decides about the first suspicions that are left. Returns false if the dispatch could not run again.
    fn round(&mut self) -> bool {
        let round = self.take_round();
        let wanted = Wanted::of_candidates(round.iter().flat_map(Suspicion::candidates));
        let Some(record) = self.dispatch.record(&wanted) else {
            self.put_back(round);
            return false;
        };
        self.count(&record);
        let undecided = self.decide(round, &record.log);
        let mut found = self.races.take();
        let with_atomics = self.record_atomics(&record, &mut found);
        self.report(&found, &with_atomics.as_ref().unwrap_or(&record).log);
        self.retry_or_warn(undecided);
        true
    }

    /// The first suspicions, whose words one record has room for; at least one.
    fn take_round(&mut self) -> Vec<Suspicion<'r>> {
        let mut words = 0;
        let fits = |suspicion: &&Suspicion<'_>| {
            words += suspicion.examples.len();
            words <= MAX_WORDS
        };
        let count = self.left.iter().take_while(fits).count().min(self.max_suspicions).max(1);
        let mut round: Vec<_> = self.left.drain(..count).collect();
        let mut room = MAX_WORDS.saturating_sub(round.iter().map(|suspicion| suspicion.examples.len()).sum());
        for suspicion in &mut round {
            match room.checked_sub(suspicion.later.len()) {
                Some(rest) => room = rest,
                None => suspicion.leave_out_later(),
            }
        }
        round
    }

    /// These come next.
    fn put_back(&mut self, mut suspicions: Vec<Suspicion<'r>>) {
        suspicions.append(&mut self.left);
        self.left = suspicions;
    }

    fn count(&mut self, record: &Record) {
        self.replays += 1;
        self.work += record.work;
        self.interrupted = record.interrupted;
    }

    /// Asks the axioms about the suspicions of a round. Returns each with what stays undecided.
    fn decide(&mut self, round: Vec<Suspicion<'r>>, log: &Log) -> Vec<(Suspicion<'r>, Vec<Open<'r>>)> {
        let checker = &self.dispatch.code.checker;
        // A word may have millions of accesses: these facts are dropped before another record follows.
        let (mut undecided, mut last) = (Vec::new(), LastWord::default());
        let pass = &self.dispatch.pass;
        for mut suspicion in round {
            let was_confirmed = suspicion.is_confirmed;
            let open = self.races.decide((log, &mut last), &mut suspicion, &|| pass.is_late());
            match (was_confirmed, suspicion.is_confirmed) {
                (false, true) => checker.count(|counts| counts.confirmed += 1),
                (false, false) if open.is_empty() && !suspicion.has_rest() => checker.count(|counts| {
                    counts.refuted += 1;
                    counts.refuted_in_part += u64::from(suspicion.is_a_part());
                }),
                _ => {}
            }
            undecided.push((suspicion, open));
        }
        undecided
    }

    /// Records the races that were found again, with all atomics, if the record is whole and lacks some. Returns that
    /// record.
    fn record_atomics(&mut self, record: &Record, found: &mut [LineRace]) -> Option<Record> {
        let is_whole = self.interrupted.is_none() && record.log.stopped.is_none();
        if !is_whole || found.is_empty() || record.log.has_all_atomics() {
            return None;
        }
        let with_atomics = self.dispatch.with_atomics(found, &mut self.races.budget);
        match &with_atomics {
            Some(record) => self.count(record),
            None => self.replays += 1,
        }
        with_atomics
    }

    /// Reports races, each with the flags that guard its memory.
    fn report(&self, found: &[LineRace], log: &Log) {
        let dispatch = self.dispatch;
        let guards = Guards::new(log, found.iter().map(|race| &race.confirmed));
        for LineRace { confirmed, cause, count, kinds, .. } in found {
            let error = dispatch.race(confirmed, (*cause, (*count).max(1)), &|| dispatch.flags(&guards, confirmed));
            kinds.iter().for_each(|kind| dispatch.code.settled.confirmed(kind, &error));
        }
    }

    /// Warns of what a round leaves undecided, or puts it back for a smaller round. All races of the record are known.
    fn retry_or_warn(&mut self, undecided: Vec<(Suspicion<'r>, Vec<Open<'r>>)>) {
        let (count, mut again, mut rests) = (undecided.len(), Vec::new(), Vec::new());
        for (mut suspicion, mut open) in undecided {
            if !suspicion.is_confirmed && open.is_empty() && suspicion.has_rest() {
                suspicion.go_on_with_rest();
                rests.push(suspicion);
                continue;
            }
            open.retain(|open| {
                !suspicion.is_confirmed || !self.dispatch.is_known(&self.races, open.example, open.pair)
            });
            // With fewer words there may be room for all that happens.
            if count > 1 && open.iter().any(|open| open.why == Undecided::Memory) {
                suspicion.examples = open.iter().map(|open| open.example).collect();
                suspicion.leave_out_later();
                again.push(suspicion);
            } else {
                let open = open.iter().map(|open| (open.example, open.why.to_string(), open.pair));
                self.dispatch.warn(&suspicion, open);
                self.dispatch.warn_of_left_out(&mut self.races, &suspicion);
            }
        }
        if !again.is_empty() {
            self.max_suspicions = count / 2;
        }
        self.put_back(again);
        self.left.append(&mut rests);
    }

    /// Warns of all that is left.
    fn give_up(&mut self, why: &str) {
        for suspicion in &self.left {
            if suspicion.is_of_rest {
                self.dispatch.code.checker.count(|counts| {
                    counts.refuted += 1;
                    counts.refuted_in_part += 1;
                });
                continue;
            }
            self.dispatch.give_up(&self.races, suspicion, why);
            self.dispatch.warn_of_left_out(&mut self.races, suspicion);
        }
    }
}

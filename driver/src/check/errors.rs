//! Reports the errors of a dispatch: barriers that not all invocations reach, and races that the axioms confirmed, with
//! their repairs.

use spelter_shaders::check::observer::Invocation;
use spelter_shaders::check::{Cause, Detector};
use spelter_shaders::front::Language;
use spelter_shaders::ir::{Site, SiteData};

use super::confirm::{Confirmed, Update};
use super::dispatch::DispatchRun;
use super::explanation;
use super::finding::{Finding, FoundAccess, Hazard, Repair, Rule, Severity};
use super::found_memory::FoundPlace;
use super::record::Interrupted;
use super::repair::{self, Flag, RaceAccesses, Repairs};
use super::slice::Slice;
use super::update::UpdatedMemory;

impl DispatchRun<'_> {
    /// Reports what the detector found, and what the axioms say to it. Says where the kernel was if the device stopped
    /// it when it ran again.
    pub(super) fn report(&self, detector: &Detector) -> Option<Interrupted> {
        for barrier in detector.barriers() {
            let (other, site) = barrier.other;
            let first = site.map(|site| self.access(site, other));
            let second = self.access(barrier.site, barrier.waits);
            let early = self.code.early_return(barrier.site).filter(|_| first.is_none());
            let reason = match &first {
                Some(_) => "invocations of its scope wait at another barrier at the same time".to_owned(),
                None => {
                    let ended = self.access(barrier.site, other).invocation.map(|invocation| invocation.local);
                    let [x, y, z] = ended.unwrap_or([other.local, 0, 0]);
                    let early = early.map(|line| format!("; a return before the barrier is at {line}"));
                    format!("invocation ({x}, {y}, {z}) of its scope had ended{}", early.unwrap_or_default())
                }
            };
            let found = self.found(Rule::Barrier, Severity::Error, None, (first, second), vec![reason], 1);
            if self.code.checker.knows(&found) {
                self.code.checker.report_again(found);
                continue;
            }
            let seeks = self.code.checker.options.repairs;
            let moved = seeks.then(|| self.moved_barrier(barrier)).flatten();
            let repair =
                moved.unwrap_or_else(|| explanation::of_divergence(found.first.as_ref(), &found.second, early));
            self.code.checker.report(Finding { repairs: vec![repair], ..found });
        }
        let kinds = detector.candidates();
        let given_up = detector.given_up();
        self.code.checker.count(|counts| {
            counts.suspicions += kinds.len() as u64;
            counts.accesses_not_checked += given_up.accesses;
            counts.findings_dropped += given_up.candidates + given_up.barriers;
            counts.epochs_used_up += given_up.eras;
            counts.records_forgotten += given_up.records;
        });
        let mut interrupted = None;
        if !kinds.is_empty() {
            self.code.checker.progress.confirm(kinds.len());
            if !self.code.settled.has_all(kinds, &self.code.checker) {
                self.code.checker.count(|counts| counts.dispatches_repeated += 1);
                let before = self.code.checker.open_ends();
                interrupted = self.decide_all(kinds);
                self.combine();
                self.code.settled.examined(before == self.code.checker.open_ends());
            }
        }
        if self.ended && interrupted.is_none() {
            interrupted = self.note(detector.notes());
        }
        interrupted
    }

    /// Reports a race that the axioms confirmed. Returns the error, without repairs.
    pub(super) fn race<'r>(
        &self,
        confirmed: &Confirmed,
        (cause, count): (Cause, u64),
        flags: &dyn Fn() -> Option<(Vec<Flag>, Option<&'r Confirmed>)>,
    ) -> Finding {
        let slice = &confirmed.slice;
        let writes = |accessed: usize| slice.trace.operation(accessed).writes();
        let hazard = match (writes(slice.pair.0), writes(slice.pair.1)) {
            (true, true) => Hazard::WriteAfterWrite,
            (true, false) => Hazard::ReadAfterWrite,
            (false, _) => Hazard::WriteAfterRead,
        };
        let memory = self.common(confirmed);
        let described = self.describe(slice, &memory);
        let names = described.names();
        let pair = (&described.accesses[slice.pair.0], &described.accesses[slice.pair.1]);
        let (rule, severity) = (Rule::Race(hazard), Severity::Error);
        let race = Finding {
            rule,
            severity,
            memory: Some(memory),
            first: Some(pair.0.clone()),
            second: pair.1.clone(),
            dispatch: None,
            between: Vec::new(),
            reasons: vec![names.reason(slice).unwrap_or_else(|| explanation::of_cause(cause).to_owned())],
            repairs: Vec::new(),
            count,
            schedule: self.workgroups.schedule(),
            group: None,
            replay: names.replay(slice),
        };
        if self.code.checker.knows(&race) || !self.code.checker.options.repairs {
            self.code.checker.report_again(race.clone());
            return race;
        }
        let may_be = names.may_be_atomic(slice);
        let pairs = [pair.0, pair.1];
        let update = confirmed.updates.filter(|_| may_be);
        let place = race.memory.as_ref().map(|memory| &memory.place);
        let update = update.and_then(|updates| Some((self.update(updates, confirmed.second.by, place)?, updates)));
        let update = update.or_else(|| self.conditional(slice, pair, place).filter(|_| may_be));
        let found = match (update, explanation::between_workgroups(described.language, pair)) {
            // With a lock, say, that does not order what it protects.
            (Some((repair, updates)), advice) if names.has_atomics(slice) && described.language != Language::Wgsl => {
                let race = RaceAccesses { pair: pairs, updates: Some(updates), in_update: false };
                let mut found = self.repairs(slice, &described, race, flags);
                found.repairs.extend(advice);
                found.repairs.push(repair);
                found
            }
            // A barrier orders more than an atomic operation does.
            (Some((repair, updates)), _) => {
                let mut found = self.barrier(slice, &described, (pairs, updates));
                found.repairs.push(repair);
                found
            }
            (None, Some(repair)) if described.language == Language::Wgsl => {
                // A flag that is read, too, is about other memory, which atomics of WGSL do not order.
                let sets = hazard == Hazard::WriteAfterWrite;
                let atomics = sets.then(|| self.as_atomics(slice, &described)).flatten().map(|(repair, _)| repair);
                Repairs { repairs: atomics.into_iter().chain([repair]).collect(), ..Repairs::default() }
            }
            (None, advice) => {
                let of_update = self.update_of_statement(slice, pair, place).filter(|_| may_be);
                let race = RaceAccesses { pair: pairs, updates: None, in_update: of_update.is_some() };
                let mut found = self.repairs(slice, &described, race, flags);
                found.repairs.extend(advice);
                if found.repairs.is_empty() {
                    found.repairs.extend(of_update);
                }
                found
            }
        };
        let mut found = found.explained(self.obstacle());
        self.keep_repaired(&race, slice, &mut found);
        let reasons = race.reasons.iter().cloned().chain(found.reasons).collect();
        self.code.checker.report(Finding { reasons, repairs: found.repairs, ..race.clone() });
        race
    }

    /// What an instruction updates at a place.
    fn updated(&self, write: &SiteData, place: Option<&FoundPlace>) -> UpdatedMemory {
        let (names, kernel) = (&self.code.names.names, self.code.kernel());
        let roots = place.map(|place| names.roots(place)).unwrap_or_default();
        let updated = repair::updated(kernel, write);
        UpdatedMemory { language: names.language(), updated, names: roots, functions: &[] }
    }

    /// The repair of an update in one statement or two, or by a condition, that races with another invocation's.
    fn update(&self, updates: [Update; 2], later: Invocation, place: Option<&FoundPlace>) -> Option<Repair> {
        let kernel = &self.code.needed.kernel;
        let line = |site: Site| kernel.line_of_word(kernel.sites[site].word).map(|line| (&line.file, line.line));
        let Update { read, write } = updates[0];
        let lines = (line(read), line(write));
        if updates.iter().any(|update| (line(update.read), line(update.write)) != lines) {
            return None;
        }
        let access = self.access(write, later);
        let words = updates.map(|update| [update.read, update.write].map(|site| kernel.sites[site].word));
        let (are_alike, sites) = (words[0] == words[1], [read, write].map(|site| &kernel.sites[site]));
        let is_stored_back = || are_alike && repair::is_stored_back(self.code.kernel(), sites);
        let functions = if are_alike { repair::functions(self.code.kernel(), sites) } else { &[] };
        let updated = UpdatedMemory { functions, ..self.updated(sites[1], place) };
        match lines {
            (Some(reads), Some(writes)) if reads == writes => Some(updated.repair(&access)),
            (Some(_), Some(_)) => {
                let read = self.access(read, later);
                let of_two = || is_stored_back().then(|| updated.of_two_statements(&access, &read));
                updated.conditional(&access, &read).or_else(of_two)
            }
            // Without lines the instructions tell.
            (None, None) if is_stored_back() => Some(updated.repair(&access)),
            _ => None,
        }
    }

    /// The repair of a race of the write of an update with a read in its statement that is not the one that it pairs
    /// with: `d[0] += d[i]` reads `d` twice.
    fn update_of_statement(
        &self,
        slice: &Slice,
        (first, second): (&FoundAccess, &FoundAccess),
        place: Option<&FoundPlace>,
    ) -> Option<Repair> {
        let writes = |event: usize| slice.trace.operation(event).writes();
        let (write, read, event) = match (writes(slice.pair.0), writes(slice.pair.1)) {
            (true, false) => (first, second, slice.pair.0),
            (false, true) => (second, first, slice.pair.1),
            _ => return None,
        };
        let site = &self.code.all().kernel.sites[slice.events[event].site];
        self.updated(site, place).beside_read(write, read)
    }

    /// The repair of a race of the read of a condition with the write that it decides about, which not each invocation
    /// executes; and the two instructions.
    fn conditional(
        &self,
        slice: &Slice,
        (first, second): (&FoundAccess, &FoundAccess),
        place: Option<&FoundPlace>,
    ) -> Option<(Repair, [Update; 2])> {
        let writes = |event: usize| slice.trace.operation(event).writes();
        let [one, other] = [slice.pair.0, slice.pair.1].map(|event| slice.events[event].site);
        let (read, write, sites) = match (writes(slice.pair.0), writes(slice.pair.1)) {
            (true, false) => (second, first, Update { read: other, write: one }),
            (false, true) => (first, second, Update { read: one, write: other }),
            _ => return None,
        };
        let updated = self.updated(&self.code.all().kernel.sites[sites.write], place);
        let repair = updated.conditional(write, read)?;
        Some((repair, [sites; 2]))
    }
}

//! Trials of repairs: the dispatch runs again with the changed kernel, under the detector and the axioms, with the
//! profile of the finding. For a race in a workgroup that one comes first, and then all of them. What atomics order
//! runs in the opposite order of invocations, too: they may have synchronized by chance.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check::observer::Observer;
use spelter_shaders::check::{Candidates, Detector, Limits, Relation};
use spelter_shaders::compile::{self, Backend, Checked, Checks};
use spelter_shaders::host::Host;
use spelter_shaders::ir::{Kernel, Site, SiteAction, SiteData};
use spelter_shaders::schedule::Schedule;

use super::budget::Budget;
use super::change::is_inserted;
use super::compare::{Unchanged, known};
use super::kept::{RunPart, TrialRun};
use crate::check::bounded::Bounded;
use crate::check::confirm::{AccessFilter, Candidate, VerdictBudget, is_race};
use crate::check::dispatch::DispatchRun;
use crate::check::log::{Log, Word, word};
use crate::check::replays::MAX_LATER;
use crate::check::slice::Undecided;

/// Kinds of suspicions of a trial, and examples of each. The kind does not say what the earlier instruction is, and
/// most examples may be of others than the one of the race.
const MAX_KINDS: usize = 256;
const MAX_EXAMPLES: usize = 4096;

/// Words of a kind that both instructions of a race access and that the axioms are asked about.
const MAX_ASKED: usize = 64;

/// Trials of whole dispatches for a finding, and trials of one workgroup.
const MAX_WHOLE: u32 = 8;
const MAX_OF_ONE: u32 = 64;

/// How much more than the kernel as it is a changed one may observe before it counts as one that waits forever: it has
/// more barriers, and the interpreter observes each lane where machine code observes a subgroup.
const MORE: u64 = 4;
const MORE_BY_LANE: u64 = 64;
const MIN_MORE_WORK: u64 = 1 << 16;

/// What a changed kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// The two instructions do not race.
    Silent,
    /// They do: the axioms say so of an execution.
    Races,
    /// It is not known: the kernel did not end, the axioms do not decide, or the trials have done all the work that
    /// they may do.
    Unknown,
    /// A new barrier is in control flow that not all invocations execute.
    Diverges,
}

/// Where a kernel runs: whether the workgroup of the race runs alone, and by which engine.
pub(super) type Setting = (bool, Backend);

/// The trials for a race of two instructions.
pub(super) struct Trials<'a> {
    pub(super) run: &'a DispatchRun<'a>,
    pair: [SiteData; 2],
    /// Whether a race of one of the two instructions with itself counts, too.
    pub(super) with_own: bool,
    workgroups: Workgroups,
    /// The workgroup of the race, if it runs alone.
    alone: Option<[u32; 3]>,
    left: u32,
    /// What the kernel as it is observes in that workgroup.
    work_alone: u64,
    /// Whether the pair races in the kernel as it is: each is found out once.
    occurs: Vec<(Setting, bool)>,
    pub(super) unchanged: Unchanged,
    /// In which workgroups of the whole dispatch barriers of the kernel as it is diverge, and by which engine.
    pub(super) divergent_unchanged: Option<(Backend, BTreeSet<u64>)>,
    /// Whether the inserted barriers may diverge where those of the kernel as it is do.
    may_diverge_as_before: bool,
    /// The barriers of the kernel that took part when the last changed kernel diverged.
    pub(super) divergent: Vec<SiteData>,
}

impl<'a> Trials<'a> {
    /// Of a race in one workgroup, that one runs alone if the race occurs then; `None` if the memory cannot be kept.
    pub(super) fn new(run: &'a DispatchRun<'a>, pair: [SiteData; 2], workgroup: Option<[u32; 3]>) -> Option<Self> {
        let mut trials = Self::of_all(run, pair)?;
        if let Some(id) = workgroup {
            let occurs = trials.begin_alone(id, |trials| trials.occurs_by(run.code.backend()));
            trials.keep_alone(occurs);
        }
        Some(trials)
    }

    /// Of a barrier that not all invocations of a workgroup reach: that one runs alone if they do not reach it then.
    pub(super) fn of_barrier(
        run: &'a DispatchRun<'a>,
        barrier: &SiteData,
        workgroup: Option<[u32; 3]>,
    ) -> Option<Self> {
        let mut trials = Self::of_all(run, [barrier.clone(), barrier.clone()])?;
        if let Some(id) = workgroup {
            let occurs = trials.begin_alone(id, |trials| {
                let found = trials.detect(run.code.kernel(), run.code.backend());
                found.is_some_and(|run| !run.barriers.is_empty())
            });
            trials.keep_alone(occurs);
        }
        Some(trials)
    }

    fn of_all(run: &'a DispatchRun<'a>, pair: [SiteData; 2]) -> Option<Self> {
        // The memory is changed by each trial. A dispatch that did not end by itself would not end in a trial.
        run.snapshot.filter(|_| run.ended && run.is_kept)?;
        Some(Self {
            run,
            pair,
            with_own: false,
            workgroups: run.workgroups.clone(),
            alone: None,
            left: MAX_WHOLE,
            work_alone: 0,
            occurs: Vec::new(),
            unchanged: Unchanged::default(),
            divergent_unchanged: None,
            may_diverge_as_before: false,
            divergent: Vec::new(),
        })
    }

    /// Runs a workgroup alone from now on; what the kernel as it is does then, and how much it observes.
    fn begin_alone(&mut self, id: [u32; 3], occurs: impl FnOnce(&mut Self) -> bool) -> bool {
        self.workgroups = Workgroups::one(id).scheduled(self.run.workgroups.schedule());
        self.alone = Some(id);
        let occurs = occurs(self);
        let (kernel, backend) = (self.run.code.kernel(), self.run.code.backend());
        let checked = self.code_of(kernel, backend);
        let known = checked.and_then(|checked| self.run.trial_runs.run((&checked, self.part()), || None));
        // It runs twice: its accesses are recorded, too.
        self.work_alone = known.map_or(0, |run| 2 * run.work + Budget::of_compiling(kernel.size()));
        occurs
    }

    fn keep_alone(&mut self, alone: bool) {
        if alone {
            self.left = MAX_OF_ONE;
        } else {
            self.workgroups = self.run.workgroups.clone();
            self.alone = None;
            self.left = MAX_WHOLE;
        }
    }

    /// Does something with the whole dispatch.
    pub(super) fn with_all<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let workgroups = std::mem::replace(&mut self.workgroups, self.run.workgroups.clone());
        let alone = self.alone.take();
        let done = act(self);
        (self.workgroups, self.alone) = (workgroups, alone);
        done
    }

    /// What a changed kernel does: in the workgroup of the race, if that runs alone, and then in the whole dispatch.
    pub(super) fn try_everywhere(&mut self, kernel: &Kernel) -> Tried {
        match self.run(kernel) {
            Tried::Silent => self.in_all(kernel),
            other => other,
        }
    }

    /// Whether the two instructions do not race anywhere in a changed kernel.
    pub(super) fn silences(&mut self, kernel: &Kernel) -> bool {
        self.try_everywhere(kernel) == Tried::Silent
    }

    /// What a changed kernel that was silent in the workgroup of the race does in the whole dispatch. In workgroups
    /// whose invocations do not all reach the barriers that are there, they need not all reach new ones: these are
    /// other errors.
    pub(super) fn in_all(&mut self, kernel: &Kernel) -> Tried {
        if !self.is_alone() {
            return Tried::Silent;
        }
        self.may_diverge_as_before = true;
        let tried = self.with_all(|trials| trials.run(kernel));
        self.may_diverge_as_before = false;
        tried
    }

    /// Whether a changed kernel that was silent races in the opposite order of workgroups, subgroups and lanes. If it
    /// does not end in that order, as invocations wait for those that have not begun, nothing speaks against it.
    pub(super) fn races_in_opposite_order(&mut self, kernel: &Kernel) -> bool {
        if self.run.trial_runs.waits() {
            return false;
        }
        let opposite = match self.run.workgroups.schedule() {
            Schedule::Reverse => Schedule::Ascending,
            Schedule::Ascending | Schedule::Random(_) => Schedule::Reverse,
        };
        let opposite = self.workgroups.clone().scheduled(opposite);
        let own = std::mem::replace(&mut self.workgroups, opposite);
        // It belongs to the trial before it, which counts.
        self.left += 1;
        // Subgroups and lanes have an order of their own only in such code.
        let kernel = Kernel { takes_schedule: true, ..kernel.clone() };
        let tried = self.run_by(&kernel, self.run.code.backend());
        self.workgroups = own;
        tried.is_some_and(|(tried, _)| tried == Tried::Races)
    }

    /// What runs.
    fn part(&self) -> RunPart {
        RunPart { alone: self.alone, schedule: self.workgroups.schedule() }
    }

    /// Whether the workgroup of the race runs alone.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// The code of a kernel; `None` if there is too little work left to compile it.
    pub(super) fn code_of(&self, kernel: &Kernel, backend: Backend) -> Option<Arc<Checked>> {
        let code = self.run.code;
        if std::ptr::eq(kernel, code.kernel()) && backend == code.backend() {
            return Some(Arc::clone(code.all_shared()));
        }
        if let Some(known) = code.trial_kernels.find(kernel, backend) {
            return Some(known);
        }
        let compile = || compile::compile_checked(kernel, backend, Checks::All);
        code.trials.compile(kernel.size()).then(|| code.trial_kernels.keep(kernel, backend, compile()))
    }

    /// Runs a kernel under the detector; `None` if it does not end, or not all of it is known.
    pub(super) fn detect(&mut self, kernel: &Kernel, backend: Backend) -> Option<Rc<TrialRun>> {
        self.left = self.left.checked_sub(1)?;
        let (code, options) = (self.run.code, &self.run.code.checker.options);
        let checked = self.code_of(kernel, backend)?;
        let is_changed = !std::ptr::eq(kernel, code.kernel());
        self.run.trial_runs.run((&checked, self.part()), || {
            let limits =
                Limits { bytes: options.memory, kinds: MAX_KINDS, examples: MAX_EXAMPLES, ..Limits::default() };
            let mut detector = Detector::new(&checked.kernel.sites, code.launch(), options.profile, limits);
            let ended = self.observe(&checked, &mut detector)?;
            let given_up = detector.given_up();
            if is_changed && given_up.candidates + given_up.examples > 0 {
                self.run.trial_runs.overflowed();
            }
            Some(TrialRun::new(Arc::clone(&checked), self.part(), &detector, ended))
        })
    }

    /// Runs a changed kernel.
    ///
    /// A kernel with a barrier that may be in divergent control flow has no machine code: the interpreter runs it, now
    /// and when the user has changed it so. The interpreter interleaves invocations in another way, so that nothing
    /// races there means something only if the pair races there without the change. That it does race needs no such
    /// evidence: the axioms speak about the execution that they are given.
    pub(super) fn run(&mut self, kernel: &Kernel) -> Tried {
        let own = self.run.code.backend();
        match self.run_by(kernel, own) {
            Some((Tried::Silent, backend)) if backend != own => {
                let divergent = std::mem::take(&mut self.divergent);
                let occurs = self.occurs_by(backend);
                self.divergent = divergent;
                if occurs { Tried::Silent } else { Tried::Unknown }
            }
            Some((tried, _)) => tried,
            None => Tried::Unknown,
        }
    }

    /// Whether the pair races in the kernel as it is.
    fn occurs_by(&mut self, backend: Backend) -> bool {
        let setting = (self.is_alone(), backend);
        known(&self.occurs, setting).unwrap_or_else(|| {
            let with_own = std::mem::take(&mut self.with_own);
            let occurs = self.run_by(self.run.code.kernel(), backend).is_some_and(|(tried, _)| tried == Tried::Races);
            self.with_own = with_own;
            self.occurs.push((setting, occurs));
            occurs
        })
    }

    /// What a kernel does, and by which engine; `None` if it does not end.
    fn run_by(&mut self, kernel: &Kernel, backend: Backend) -> Option<(Tried, Backend)> {
        let run = self.detect(kernel, backend)?;
        let (sites, backend) = (&run.checked.kernel.sites, run.checked.backend);
        let is_new = |site: Site| is_inserted(sites[site].word);
        self.divergent.clear();
        for found in &run.barriers {
            let both = [Some(found.site), found.other.1].into_iter().flatten();
            for site in both.filter(|site| !is_new(*site)) {
                if !self.divergent.iter().any(|known| same(known, &sites[site])) {
                    self.divergent.push(sites[site].clone());
                }
            }
        }
        if diverges(&run) && !(self.may_diverge_as_before && self.diverges_as_before(&run.checked)) {
            return Some((Tried::Diverges, backend));
        }
        let kinds: Vec<(&Candidates, Vec<(Site, Site)>)> = run
            .candidates
            .iter()
            .map(|kind| (kind, self.pairs(&run.checked, kind)))
            .filter(|(kind, pairs)| !kind.examples.is_empty() && !pairs.is_empty())
            .collect();
        if kinds.is_empty() {
            return Some((Tried::Silent, backend));
        }
        let room = (MAX_EXAMPLES / kinds.len()).max(1);
        let words_of = |kind: &Candidates| -> BTreeSet<Word> {
            everywhere(&kind.examples, room).chain(everywhere(&kind.later, MAX_LATER)).map(word).collect()
        };
        let log = &*self.record(&run, kinds.iter().flat_map(|(kind, _)| words_of(kind)).collect())?;
        // Of each kind: two workgroups may race in a few words beside thousands that one workgroup accesses.
        let of_kind = |(kind, pairs): &(&Candidates, Vec<(Site, Site)>)| -> Vec<Candidate> {
            let words = words_of(kind);
            let all = words.iter().flat_map(|&word| pairs.iter().filter_map(move |&pair| asked(log, word, pair)));
            let all: Vec<Candidate> = all.collect();
            everywhere(&all, MAX_ASKED).copied().collect()
        };
        // The axioms' work is work of the trials, too.
        let work = self.run.code.trials.left();
        let mut budget = VerdictBudget::within(work);
        let asked: Vec<Vec<Candidate>> = kinds.iter().map(of_kind).collect();
        let all = asked.iter().flatten();
        let tried = judged(all.map(|candidate| is_race(log, candidate, &mut budget)));
        self.run.code.trials.spend(budget.spent(work));
        // Those that are not among the examples may be of the two instructions.
        let is_unknown = |(kind, asked): (&(&Candidates, Vec<_>), &Vec<Candidate>)| {
            asked.is_empty() && kind.0.count > MAX_EXAMPLES as u64
        };
        let is_known = tried != Tried::Silent || !kinds.iter().zip(&asked).any(is_unknown);
        Some((if is_known { tried } else { Tried::Unknown }, backend))
    }

    /// The pairs of sites, in the order of a suspicion, that are the two instructions of the race.
    fn pairs(&self, checked: &Checked, kind: &Candidates) -> Vec<(Site, Site)> {
        let (sites, second) = (&checked.kernel.sites, kind.kind.site);
        let writes = |site: &SiteData| match site.action {
            SiteAction::Write(_) => true,
            SiteAction::Atomic { op, .. } => !op.is_load(),
            _ => false,
        };
        let of = |one: usize| same(&self.pair[one], &sites[second]);
        let other = |one: usize| of(one).then(|| &self.pair[1 - one]);
        let own = |one: usize| (self.with_own && of(one)).then(|| &self.pair[one]);
        let others: Vec<_> = [other(0), other(1), own(0), own(1)].into_iter().flatten().collect();
        if others.is_empty() {
            return Vec::new();
        }
        let fits = |first: &Site| {
            let relation = match (writes(&sites[*first]), writes(&sites[second])) {
                (true, true) => Relation::Waw,
                (true, false) => Relation::Raw,
                (false, _) => Relation::War,
            };
            relation == kind.kind.relation && others.iter().any(|other| same(other, &sites[*first]))
        };
        sites.keys().filter(fits).map(|first| (first, second)).collect()
    }

    /// The accesses of a run to some words.
    pub(super) fn record(&self, run: &TrialRun, words: BTreeSet<Word>) -> Option<Rc<Log>> {
        run.record(words, |words| {
            let mut recorder = self.run.recorder(&run.checked, words.iter().copied(), false);
            (self.observe(&run.checked, &mut recorder)?.0 == Outcome::Done).then(|| recorder.finish())
        })
    }

    /// Runs the dispatch, or its workgroup, with the memory that it began with. Says how much was observed, too.
    pub(super) fn observe(&self, checked: &Checked, observer: &mut dyn Observer) -> Option<(Outcome, u64)> {
        self.run.snapshot?.restore();
        self.run.is_changed.set(true);
        let mut scratch = Scratch { host: Host { printer: None, ..Host::default() }, ..Scratch::default() };
        let stop = AtomicU32::new(0);
        let (all, device) = (&self.run.code.trials, self.run.args.stop);
        let limit = self.limit(checked.backend).min(all.left());
        let budget = Budget::new(limit);
        let mut bounded = Bounded { observer, limit: &budget, stop: &stop, device };
        let args = DispatchArgs { stop: &stop, ..*self.run.args };
        let outcome = checked.code.run_observed(&args, self.workgroups.clone(), &mut scratch, &mut bounded);
        let work = limit - budget.left();
        all.spend(work);
        if outcome != Outcome::Done && self.workgroups.schedule() != self.run.workgroups.schedule() {
            self.run.trial_runs.waited();
        }
        Some((outcome, work))
    }

    /// What a kernel may observe: one that waits forever does not take the work of all other trials.
    fn limit(&self, backend: Backend) -> u64 {
        let work = if self.is_alone() { self.work_alone } else { self.run.observed.get() };
        let more = if backend == self.run.code.backend() { MORE } else { MORE_BY_LANE };
        match work {
            0 => self.run.code.trials.left() / 2,
            work => work.saturating_mul(more).max(MIN_MORE_WORK),
        }
    }
}

/// Whether not all invocations execute an inserted barrier.
pub(super) fn diverges(run: &TrialRun) -> bool {
    let is_new = |site: Site| is_inserted(run.checked.kernel.sites[site].word);
    run.barriers.iter().any(|found| is_new(found.site) || found.other.1.is_some_and(is_new))
}

/// All of a list, or this many from everywhere in it.
fn everywhere<T>(list: &[T], most: usize) -> impl Iterator<Item = &T> {
    list.iter().step_by(list.len().div_ceil(most).max(1))
}

/// The question whether two instructions race in a word, if both access it.
fn asked(log: &Log, word: Word, (first, second): (Site, Site)) -> Option<Candidate> {
    let has = |site: Site| log.words.get(&word).is_some_and(|all| all.iter().any(|at| log.accessed(*at).site == site));
    let filter = |site: Site| AccessFilter { site: Some(site), ..AccessFilter::default() };
    (has(first) && has(second)).then(|| Candidate { word, first: filter(first), second: filter(second) })
}

/// What the verdicts about the suspicions of a trial say together.
fn judged(verdicts: impl Iterator<Item = Result<bool, Undecided>>) -> Tried {
    let mut tried = Tried::Silent;
    for verdict in verdicts {
        match verdict {
            Ok(true) => return Tried::Races,
            Ok(false) | Err(Undecided::NotReproduced) => {}
            Err(_) => tried = Tried::Unknown,
        }
    }
    tried
}

/// Whether two sites are one instruction of the module.
fn same(one: &SiteData, other: &SiteData) -> bool {
    (one.word, &one.inlined_at) == (other.word, &other.inlined_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_axioms_cannot_decide_is_no_race() {
        let judge = |verdicts: &[Result<bool, Undecided>]| judged(verdicts.iter().copied());
        assert_eq!(judge(&[Ok(false), Err(Undecided::NotReproduced)]), Tried::Silent);
        for why in [Undecided::TooLarge, Undecided::TooManyPairs, Undecided::Stopped, Undecided::Memory] {
            assert_eq!(judge(&[Err(why), Ok(false)]), Tried::Unknown, "{why}");
            assert_eq!(judge(&[Err(why), Ok(true)]), Tried::Races, "{why}");
        }
    }
}

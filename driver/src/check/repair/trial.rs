//! Trials of repairs: the dispatch runs again with the changed kernel, under the detector and the axioms, with the
//! profile of the finding. For a race in a workgroup that one comes first, and then all of them.

use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check::observer::Observer;
use spelter_shaders::check::{Candidates, Detector, Limits, NonUniformBarrier, Relation};
use spelter_shaders::compile::{self, Checked, Checks};
use spelter_shaders::host::Host;
use spelter_shaders::ir::{Kernel, Site, SiteAction, SiteData};

use super::bounded::Bounded;
use super::change::is_inserted;
use crate::check::checker::EXAMPLES;
use crate::check::confirm::{Candidate, Filter, Verdict, confirm};
use crate::check::dispatch::{DispatchRun, word};
use crate::check::slice::Undecided;
use crate::check::snapshot::Snapshot;

/// Kinds of suspicions of a trial.
const MAX_KINDS: usize = 256;

/// Suspicions that a trial looks at: more, and the repair is not verified.
const MAX_EXAMPLES: usize = 64;

/// Trials of whole dispatches for a finding, and trials of one workgroup.
const MAX_WHOLE: u32 = 8;
const MAX_OF_ONE: u32 = 64;

/// What a changed kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// The two instructions do not race.
    Silent,
    /// They do.
    Races,
    /// It is not known: the kernel did not end, or the trials have done all the work that they may do.
    Unknown,
    /// A new barrier is in control flow that not all invocations execute.
    Diverges,
}

/// The trials for a race of two instructions.
pub(super) struct Trials<'a> {
    run: &'a DispatchRun<'a>,
    pair: [SiteData; 2],
    workgroups: Workgroups,
    /// Whether the workgroup of the race runs alone.
    alone: bool,
    left: u32,
    /// The barriers of the kernel that took part when the last changed kernel diverged.
    pub(super) divergent: Vec<SiteData>,
    /// The memory after the dispatch.
    after: Snapshot,
}

impl<'a> Trials<'a> {
    /// Of a race in one workgroup, that one runs alone if the race occurs then; `None` if the memory cannot be kept.
    pub(super) fn new(run: &'a DispatchRun<'a>, pair: [SiteData; 2], workgroup: Option<[u32; 3]>) -> Option<Self> {
        // A dispatch that did not end by itself would not end in a trial.
        run.snapshot.filter(|_| run.ended)?;
        let mut after = Snapshot::default();
        if !after.take(run.code.written(run.args), run.code.checker.options.replay_memory) {
            return None;
        }
        let workgroups = run.workgroups.clone();
        let divergent = Vec::new();
        let mut trials = Self { run, pair, workgroups, alone: false, left: MAX_WHOLE, divergent, after };
        if let Some(id) = workgroup {
            trials.workgroups = Workgroups::one(id).scheduled(run.workgroups.schedule());
            trials.alone = true;
            if trials.run(run.code.kernel()) == Tried::Races {
                trials.left = MAX_OF_ONE;
            } else {
                trials.workgroups = run.workgroups.clone();
                trials.alone = false;
                trials.left = MAX_WHOLE;
            }
        }
        Some(trials)
    }

    /// What a changed kernel that was silent in the workgroup of the race does in the whole dispatch.
    pub(super) fn in_all(&mut self, kernel: &Kernel) -> Tried {
        if !self.alone {
            return Tried::Silent;
        }
        let alone = std::mem::replace(&mut self.workgroups, self.run.workgroups.clone());
        let tried = self.run(kernel);
        self.workgroups = alone;
        tried
    }

    /// Runs a changed kernel under the detector; `None` if it does not end, or not all of it is known.
    fn detect(&mut self, kernel: &Kernel) -> Option<(Checked, Detector)> {
        self.left = self.left.checked_sub(1)?;
        let (code, options) = (self.run.code, &self.run.code.checker.options);
        if !code.trials.compile(kernel.size()) {
            return None;
        }
        let checked = compile::compile_checked(kernel, code.backend(), Checks::All);
        let limits = Limits { bytes: options.memory, kinds: MAX_KINDS, examples: EXAMPLES };
        let mut detector = Detector::new(&checked.kernel.sites, code.launch(), options.profile, limits);
        if self.observe(&checked, &mut detector) != Some(Outcome::Done) {
            return None;
        }
        // What the detector gave up may race.
        let given_up = detector.given_up();
        (given_up.accesses + given_up.eras + given_up.candidates == 0).then_some((checked, detector))
    }

    /// Whether all invocations execute the new barriers of a kernel, and nothing else is suspected than before:
    /// `known` are instructions and how the accesses depend on earlier ones.
    pub(super) fn converges(&mut self, kernel: &Kernel, known: &[(u32, Relation)]) -> bool {
        self.detect(kernel).is_some_and(|(checked, detector)| {
            let kind = |found: &Candidates| (checked.kernel.sites[found.kind.site].word, found.kind.relation);
            let is_new = |site: Site| is_inserted(checked.kernel.sites[site].word);
            let diverges = |found: &NonUniformBarrier| is_new(found.site) || found.other.1.is_some_and(is_new);
            !detector.barriers().iter().any(diverges)
                && detector.candidates().iter().all(|found| known.contains(&kind(found)))
        })
    }

    /// Whether nothing is suspected of a changed kernel that is not suspected of the kernel itself: what it takes away
    /// may have ordered other accesses.
    pub(super) fn adds_nothing(&mut self, changed: &Kernel) -> bool {
        let Some((checked, detector)) = self.detect(self.run.code.kernel()) else { return false };
        let of = |found: &Candidates| (checked.kernel.sites[found.kind.site].word, found.kind.relation);
        let known: Vec<_> = detector.candidates().iter().map(of).collect();
        self.converges(changed, &known)
    }

    /// Runs a changed kernel.
    pub(super) fn run(&mut self, kernel: &Kernel) -> Tried {
        let Some((checked, detector)) = self.detect(kernel) else { return Tried::Unknown };
        let (run, sites) = (self.run, &checked.kernel.sites);
        let is_new = |site: Site| is_inserted(sites[site].word);
        self.divergent.clear();
        let mut diverges = false;
        for found in detector.barriers() {
            let both = [Some(found.site), found.other.1].into_iter().flatten();
            diverges |= both.clone().any(is_new);
            for site in both.filter(|site| !is_new(*site)) {
                if !self.divergent.iter().any(|known| same(known, &sites[site])) {
                    self.divergent.push(sites[site].clone());
                }
            }
        }
        if diverges {
            return Tried::Diverges;
        }
        // Pairs of sites in the order of a suspicion, of which the later one is known.
        let writes = |site: &SiteData| match site.action {
            SiteAction::Write(_) => true,
            SiteAction::Atomic { op, .. } => !op.is_load(),
            _ => false,
        };
        let pairs = |kind: &Candidates| -> Vec<(Site, Site)> {
            let second = kind.kind.site;
            let other = |one: usize| same(&self.pair[one], &sites[second]).then(|| &self.pair[1 - one]);
            let others: Vec<_> = [other(0), other(1)].into_iter().flatten().collect();
            let fits = |first: &Site| {
                let relation = match (writes(&sites[*first]), writes(&sites[second])) {
                    (true, true) => Relation::Waw,
                    (true, false) => Relation::Raw,
                    (false, _) => Relation::War,
                };
                relation == kind.kind.relation && others.iter().any(|other| same(other, &sites[*first]))
            };
            sites.keys().filter(fits).map(|first| (first, second)).collect()
        };
        let kinds: Vec<Candidates> =
            detector.candidates().iter().filter(|kind| !pairs(kind).is_empty()).cloned().collect();
        if kinds.is_empty() {
            return Tried::Silent;
        }
        if kinds.iter().map(|kind| kind.examples.len()).sum::<usize>() > MAX_EXAMPLES {
            return Tried::Unknown;
        }
        let words = kinds.iter().flat_map(|kind| &kind.examples).map(word);
        let mut recorder = run.recorder(&checked, words, false);
        if self.observe(&checked, &mut recorder) != Some(Outcome::Done) {
            return Tried::Unknown;
        }
        let log = recorder.finish();
        let races = kinds.iter().any(|kind| {
            let pairs = pairs(kind);
            kind.examples.iter().flat_map(|example| pairs.iter().map(move |pair| (example, pair))).any(
                |(example, pair)| {
                    let first = Filter { site: Some(pair.0), ..Filter::default() };
                    let second = Filter { site: Some(pair.1), ..Filter::default() };
                    let candidate = Candidate { word: word(example), first, second };
                    !matches!(
                        confirm(&log, &candidate),
                        Verdict::Refuted | Verdict::Undecided(Undecided::NotReproduced)
                    )
                },
            )
        });
        if races { Tried::Races } else { Tried::Silent }
    }

    /// Runs the dispatch, or its workgroup, with the memory that it began with.
    fn observe(&self, checked: &Checked, observer: &mut dyn Observer) -> Option<Outcome> {
        self.run.snapshot?.restore();
        let mut scratch = Scratch { host: Host { printer: None, ..Host::default() }, ..Scratch::default() };
        let stop = AtomicU32::new(0);
        let (budget, device) = (&self.run.code.trials, self.run.args.stop);
        let mut bounded = Bounded { observer, budget, stop: &stop, device };
        let args = DispatchArgs { stop: &stop, ..*self.run.args };
        Some(checked.code.run_observed(&args, self.workgroups.clone(), &mut scratch, &mut bounded))
    }
}

impl Drop for Trials<'_> {
    /// The memory is as the dispatch left it.
    fn drop(&mut self) {
        self.after.restore();
    }
}

/// Whether two sites are one instruction of the module.
fn same(one: &SiteData, other: &SiteData) -> bool {
    (one.word, &one.inlined_at) == (other.word, &other.inlined_at)
}

//! Comparison of a changed kernel with the kernel as it is: a change that moves a barrier or takes one away is no
//! repair if something else races then.
//!
//! In the workgroup that runs alone each pair of instructions is compared in each word: two instructions that race in
//! one word before the change and in another one after it are two races. In the whole dispatch, which may have many,
//! it is what the detector suspects.

use std::collections::BTreeSet;

use foldhash::HashSet;
use spelter_shaders::check::{Candidates, Relation};
use spelter_shaders::compile::Backend;
use spelter_shaders::ir::{Kernel, Site, SiteData};

use super::trial::{Setting, Trials, diverges};
use crate::check::confirm::{AccessFilter, Candidate, Pairs, VerdictBudget};
use crate::check::log::{Accessed, Log, Word, word};
use crate::check::slice::Undecided;

/// Words in which races are compared, at most.
const MAX_WORDS: usize = 4096;

/// An instruction of the module: its word, and those of the calls through which it is there.
type InlinedInstruction = (u32, Vec<u32>);

/// Two instructions that race, in the order of their numbers, and the word in which they do.
type Racing = (InlinedInstruction, InlinedInstruction, Word);

/// A suspicion: the later instruction, and how it depends on an earlier one.
type Suspected = (InlinedInstruction, Relation);

/// What the kernel as it is does in a setting: each is found out once. `None` if it is not known.
#[derive(Debug, Default)]
pub(super) struct Unchanged {
    races: Vec<(Setting, Option<BTreeSet<Racing>>)>,
    suspected: Vec<(Setting, Option<BTreeSet<Suspected>>)>,
}

/// What is known of a setting.
pub(super) fn known<T: Clone>(list: &[(Setting, T)], of: Setting) -> Option<T> {
    list.iter().find(|(setting, _)| *setting == of).map(|(_, value)| value.clone())
}

impl Trials<'_> {
    /// Whether all invocations execute the new barriers of a changed kernel, and nothing races that does not without
    /// the change: what it moves or takes away may have ordered other accesses.
    pub(super) fn adds_nothing(&mut self, changed: &Kernel) -> bool {
        let own = self.run.code.backend();
        let Some((races, backend)) = self.races(changed, own) else { return false };
        let compared = self.unchanged_races(backend).is_some_and(|known| races.is_subset(&known));
        compared && (!self.is_alone() || self.with_all(|trials| trials.suspects_nothing_more(changed)))
    }

    /// The same by what is suspected only.
    fn suspects_nothing_more(&mut self, changed: &Kernel) -> bool {
        let Some((suspected, backend)) = self.suspected(changed, self.run.code.backend()) else { return false };
        let setting = (self.is_alone(), backend);
        let known = known(&self.unchanged.suspected, setting).unwrap_or_else(|| {
            let found = self.suspected(self.run.code.kernel(), backend).map(|(found, _)| found);
            self.unchanged.suspected.push((setting, found.clone()));
            found
        });
        known.is_some_and(|known| suspected.is_subset(&known))
    }

    /// What is suspected of a kernel, if all invocations execute its new barriers.
    fn suspected(&mut self, kernel: &Kernel, backend: Backend) -> Option<(BTreeSet<Suspected>, Backend)> {
        let run = self.detect(kernel, backend)?;
        if diverges(&run) {
            return None;
        }
        let of = |found: &Candidates| (place(&run.checked.kernel.sites[found.kind.site]), found.kind.relation);
        Some((run.candidates.iter().map(of).collect(), run.checked.backend))
    }

    fn unchanged_races(&mut self, backend: Backend) -> Option<BTreeSet<Racing>> {
        let setting = (self.is_alone(), backend);
        known(&self.unchanged.races, setting).unwrap_or_else(|| {
            let found = self.races(self.run.code.kernel(), backend).map(|(found, _)| found);
            self.unchanged.races.push((setting, found.clone()));
            found
        })
    }

    /// What races in a kernel, if all invocations execute its new barriers and the axioms decide.
    fn races(&mut self, kernel: &Kernel, backend: Backend) -> Option<(BTreeSet<Racing>, Backend)> {
        let run = self.detect(kernel, backend)?;
        if diverges(&run) {
            return None;
        }
        let words: BTreeSet<Word> = run.candidates.iter().flat_map(|kind| &kind.examples).map(word).collect();
        if words.len() > MAX_WORDS {
            return None;
        }
        if words.is_empty() {
            return Some((BTreeSet::new(), run.checked.backend));
        }
        let log = self.record(&run, words.clone())?;
        let work = self.run.code.trials.left();
        let mut budget = VerdictBudget::within(work);
        let found = racing(&log, &run.checked.kernel, &words, &mut budget);
        self.run.code.trials.spend(budget.spent(work));
        Some((found?, run.checked.backend))
    }
}

/// The pairs of instructions that race in each of these words, if all is decided.
fn racing(log: &Log, kernel: &Kernel, words: &BTreeSet<Word>, budget: &mut VerdictBudget) -> Option<BTreeSet<Racing>> {
    let mut found = BTreeSet::new();
    for &word in words {
        let any = Candidate { word, first: AccessFilter::default(), second: AccessFilter::default() };
        let mut pairs = Pairs::new(log, &any, budget);
        let key = |first: &Accessed, second: &Accessed| {
            let [first, second] = [first, second].map(|access| access.site);
            (first.min(second), first.max(second))
        };
        let mut sites = HashSet::default();
        let is_decided = match (pairs.first_race(), pairs.undecided()) {
            (Some(race), _) => {
                let (first, second) = pairs.accesses(&race);
                sites.insert(key(&first, &second));
                pairs.further_races(budget, &mut sites, key).open.is_empty()
            }
            (None, undecided) => undecided.is_none_or(|(why, _)| why == Undecided::NotReproduced),
        };
        pairs.give_back(budget);
        if !is_decided {
            return None;
        }
        let named = |site: Site| place(&kernel.sites[site]);
        found.extend(sites.into_iter().map(|(first, second)| {
            let (first, second) = (named(first), named(second));
            if first <= second { (first, second, word) } else { (second, first, word) }
        }));
    }
    Some(found)
}

fn place(site: &SiteData) -> InlinedInstruction {
    (site.word, site.inlined_at.to_vec())
}

//! The repairs of a race in a dispatch. Each was tried: the dispatch ran again with the kernel changed as the words
//! say, under the profile of the finding, and the two instructions did not race.

mod barrier;
mod barrier_words;
pub(super) mod budget;
mod change;
pub(super) mod combined;
mod compare;
mod divergence;
mod divergent_workgroups;
mod flag;
pub(super) mod kept;
mod merged;
mod ordering;
mod place;
mod trial;

use std::collections::BTreeSet;

use spelter_memory_model::event;
use spelter_memory_model::repair::{Edit, TraceEdit};
use spelter_shaders::front::Language;
use spelter_shaders::ir::{
    InstData, Kernel, Op, Place, SiteData, StorageClass, Type, Value, Variable, VariableSpace, Width,
};

pub(super) use self::barrier::VerifiedChange;
use self::barrier::{BarrierSearch, RaceSide, UnrepairedRace};
use self::change::{Changed, class_of};
use self::flag::MAX_VALUES;
pub(super) use self::flag::{Flag, guarding, is_flag};
use self::place::Text;
use self::trial::{Trials, Tried};
use super::confirm::{Confirmed, Update};
use super::dispatch::{Described, DispatchRun};
use super::explanation;
use super::finding::{FoundAccess, Repair};
use super::slice::Slice;
use super::update::Updated;
use super::words::Sides;

/// The reason if invocations diverge between the two accesses.
const NO_BARRIER: &str =
    "no barrier can be between them as the code is: not all invocations of the workgroup execute it there";

/// The reason if the barrier has to be at the end of a loop.
const NEXT_ITERATION: &str =
    "one of them is of the next iteration of the loop, which no barrier separates from this one";

/// The reason if a barrier orders the race of the finding only.
const BETWEEN_WORKGROUPS: &str = "a barrier between them orders the invocations of a workgroup, but they race between \
                                  workgroups, too: only two dispatches order these";

/// The same for a race through two bindings, of which one alone would do.
const BETWEEN_WORKGROUPS_OF_ONE: &str = "with one binding for both, a barrier between them orders the invocations of \
                                         a workgroup, but they race between workgroups, too: only two dispatches \
                                         order these";

/// What the instruction of a site accesses, as far as an atomic operation can have it.
pub(super) fn updated(kernel: &Kernel, site: &SiteData) -> Updated {
    let text = Text::new(kernel);
    let of = |data: &InstData| match *data {
        InstData::Load { ty, width, .. } => Some((ty, width)),
        InstData::Store { value, width, .. } => Some((kernel.ty(value), width)),
        _ => None,
    };
    let found: Vec<_> = text.of_site(site).into_iter().map(|at| of(text.data(at))).collect();
    match (found[..].first().copied().flatten(), site.action.class()) {
        (_, Some(StorageClass::Image)) | (None, _) => Updated::Other,
        _ if found.len() > 1 => Updated::Vector,
        (Some((_, Width::Byte | Width::Half)), _) => Updated::Narrow,
        (Some((Type::F32, Width::Word)), _) => Updated::Float,
        (Some((Type::I32, Width::Word)), _) => Updated::Integer,
        _ => Updated::Other,
    }
}

/// Whether an instruction writes what pure operations make of the value that another one reads, also through variables
/// of the invocation.
pub(super) fn is_stored_back(kernel: &Kernel, [read, write]: [&SiteData; 2]) -> bool {
    let Some((loaded, value)) = loaded_and_stored(kernel, [read, write]) else { return false };
    let mut seen: BTreeSet<Value> = [value].into();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if value == loaded {
            return true;
        }
        if seen.len() <= MAX_VALUES
            && let Some(data) = kernel.definition(value)
        {
            match data {
                InstData::Pure { .. } | InstData::Select { .. } => {
                    data.for_each_use(|used| open.extend(seen.insert(used).then_some(used)));
                }
                // A variable of the invocation: whatever is written to it.
                InstData::Load { place: Place::Variable { variable, .. }, .. }
                    if kernel.variables[*variable].space == VariableSpace::Private =>
                {
                    open.extend(written(kernel, *variable).filter(|value| seen.insert(*value)));
                }
                _ => {}
            }
        }
    }
    false
}

/// The value that an instruction reads, and that another one writes, if each is one instruction of the kernel.
fn loaded_and_stored(kernel: &Kernel, [read, write]: [&SiteData; 2]) -> Option<(Value, Value)> {
    let text = Text::new(kernel);
    let (&[load], &[store]) = (&text.of_site(read)[..], &text.of_site(write)[..]) else { return None };
    match text.data(store) {
        InstData::Store { value, .. } => Some((kernel.results[text.inst(load)?]?, *value)),
        _ => None,
    }
}

/// The values that are written to a variable.
fn written(kernel: &Kernel, variable: Variable) -> impl Iterator<Item = Value> {
    kernel.insts.values().filter_map(move |data| match data {
        InstData::Store { place: Place::Variable { variable: written, .. }, value, .. } if *written == variable => {
            Some(*value)
        }
        _ => None,
    })
}

/// The atomic functions that an update may be whose instructions read and write: what is written is one operation of
/// the value that is read and another one.
pub(super) fn functions(kernel: &Kernel, sites: [&SiteData; 2]) -> &'static [&'static str] {
    let Some((loaded, stored)) = loaded_and_stored(kernel, sites) else { return &[] };
    // Through variables of the invocation that have one value only.
    let source = |mut value: Value| {
        for _ in 0..MAX_VALUES {
            let Some(InstData::Load { place: Place::Variable { variable, .. }, .. }) = kernel.definition(value) else {
                break;
            };
            let mut all = written(kernel, *variable);
            match (all.next(), all.next()) {
                (Some(only), None) if kernel.variables[*variable].space == VariableSpace::Private => value = only,
                _ => break,
            }
        }
        value
    };
    let mut is_operand = false;
    let Some(data) = kernel.definition(source(stored)) else { return &[] };
    data.for_each_use(|used| is_operand |= source(used) == loaded);
    match data {
        _ if !is_operand => &[],
        InstData::Pure { op: Op::IAdd | Op::ISub | Op::FAdd | Op::FSub, .. } => &["Add", "Sub"],
        InstData::Pure { op: Op::And, .. } => &["And"],
        InstData::Pure { op: Op::Or, .. } => &["Or"],
        InstData::Pure { op: Op::Xor, .. } => &["Xor"],
        InstData::Pure { op: Op::UMax | Op::SMax | Op::FMax, .. } => &["Max"],
        InstData::Pure { op: Op::UMin | Op::SMin | Op::FMin, .. } => &["Min"],
        // A larger or smaller one of two floats that may be no numbers.
        InstData::Select { .. } => &["Max", "Min"],
        _ => &[],
    }
}

/// The two accesses of a race whose repair is sought.
#[derive(Clone, Copy)]
pub(super) struct RaceAccesses<'a> {
    pub(super) pair: [&'a FoundAccess; 2],
    /// The updates that they are parts of.
    pub(super) updates: Option<[Update; 2]>,
    /// Whether they are the write of an update and a read in the same statement, which no barrier may divide if the
    /// write races with itself, too.
    pub(super) in_update: bool,
}

/// The repairs that were found, and further reasons.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    pub(super) repairs: Vec<Repair>,
    pub(super) reasons: Vec<String>,
    /// What was tried, or why it was not.
    pub(super) tried: Vec<&'static str>,
    /// The first repair as a change of the kernel, if trials verified it.
    pub(super) verified: Option<VerifiedChange>,
    /// Whether one that needs a trial was sought and not found.
    pub(super) lacks_verified: bool,
}

impl Repairs {
    /// Says why there is none, if there is none and nothing else says it, and why no trial found one beside advice.
    /// `obstacle` is why no more can be tried.
    pub(super) fn explained(mut self, obstacle: Option<&str>) -> Self {
        if self.repairs.is_empty() && self.reasons.is_empty() {
            let tried = self.tried.join(", and ");
            self.reasons.push(match (obstacle, tried.is_empty()) {
                (None, true) => "no repair was found".to_owned(),
                (None, false) => format!("no repair was found: {tried}"),
                (Some(obstacle), true) => format!("no repair was tried: {obstacle}"),
                (Some(obstacle), false) => format!("no repair was found: {tried}; no other was, since {obstacle}"),
            });
        } else if let Some(obstacle) = obstacle.filter(|_| self.lacks_verified) {
            self.reasons.push(format!("no other repair was tried: {obstacle}"));
        }
        self
    }
}

impl DispatchRun<'_> {
    /// The instruction of a site of a slice.
    fn site_data(&self, slice: &Slice, site: event::Site) -> Option<SiteData> {
        let (_, site) = slice.sites.get(site.0 as usize)?;
        Some(self.code.all().kernel.sites.get(*site)?.clone())
    }

    /// Repairs of a race, verified by trials. `flags` finds what may have announced the earlier access to the later
    /// invocation.
    pub(super) fn repairs<'r>(
        &self,
        slice: &Slice,
        described: &Described,
        race: RaceAccesses<'_>,
        flags: &dyn Fn() -> Option<(Vec<Flag>, Option<&'r Confirmed>)>,
    ) -> Repairs {
        if !self.can_try() {
            return Repairs { lacks_verified: true, ..Repairs::default() };
        }
        let mut found = self.ordering(slice, described, race);
        // As two atomics, or a flag, an update would lose others all the same.
        let may_be_apart = !race.in_update;
        if found.repairs.is_empty()
            && may_be_apart
            && described.names().language != Language::Wgsl
            && let Some((flags, guarded)) = flags()
        {
            found.repairs.extend(self.flag_repair(&flags, guarded));
        }
        if found.repairs.is_empty()
            && may_be_apart
            && let Some((repair, verified)) = self.as_atomics(slice, described)
        {
            found.repairs.push(repair);
            found.verified = Some(verified);
        }
        found.lacks_verified = found.repairs.is_empty();
        let is_between = |reason: &String| reason == BETWEEN_WORKGROUPS || reason == BETWEEN_WORKGROUPS_OF_ONE;
        if !found.repairs.is_empty() {
            found.reasons.retain(|reason| reason != NO_BARRIER && !is_between(reason));
        } else if found.reasons.iter().any(is_between) {
            found.repairs.push(explanation::two_dispatches(described.names().language));
            found.reasons.retain(|reason| reason != NO_BARRIER);
        }
        found
    }

    /// A barrier that separates two updates, verified by trials.
    pub(super) fn barrier(
        &self,
        slice: &Slice,
        described: &Described,
        (pair, updates): ([&FoundAccess; 2], [Update; 2]),
    ) -> Repairs {
        let mut found = Repairs::default();
        let names = described.names();
        let events = [slice.pair.0, slice.pair.1];
        let own = own_workgroup(pair).filter(|_| slice.events[events[0]].by != slice.events[events[1]].by);
        if own.is_none() || names.have_two_references(slice) {
            return found;
        }
        let data = events.map(|event| self.code.all().kernel.sites[slice.events[event].site].clone());
        let race = UnrepairedRace {
            kernel: self.code.kernel(),
            language: names.language,
            sites: data.each_ref(),
            sides: &self.sides(slice, RaceAccesses { pair, updates: Some(updates), in_update: false }),
            in_update: false,
            class: class_of(&data[0]),
            place: names.places[events[1]].to_string(),
        };
        found.lacks_verified = race.has_places();
        if found.lacks_verified
            && self.can_try()
            && let Some(mut trials) = Trials::new(self, data.clone(), own)
            && let BarrierSearch::Repair { repair, only_at_the_end, verified } = race.barriers(&mut trials)
        {
            found.lacks_verified = false;
            found.repairs.push(repair);
            found.verified = Some(verified);
            found.reasons.extend(only_at_the_end.then(|| NEXT_ITERATION.to_owned()));
        }
        found
    }

    /// Whether changed kernels may run: without a trial no repair is offered.
    fn can_try(&self) -> bool {
        self.obstacle().is_none()
    }

    /// Why changed kernels may not run, in a clause.
    pub(super) fn obstacle(&self) -> Option<&'static str> {
        if !self.ended {
            Some("the kernel did not come to its end")
        } else if self.snapshot.is_none() || !self.is_kept {
            Some("there is no copy of the memory with which a changed kernel could run")
        } else if !self.code.trials.can_compile(self.code.kernel().size()) {
            Some("the trials of repairs of this kernel have done all the work that they may do")
        } else if self.trial_runs.is_hopeless() {
            Some("too much else races in the changed kernels that ran")
        } else {
            None
        }
    }

    /// The two accesses of a race, or the updates that they are parts of.
    fn sides(&self, slice: &Slice, RaceAccesses { pair, updates, .. }: RaceAccesses<'_>) -> [RaceSide; 2] {
        let events = [slice.pair.0, slice.pair.1].map(|event| &slice.events[event]);
        [0, 1].map(|side| match updates {
            Some(updates) => {
                let sites = [updates[side].read, updates[side].write];
                RaceSide {
                    sites: sites.map(|site| self.code.all().kernel.sites[site].clone()),
                    accesses: sites.map(|site| self.access(site, events[side].by)),
                }
            }
            None => {
                let site = &self.code.all().kernel.sites[events[side].site];
                RaceSide { sites: [site.clone(), site.clone()], accesses: [pair[side].clone(), pair[side].clone()] }
            }
        })
    }

    /// Both accesses as relaxed atomics, where that is what the race asks for: they order nothing else.
    pub(super) fn as_atomics(&self, slice: &Slice, described: &Described) -> Option<(Repair, VerifiedChange)> {
        let (names, kernel) = (described.names(), self.code.kernel());
        let pair = [slice.pair.0, slice.pair.1];
        let data = pair.map(|event| self.code.all().kernel.sites[slice.events[event].site].clone());
        let sites = data.each_ref();
        let seen = sites.iter().any(|site| is_flag(kernel, site));
        let asks_for_it = seen || flag::is_atomic_by_nature(kernel, sites);
        if !names.may_be_atomic(slice) || !asks_for_it || !self.can_try() {
            return None;
        }
        let [a, b] = pair.map(|event| slice.trace.events[event].site);
        let (a, b) = (a?, b?);
        let apart = slice.events[pair[0]].by.workgroup != slice.events[pair[1]].by.workgroup;
        // Two invocations of a workgroup may not be the only ones that race.
        let scopes = [event::Scope::Workgroup, event::Scope::QueueFamily];
        let mut trials = Trials::new(self, data.clone(), None)?;
        scopes.into_iter().skip(usize::from(apart)).find_map(|scope| {
            let edit = Edit::Atomic(a.min(b), a.max(b), scope);
            let mut changed = Changed::new(kernel, names.language);
            changed.edit(&edit, &|site| self.site_data(slice, site))?;
            let verified = VerifiedChange { change: changed.change(kernel), words: None };
            let is_silent = trials.run(&changed.finish()) == Tried::Silent;
            is_silent.then(|| (names.repair(&[TraceEdit::Code(edit)], slice, Sides::Both), verified))
        })
    }
}

/// The workgroup in which both accesses are.
fn own_workgroup(pair: [&FoundAccess; 2]) -> Option<[u32; 3]> {
    let workgroups = pair.map(|access| access.invocation.map(|invocation| invocation.workgroup));
    (workgroups[0] == workgroups[1]).then_some(workgroups[0]).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_repair_says_why() {
        let reasons = |repairs: Repairs, obstacle| repairs.explained(obstacle).reasons;
        let tried = || Repairs { tried: vec!["a barrier was tried", "one binding was tried"], ..Repairs::default() };
        let all = "no repair was found: a barrier was tried, and one binding was tried";
        assert_eq!(reasons(tried(), None), [all]);
        assert_eq!(reasons(tried(), Some("it is late")), [format!("{all}; no other was, since it is late")]);
        assert_eq!(reasons(Repairs::default(), Some("it is late")), ["no repair was tried: it is late"]);
        assert_eq!(reasons(Repairs::default(), None), ["no repair was found"]);
        let has = Repairs { repairs: vec![explanation::two_dispatches(Language::Wgsl)], ..tried() };
        assert!(reasons(has, Some("it is late")).is_empty());
        let advice = || Repairs {
            repairs: vec![explanation::two_dispatches(Language::Wgsl)],
            lacks_verified: true,
            ..Repairs::default()
        };
        assert_eq!(reasons(advice(), Some("it is late")), ["no other repair was tried: it is late"]);
        assert!(reasons(advice(), None).is_empty());
        let said = Repairs { reasons: vec![NO_BARRIER.to_owned()], ..tried() };
        assert_eq!(reasons(said, Some("it is late")), [NO_BARRIER]);
    }
}

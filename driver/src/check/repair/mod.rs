//! The repairs of a race in a dispatch. Each was tried: the dispatch ran again with the kernel changed as the words
//! say, under the profile of the finding, and the two instructions did not race.

mod barrier;
pub(super) mod budget;
mod change;
mod compare;
mod divergence;
mod divergent_workgroups;
mod flag;
pub(super) mod kept;
mod place;
mod trial;

use std::collections::BTreeSet;

use spelter_memory_model::event;
use spelter_memory_model::repair::{Edit, TraceEdit};
use spelter_shaders::check::Profile;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{
    InstData, Kernel, Place, SiteAction, SiteData, StorageClass, Type, Value, VariableSpace, Width,
};

use self::barrier::{BarrierSearch, RaceSide, UnrepairedRace};
use self::change::{Changed, class_of};
use self::flag::MAX_VALUES;
pub(super) use self::flag::{Flag, guarding, is_flag};
use self::place::Text;
use self::trial::{Trials, Tried};
use super::confirm::{Confirmed, Update};
use super::dispatch::{Described, DispatchRun};
use super::explanation::{self, SliceNames};
use super::finding::{FoundAccess, Repair};
use super::slice::Slice;
use super::update::Updated;
use super::words::{self, Sides};

/// Repairs of a report that edit instructions of the module.
const MAX_REPAIRS: usize = 2;

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

/// The reason if changed atomics order the two accesses by chance.
const BY_CHANCE: &str = "atomics that acquire and release would order them only as they ran here: in the opposite \
                         order of the invocations they race all the same";

/// What was tried by edits.
const WHAT_IS_THERE: &str = "stronger atomics, barriers and declarations in place of those that are there were tried";

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
    let text = Text::new(kernel);
    let (&[load], &[store]) = (&text.of_site(read)[..], &text.of_site(write)[..]) else { return false };
    let (Some(loaded), InstData::Store { value, .. }) =
        (text.inst(load).and_then(|inst| kernel.results[inst]), text.data(store))
    else {
        return false;
    };
    let mut seen: BTreeSet<Value> = [*value].into();
    let mut open = vec![*value];
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
                    open.extend(kernel.insts.values().filter_map(|data| match data {
                        InstData::Store { place: Place::Variable { variable: written, .. }, value, .. }
                            if written == variable && seen.insert(*value) =>
                        {
                            Some(*value)
                        }
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
    }
    false
}

/// The repairs that were found, and further reasons.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    pub(super) repairs: Vec<Repair>,
    pub(super) reasons: Vec<String>,
    /// What was tried, or why it was not.
    pub(super) tried: Vec<&'static str>,
}

impl Repairs {
    /// Says why there is none, if there is none and nothing else says it.
    pub(super) fn explained(mut self) -> Self {
        if self.repairs.is_empty() && self.reasons.is_empty() && !self.tried.is_empty() {
            self.reasons.push(format!("no repair was found: {}", self.tried.join(", and ")));
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

    /// Repairs of a race of two accesses, which may be parts of updates, verified by trials. `flags` finds what may
    /// have announced the earlier access to the later invocation.
    pub(super) fn repairs<'r>(
        &self,
        slice: &Slice,
        described: &Described,
        pair: ([&FoundAccess; 2], Option<[Update; 2]>),
        flags: &dyn Fn() -> Option<(Vec<Flag>, Option<&'r Confirmed>)>,
    ) -> Repairs {
        if !self.can_try() {
            return Repairs::default();
        }
        let mut found = self.ordering(slice, described, pair);
        if found.repairs.is_empty()
            && described.names().language != Language::Wgsl
            && let Some((flags, guarded)) = flags()
        {
            found.repairs.extend(self.flag_repair(&flags, guarded));
        }
        if found.repairs.is_empty() {
            found.repairs.extend(self.as_atomics(slice, described));
        }
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
        if own.is_none() || names.have_two_references(slice) || !self.can_try() {
            return found;
        }
        let data = events.map(|event| self.code.all().kernel.sites[slice.events[event].site].clone());
        let race = UnrepairedRace {
            kernel: self.code.kernel(),
            language: names.language,
            sites: data.each_ref(),
            sides: &self.sides(slice, (pair, Some(updates))),
            class: class_of(&data[0]),
            place: names.places[events[1]].to_string(),
        };
        if race.has_places()
            && let Some(mut trials) = Trials::new(self, data.clone(), own)
            && let BarrierSearch::Repair { repair, only_at_the_end } = race.barriers(&mut trials)
        {
            found.repairs.push(repair);
            found.reasons.extend(only_at_the_end.then(|| NEXT_ITERATION.to_owned()));
        }
        found
    }

    /// Whether changed kernels may run: without a trial no repair is offered.
    fn can_try(&self) -> bool {
        self.code.trials.can_compile(self.code.kernel().size()) && !self.trial_runs.is_hopeless()
    }

    /// The two accesses of a race, or the updates that they are parts of.
    fn sides(&self, slice: &Slice, (pair, updates): ([&FoundAccess; 2], Option<[Update; 2]>)) -> [RaceSide; 2] {
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
    pub(super) fn as_atomics(&self, slice: &Slice, described: &Described) -> Option<Repair> {
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
            let is_silent = trials.run(&changed.finish()) == Tried::Silent;
            is_silent.then(|| names.repair(&[TraceEdit::Code(edit)], slice, Sides::Both))
        })
    }

    /// The kernels with these changes, as many as the words for them have forms: atomics of GLSL have further arguments
    /// or memory barriers beside them. None if a change concerns the API, or is applied elsewhere.
    fn edited(&self, set: &[TraceEdit], (slice, language): (&Slice, Language), sides: Sides) -> Vec<Kernel> {
        let with = |arguments: Option<bool>| self.edited_with(arguments, set, (slice, language), sides);
        // The words leave the choice between both forms, so both are tried.
        let Some((first, _)) = with(None) else { return Vec::new() };
        let second = with(Some(true)).filter(|(_, has)| *has && language == Language::Glsl);
        [first].into_iter().chain(second.map(|(kernel, _)| kernel)).collect()
    }

    /// The kernel with these changes, and whether atomics have further arguments: they have them if `arguments` says
    /// whether these include the flags of availability and visibility.
    fn edited_with(
        &self,
        arguments: Option<bool>,
        set: &[TraceEdit],
        (slice, language): (&Slice, Language),
        sides: Sides,
    ) -> Option<(Kernel, bool)> {
        let role = |site: event::Site| {
            let event = slice.trace.events.iter().position(|event| event.site == Some(site))?;
            Some(words::role(slice.trace.operation(event).access()?, site, slice))
        };
        let mut changed = Changed::new(self.code.kernel(), language).on(sides);
        let mut has_arguments = false;
        for edit in set {
            let TraceEdit::Code(edit) = edit else { return None };
            if let (Some(with_flags), Edit::Order(site, class)) = (arguments, *edit)
                && let Some(role) = role(site)
            {
                changed.arguments(&self.site_data(slice, site)?, class, role, with_flags);
                has_arguments = true;
            } else {
                changed.edit(edit, &|site| self.site_data(slice, site))?;
            }
        }
        Some((changed.finish(), has_arguments))
    }

    /// Those of the changes of a control barrier that are needed, and the sides on which it needs memory barriers. The
    /// memory model asks for all of them in the words of the language; the profile of the run may ask for less, and
    /// some may be there.
    fn least(
        &self,
        mut set: Vec<TraceEdit>,
        slice: &Slice,
        mut is_silent: impl FnMut(&[TraceEdit], Sides) -> bool,
    ) -> (Vec<TraceEdit>, Sides) {
        let is_of_barrier = |edit: &TraceEdit| {
            let TraceEdit::Code(edit) = edit else { return false };
            let site = self.site_data(slice, edit.places().0);
            site.is_some_and(|site| matches!(site.action, SiteAction::Barrier { .. }))
        };
        if !set.iter().any(is_of_barrier) {
            return (set, Sides::Both);
        }
        if self.code.checker.options.profile == Profile::Common {
            for at in (0..set.len()).rev() {
                let mut less = set.clone();
                less.remove(at);
                if !less.is_empty() && is_silent(&less, Sides::Both) {
                    set = less;
                }
            }
        }
        let has_words = set.iter().any(|edit| matches!(edit, TraceEdit::Code(Edit::Order(..))));
        let mut one = [Sides::Before, Sides::After].into_iter();
        let side = one.find(|side| has_words && is_silent(&set, *side));
        (set, side.unwrap_or(Sides::Both))
    }

    /// Repairs that order the two accesses.
    fn ordering(
        &self,
        slice: &Slice,
        described: &Described,
        (pair, updates): ([&FoundAccess; 2], Option<[Update; 2]>),
    ) -> Repairs {
        let names = described.names();
        let mut found = Repairs::default();
        let events = [slice.pair.0, slice.pair.1];
        let data = events.map(|event| self.code.all().kernel.sites[slice.events[event].site].clone());
        let own = own_workgroup(pair);
        let kernel = self.code.kernel();
        let is_atomic = |set: &Vec<TraceEdit>| matches!(set[..], [TraceEdit::Code(Edit::Atomic(..))]);
        let edits: Vec<_> = names.edits(slice).into_iter().filter(|set| !is_atomic(set)).collect();
        let Some(mut trials) = Trials::new(self, data.clone(), own) else { return found };
        let language = names.language;
        let class = class_of(&data[0]);
        let [first, place] = events.map(|event| names.places[event].to_string());
        let place = if names.have_two_references(slice) { format!("{first} and {place}") } else { place };
        let sites = [&data[0], &data[1]];
        let sides = &self.sides(slice, (pair, updates));
        let is_of_workgroup = own.is_some() && slice.events[events[0]].by != slice.events[events[1]].by;
        let mut seeks_barrier = is_of_workgroup;
        let share_binding = |trials: &mut Trials<'_>, found: &mut Repairs| {
            let mut changed = Changed::new(kernel, language);
            // That of the first one, unless the second one could not write through it.
            let [kept, other] = if changed.is_writable(&data[0]) { [0, 1] } else { [1, 0] };
            if changed.share_binding(&data[kept], &data[other]).is_none() {
                found.tried.push("no one binding can be for both");
                return;
            }
            let (kernel, one) = (&changed.finish(), names.one_binding(events[kept], events[other]));
            if trials.run(kernel) == Tried::Silent && trials.in_all(kernel) == Tried::Silent {
                found.repairs.push(one);
                return;
            }
            found.tried.push("one binding for both was tried");
            if !is_of_workgroup {
                return;
            }
            let place = names.places[events[kept]].to_string();
            let race = UnrepairedRace { kernel, language, sites, sides, class, place };
            match race.barriers(trials) {
                BarrierSearch::Repair { repair, .. } => {
                    found.repairs.push(Repair { text: format!("{}, and {}", one.text, repair.text), ..repair });
                }
                BarrierSearch::Divergent => found.reasons.push(NO_BARRIER.to_owned()),
                BarrierSearch::BetweenWorkgroups => found.reasons.push(BETWEEN_WORKGROUPS_OF_ONE.to_owned()),
                BarrierSearch::Nothing => found.tried.push(barriers_tried(kernel, sites)),
            }
        };
        if names.needs_one_reference(slice) {
            share_binding(&mut trials, &mut found);
            return found;
        }
        // Without atomics it is barriers that order, and they do so in each order of the invocations.
        let has_atomics = names.has_atomics(slice);
        let (mut by_chance, mut has_tried) = (false, false);
        for set in edits {
            let mut is_silent = |set: &[TraceEdit], sides: Sides| {
                let forms = self.edited(set, (slice, language), sides);
                has_tried |= !forms.is_empty();
                let silences = |kernel| trials.run(kernel) == Tried::Silent && trials.in_all(kernel) == Tried::Silent;
                if forms.is_empty() || !forms.iter().all(silences) {
                    return false;
                }
                let races = has_atomics && forms.iter().any(|kernel| trials.races_in_opposite_order(kernel));
                by_chance |= races;
                !races
            };
            if found.repairs.len() < MAX_REPAIRS && is_silent(&set, Sides::Both) {
                let (set, sides) = self.least(set, slice, is_silent);
                // Coherent data need no flags of the atomics.
                let has_flags = names.with_flags && language == Language::Glsl;
                let bare = has_flags.then(|| self.edited_with(Some(false), &set, (slice, language), sides)).flatten();
                let is_bare = bare.is_some_and(|(kernel, has_arguments)| {
                    has_arguments
                        && trials.run(&kernel) == Tried::Silent
                        && trials.in_all(&kernel) == Tried::Silent
                        && !trials.races_in_opposite_order(&kernel)
                });
                let named = SliceNames { with_flags: names.with_flags && !is_bare, ..names };
                let repair = named.repair(&set, slice, sides);
                if !found.repairs.contains(&repair) {
                    found.repairs.push(repair);
                }
                // What synchronizes already is to be completed.
                seeks_barrier &= !set.iter().any(completes);
            }
        }
        found.tried.extend(has_tried.then_some(WHAT_IS_THERE));
        if by_chance && found.repairs.is_empty() {
            found.reasons.push(BY_CHANCE.to_owned());
        }
        if seeks_barrier {
            let race = UnrepairedRace { kernel, language, sites, sides, class, place };
            match race.barriers(&mut trials) {
                BarrierSearch::Repair { repair, only_at_the_end } => {
                    found.repairs.insert(0, repair);
                    if only_at_the_end {
                        found.reasons.push(NEXT_ITERATION.to_owned());
                    }
                }
                BarrierSearch::Divergent => found.reasons.push(NO_BARRIER.to_owned()),
                BarrierSearch::BetweenWorkgroups => found.reasons.push(BETWEEN_WORKGROUPS.to_owned()),
                BarrierSearch::Nothing => found.tried.push(barriers_tried(kernel, sites)),
            }
        }
        if found.repairs.is_empty() && names.have_two_references(slice) {
            share_binding(&mut trials, &mut found);
        }
        found
    }
}

/// The workgroup in which both accesses are.
fn own_workgroup(pair: [&FoundAccess; 2]) -> Option<[u32; 3]> {
    let workgroups = pair.map(|access| access.invocation.map(|invocation| invocation.workgroup));
    (workgroups[0] == workgroups[1]).then_some(workgroups[0]).flatten()
}

/// The barriers that were tried for a race, in words.
fn barriers_tried(kernel: &Kernel, sites: [&SiteData; 2]) -> &'static str {
    let text = Text::new(kernel);
    let [first, second] = sites.map(|site| text.of_site(site).first().copied());
    let are_in_loop = first.zip(second).is_some_and(|(first, second)| text.loop_end(first, second).is_some());
    match (first == second, are_in_loop) {
        (true, false) => "no barrier can be between two invocations at one instruction",
        (true, true) => "a barrier at the end of the loop was tried",
        (false, false) => "a barrier between them was tried",
        (false, true) => "a barrier between them was tried, one at the end of the loop, and both",
    }
}

/// Whether an edit completes what orders the two accesses: an atomic operation, a fence, or their declaration.
fn completes(edit: &TraceEdit) -> bool {
    use Edit::{Acquire, Coherent, Order, Release, Semantics, Widen};
    matches!(edit, TraceEdit::Code(Order(..) | Release(..) | Acquire(..) | Semantics(..) | Widen(..) | Coherent(..)))
}

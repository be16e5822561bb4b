//! Repairs that order the two accesses of a race: stronger atomics, barriers and declarations in place of those that
//! are there, barriers where there are none, and one binding for two.

use spelter_memory_model::event::{self, Scope};
use spelter_memory_model::repair::{Edit, TraceEdit};
use spelter_shaders::check::Profile;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{Kernel, SiteAction, SiteData};

use super::barrier::{BarrierSearch, RaceSide, UnrepairedRace, VerifiedChange};
use super::change::{Changed, class_of};
use super::place::Text;
use super::trial::Trials;
use super::{
    BETWEEN_WORKGROUPS, BETWEEN_WORKGROUPS_OF_ONE, NEXT_ITERATION, NO_BARRIER, RaceAccesses, Repairs, own_workgroup,
};
use crate::check::dispatch::{Described, DispatchRun};
use crate::check::explanation::SliceNames;
use crate::check::finding::Repair;
use crate::check::slice::Slice;
use crate::check::words::{self, Sides};

/// Repairs of a report that edit instructions of the module.
const MAX_REPAIRS: usize = 2;

/// The reason if changed atomics order the two accesses by chance.
const BY_CHANCE: &str = "atomics that acquire and release would order them only as they ran here: in the opposite \
                         order of the invocations they race all the same";

/// What was tried by edits.
const WHAT_IS_THERE: &str = "stronger atomics, barriers and declarations in place of those that are there were tried";

/// A race whose accesses are to be ordered, and what was found for it.
struct OrderingSearch<'a> {
    run: &'a DispatchRun<'a>,
    slice: &'a Slice,
    names: SliceNames<'a>,
    sites: [SiteData; 2],
    sides: [RaceSide; 2],
    in_update: bool,
    /// Whether two invocations of one workgroup race.
    is_of_workgroup: bool,
    trials: Trials<'a>,
    found: Repairs,
}

impl DispatchRun<'_> {
    /// Repairs that order the two accesses.
    pub(super) fn ordering(&self, slice: &Slice, described: &Described, race: RaceAccesses<'_>) -> Repairs {
        let names = described.names();
        let events = [slice.pair.0, slice.pair.1];
        let sites = events.map(|event| self.code.all().kernel.sites[slice.events[event].site].clone());
        let own = own_workgroup(race.pair);
        let Some(trials) = Trials::new(self, sites.clone(), own) else { return Repairs::default() };
        let mut search = OrderingSearch {
            run: self,
            slice,
            names,
            sites,
            sides: self.sides(slice, race),
            in_update: race.in_update,
            is_of_workgroup: own.is_some() && slice.events[events[0]].by != slice.events[events[1]].by,
            trials,
            found: Repairs::default(),
        };
        if names.needs_one_reference(slice) {
            search.share_binding();
            return search.found;
        }
        // What synchronizes already is to be completed.
        if !search.edits() && search.is_of_workgroup {
            search.barriers();
        }
        if search.found.repairs.is_empty() && names.have_two_references(slice) {
            search.share_binding();
        }
        search.found
    }

    /// The kernels with these changes, as many as the words for them have forms: atomics of GLSL have further arguments
    /// or memory barriers beside them. None if a change concerns the API, or is applied elsewhere.
    fn edited(&self, set: &[TraceEdit], (slice, language): (&Slice, Language), sides: Sides) -> Vec<Kernel> {
        let with = |arguments: Option<bool>| self.edited_with(arguments, set, (slice, language), sides);
        // The words leave the choice between both forms, so both are tried.
        let Some((first, _)) = with(None) else { return Vec::new() };
        let second = with(Some(true)).filter(|(_, has)| *has && language == Language::Glsl);
        [first].into_iter().chain(second.map(|(changed, _)| changed)).map(Changed::finish).collect()
    }

    /// The kernel with these changes, and whether atomics have further arguments: they have them if `arguments` says
    /// whether these include the flags of availability and visibility.
    fn edited_with(
        &self,
        arguments: Option<bool>,
        set: &[TraceEdit],
        (slice, language): (&Slice, Language),
        sides: Sides,
    ) -> Option<(Changed, bool)> {
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
        Some((changed, has_arguments))
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
}

impl OrderingSearch<'_> {
    fn kernel(&self) -> &Kernel {
        self.run.code.kernel()
    }

    /// The barriers that order the two, whose memory is declared by this name, in the kernel or a changed one.
    fn barriers_of(&mut self, place: String, changed: Option<&Kernel>) -> BarrierSearch {
        // The race borrows what the trials are not a part of.
        let Self { run, names, sites, sides, in_update, trials, .. } = self;
        let kernel = changed.unwrap_or(run.code.kernel());
        let (language, sites, class) = (names.language, sites.each_ref(), class_of(&sites[0]));
        UnrepairedRace { kernel, language, sites, sides, in_update: *in_update, class, place }.barriers(trials)
    }

    /// A barrier that was found comes first: it orders more than what else is there.
    fn barriers(&mut self) {
        let [first, place] = [self.slice.pair.0, self.slice.pair.1].map(|event| self.names.places[event].to_string());
        let place = if self.names.have_two_references(self.slice) { format!("{first} and {place}") } else { place };
        match self.barriers_of(place, None) {
            BarrierSearch::Repair { repair, only_at_the_end, verified } => {
                self.found.repairs.insert(0, repair);
                self.found.verified = Some(verified);
                self.found.reasons.extend(only_at_the_end.then(|| NEXT_ITERATION.to_owned()));
            }
            BarrierSearch::Divergent => self.found.reasons.push(NO_BARRIER.to_owned()),
            BarrierSearch::BetweenWorkgroups => self.found.reasons.push(BETWEEN_WORKGROUPS.to_owned()),
            BarrierSearch::Nothing => self.found.tried.push(barriers_tried(self.kernel(), self.sites.each_ref())),
        }
    }

    /// One binding in place of two, with barriers if it needs them.
    fn share_binding(&mut self) {
        let events = [self.slice.pair.0, self.slice.pair.1];
        let mut changed = Changed::new(self.kernel(), self.names.language);
        // That of the first one, unless the second one could not write through it.
        let [kept, other] = if changed.is_writable(&self.sites[0]) { [0, 1] } else { [1, 0] };
        if changed.share_binding(&self.sites[kept], &self.sites[other]).is_none() {
            self.found.tried.push("no one binding can be for both");
            return;
        }
        let change = changed.change(self.kernel());
        let one = self.names.one_binding(events[kept], events[other]);
        let shared = changed.finish();
        if self.trials.silences(&shared) {
            self.found.repairs.push(one);
            self.found.verified = Some(VerifiedChange { change, words: None });
            return;
        }
        self.found.tried.push("one binding for both was tried");
        if !self.is_of_workgroup {
            return;
        }
        // What barriers between two bindings lack is no reason beside what those of one binding lack.
        let is_of_barriers = |reason: &String| [NO_BARRIER, BETWEEN_WORKGROUPS].contains(&&**reason);
        let place = self.names.places[events[kept]].to_string();
        let reason = match self.barriers_of(place, Some(&shared)) {
            BarrierSearch::Repair { repair, .. } => {
                let text = format!("{}, and {}", one.text, repair.text);
                self.found.repairs.push(Repair { text, ..repair });
                return;
            }
            BarrierSearch::Divergent => NO_BARRIER,
            BarrierSearch::BetweenWorkgroups => BETWEEN_WORKGROUPS_OF_ONE,
            BarrierSearch::Nothing => {
                let tried = barriers_tried(&shared, self.sites.each_ref());
                self.found.tried.retain(|other| *other != tried);
                self.found.tried.push(tried);
                return;
            }
        };
        self.found.reasons.retain(|reason| !is_of_barriers(reason));
        self.found.reasons.push(reason.to_owned());
    }

    /// Edits of what is there. Returns whether one completes what synchronizes already.
    fn edits(&mut self) -> bool {
        let Self { run, slice, names, trials, found, .. } = self;
        let (run, slice, language) = (*run, *slice, names.language);
        let is_atomic = |set: &Vec<TraceEdit>| matches!(set[..], [TraceEdit::Code(Edit::Atomic(..))]);
        let edits: Vec<_> = names.edits(slice).into_iter().filter(|set| !is_atomic(set)).collect();
        // A scope that suffices for the two may be too small for other invocations.
        let wide: Vec<_> = edits.iter().filter_map(|set| widest(set)).collect();
        let count = edits.len();
        // Without atomics it is barriers that order, and they do so in each order of the invocations.
        let has_atomics = names.has_atomics(slice);
        let (mut by_chance, mut has_tried, mut has_completed) = (false, false, false);
        for (number, set) in edits.into_iter().chain(wide).enumerate() {
            if number >= count && !found.repairs.is_empty() {
                break;
            }
            let mut is_silent = |set: &[TraceEdit], sides: Sides| {
                let forms = run.edited(set, (slice, language), sides);
                has_tried |= !forms.is_empty();
                if forms.is_empty() || !forms.iter().all(|kernel| trials.silences(kernel)) {
                    return false;
                }
                let races = has_atomics && forms.iter().any(|kernel| trials.races_in_opposite_order(kernel));
                by_chance |= races;
                !races
            };
            if found.repairs.len() >= MAX_REPAIRS || !is_silent(&set, Sides::Both) {
                continue;
            }
            let (set, sides) = run.least(set, slice, is_silent);
            let changed = |arguments| run.edited_with(arguments, &set, (slice, language), sides);
            // Coherent data need no flags of the atomics.
            let has_flags = names.with_flags && language == Language::Glsl;
            let bare = has_flags.then(|| changed(Some(false))).flatten();
            let is_bare = bare.is_some_and(|(changed, has_arguments)| {
                let kernel = has_arguments.then(|| changed.finish());
                kernel.is_some_and(|kernel| trials.silences(&kernel) && !trials.races_in_opposite_order(&kernel))
            });
            let named = SliceNames { with_flags: names.with_flags && !is_bare, ..*names };
            let repair = named.repair(&set, slice, sides);
            if !found.repairs.contains(&repair) {
                if found.repairs.is_empty() {
                    let change = changed(None).map(|(changed, _)| changed.change(run.code.kernel()));
                    found.verified = change.map(|change| VerifiedChange { change, words: None });
                }
                found.repairs.push(repair);
            }
            has_completed |= set.iter().any(completes);
        }
        found.tried.extend(has_tried.then_some(WHAT_IS_THERE));
        if by_chance && found.repairs.is_empty() {
            found.reasons.push(BY_CHANCE.to_owned());
        }
        has_completed
    }
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

/// The same changes with the widest scope in place of smaller ones; `None` if they have no smaller one.
fn widest(set: &[TraceEdit]) -> Option<Vec<TraceEdit>> {
    let is_small =
        |edit: &TraceEdit| matches!(edit, TraceEdit::Code(Edit::Widen(_, Scope::Subgroup | Scope::Workgroup)));
    let wide = |edit: &TraceEdit| match edit {
        TraceEdit::Code(Edit::Widen(site, _)) => TraceEdit::Code(Edit::Widen(*site, Scope::Device)),
        other => *other,
    };
    set.iter().any(is_small).then(|| set.iter().map(wide).collect())
}

/// Whether an edit completes what orders the two accesses: an atomic operation, a fence, or their declaration.
fn completes(edit: &TraceEdit) -> bool {
    use Edit::{Acquire, Coherent, Order, Release, Semantics, Widen};
    matches!(edit, TraceEdit::Code(Order(..) | Release(..) | Acquire(..) | Semantics(..) | Widen(..) | Coherent(..)))
}

//! The smallest repair of a racing program, found by trying edits and checking the result with the model.
//!
//! Edits only add synchronization: a flag, a storage class, a wider scope, a control barrier. The search proceeds by
//! the number of edits, so the first repair is a smallest one; at each step it takes one racing execution and tries
//! edits of its two accesses and of all synchronization. Every repair is verified: the edited program has executions,
//! none of them races, and no edit can be omitted.
//!
//! 1. Stated values of plain reads are observations and are removed before the search, since a repair may change them.
//!    Stated values of atomic reads are guards ("the flag was seen") and stay; if that leaves no executions, those of
//!    racing reads are removed, too.
//! 2. "Smallest" is relative to the edits that are tried: edits of the racing accesses and of all synchronization, but
//!    not availability and visibility by accesses of other threads, which could be part of a chain.
//! 3. A control barrier is tried for two threads of one workgroup without branches. In a real program, all other
//!    invocations of the workgroup must then execute it, too. In code that all threads execute, they do
//!    ([`Program::sources`]): an edit changes every execution of an instruction there.

mod edit;
mod offered;
mod shared;
mod text;
mod trace;

pub use edit::{Edit, apply, words};
pub use shared::{BarrierPlace, barrier as shared_barrier};
pub use text::{Change, NotWritten, Rewritten, rewrite};
pub use trace::{Dependency, Memory, Terms, TraceEdit, TraceEffort, TraceRepairs, of_trace};

use std::collections::{BTreeSet, HashSet};

use crate::answer::{Execution, Options, find_race_within, summarize_within};
use crate::event::{Agent, Class, Scope};
use crate::format::Condition;
use crate::program::{Bound, InstructionKind, Program, TooLarge};

use edit::{group, is_inserted};

/// A repair.
#[derive(Clone, Debug)]
pub struct Repair {
    /// The edits; empty if the program is race-free.
    pub edits: Vec<Edit>,
    /// The repaired program.
    pub program: Program,
    /// Number of its executions.
    pub executions: u64,
    /// The bound that ended the search for a smaller repair; `None` if there is no smaller one.
    pub gave_up: Option<TooLarge>,
}

impl Repair {
    /// Whether no smaller repair exists.
    pub fn is_smallest(&self) -> bool {
        self.gave_up.is_none()
    }
}

/// Bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Maximum number of edits of a smallest repair.
    pub edits: usize,
    /// Maximum number of programs to try in the search for the smallest.
    pub programs: u64,
    /// Maximum number of steps of all searches together, instead of that of [`Options`]. Half of them are for the
    /// search for the smallest repair, the rest for any repair.
    pub steps: u64,
    /// Whether only control barriers are tried: languages such as WGSL have no words for the other edits.
    pub only_barriers: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Self { edits: 6, programs: 20_000, steps: 20_000_000, only_barriers: false }
    }
}

/// The smallest repair of `program`, or any repair if that is too expensive; `None` if there is none. Only executions
/// that pass `filter` count.
///
/// # Errors
///
/// If the program is too large to decide, or if the search ends at a bound of `effort` without a repair.
pub fn repair(
    program: &Program,
    filter: Option<&Condition>,
    options: &Options,
    effort: Effort,
) -> Result<Option<Repair>, TooLarge> {
    let Effort { programs: left, only_barriers, .. } = effort;
    let mut search = RepairSearch { filter, options: *options, tried: HashSet::new(), left, spent: 0, only_barriers };
    search.options.limits.steps = effort.steps;
    let in_all = for_steps("the search for a repair takes too many steps");
    let race = search.find_race(program).map_err(&in_all)?;
    let variants = variants(program, race.as_ref());
    search.options.limits.steps = effort.steps - effort.steps.saturating_sub(search.spent) / 2;
    let gave_up = match search.smallest(&variants, effort.edits) {
        Ok(Some(repair)) => return Ok(Some(repair)),
        Ok(None) if search.left == 0 => {
            TooLarge::new("the search for the smallest repair tries too many programs", effort.programs)
        }
        Ok(None) => TooLarge::new("the smallest repair takes more edits", effort.edits as u64),
        Err(bound) if bound.on == Bound::Steps => {
            for_steps("the search for the smallest repair takes too many steps")(bound)
        }
        Err(bound) => return Err(bound),
    };
    search.options.limits.steps = effort.steps;
    for (with_barriers, variant) in [false, true].into_iter().flat_map(|with| variants.iter().map(move |of| (with, of)))
    {
        if let Some(repair) = search.thinned(variant, with_barriers).map_err(&in_all)? {
            return Ok(Some(Repair { gave_up: Some(gave_up), ..repair }));
        }
    }
    // There is no repair up to that size, and all edits together are not a repair either.
    if search.left > 0 && gave_up.on == Bound::Fixed { Ok(None) } else { Err(gave_up) }
}

/// The program without the stated values that a repair may change: first those of plain reads, then also those of
/// racing reads.
fn variants(program: &Program, race: Option<&Execution>) -> Vec<Program> {
    let is_plain =
        |at: (usize, usize)| program.operations().any(|(place, operation)| place == at && !operation.atomic());
    let mut guarded = program.clone();
    guarded.pins.retain(|pin| !is_plain(pin.read));
    let races = |at: (usize, usize)| {
        race.is_some_and(|race| {
            race.races.iter().any(|&(a, b)| [a, b].map(|event| race.instance.origins[event]).contains(&at))
        })
    };
    let mut open = guarded.clone();
    open.pins.retain(|pin| !races(pin.read));
    if open == guarded { vec![guarded] } else { vec![guarded, open] }
}

/// Adapts a [`TooLarge`] to name what took too many steps.
fn for_steps(what: &'static str) -> impl Fn(TooLarge) -> TooLarge {
    move |bound| if bound.on == Bound::Steps { TooLarge::steps(what, bound.bound) } else { bound }
}

struct RepairSearch<'a> {
    filter: Option<&'a Condition>,
    options: Options,
    tried: HashSet<BTreeSet<Edit>>,
    left: u64,
    /// Steps of all searches so far.
    spent: u64,
    only_barriers: bool,
}

impl RepairSearch<'_> {
    fn find_race(&mut self, program: &Program) -> Result<Option<Execution>, TooLarge> {
        find_race_within(program, self.filter, &self.options, &mut self.spent)
    }

    /// The repair of any variant with the fewest edits, at most `max`.
    fn smallest(&mut self, variants: &[Program], max: usize) -> Result<Option<Repair>, TooLarge> {
        for size in 0..=max {
            for variant in variants {
                self.tried.clear();
                let found = self.at_most(variant, &mut BTreeSet::new(), size)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    fn at_most(
        &mut self,
        program: &Program,
        edits: &mut BTreeSet<Edit>,
        size: usize,
    ) -> Result<Option<Repair>, TooLarge> {
        if self.left == 0 || !self.tried.insert(edits.clone()) {
            return Ok(None);
        }
        self.left -= 1;
        let edited = apply(program, edits);
        let Some(race) = self.find_race(&edited)? else {
            return self.irreducible(program, edits.clone());
        };
        if size == 0 {
            return Ok(None);
        }
        for edit in self.candidates(program, &edited, &race) {
            if edits.insert(edit) {
                let found = self.at_most(program, edits, size - 1)?;
                edits.remove(&edit);
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    fn candidates(&self, program: &Program, edited: &Program, race: &Execution) -> Vec<Edit> {
        let mut edits = candidates(program, edited, race);
        edits.retain(|edit| !self.only_barriers || matches!(edit, Edit::Barrier(..)));
        edits
    }

    fn verified(&mut self, program: Program, edits: &BTreeSet<Edit>) -> Result<Option<Repair>, TooLarge> {
        if self.find_race(&program)?.is_some() {
            return Ok(None);
        }
        let summary = summarize_within(&program, &self.options, u64::MAX, &[], &mut self.spent)?;
        let edits = edits.iter().copied().collect();
        let repair = Repair { edits, program, executions: summary.executions, gave_up: None };
        Ok((summary.finished > 0).then_some(repair))
    }

    /// Applies every edit that could help, and then removes those that are not needed. New barriers are tried only
    /// `with_barriers`: those of several races may contradict each other.
    fn thinned(&mut self, program: &Program, with_barriers: bool) -> Result<Option<Repair>, TooLarge> {
        let mut edits = BTreeSet::new();
        loop {
            let edited = apply(program, &edits);
            let Some(race) = self.find_race(&edited)? else { break };
            let before = edits.len();
            let is_offered = |edit: &Edit| match edit {
                Edit::Barrier(after, before, _) => with_barriers && after < before,
                _ => true,
            };
            edits.extend(self.candidates(program, &edited, &race).into_iter().filter(is_offered));
            if edits.len() == before {
                return Ok(None);
            }
        }
        self.irreducible(program, edits)
    }

    /// The repair by `edits`, without those that are not needed; `None` if they are not a repair.
    fn irreducible(&mut self, program: &Program, mut edits: BTreeSet<Edit>) -> Result<Option<Repair>, TooLarge> {
        let Some(mut best) = self.verified(apply(program, &edits), &edits)? else { return Ok(None) };
        loop {
            let before = edits.len();
            for edit in edits.clone() {
                edits.remove(&edit);
                match self.verified(apply(program, &edits), &edits)? {
                    Some(repair) => best = repair,
                    None => drop(edits.insert(edit)),
                }
            }
            if edits.len() == before {
                return Ok(Some(best));
            }
        }
    }
}

/// The edits that may prevent a race of `execution`, an execution of `edited`; the cheap ones first.
fn candidates(program: &Program, edited: &Program, execution: &Execution) -> Vec<Edit> {
    let Some(&(a, b)) = execution.races.first() else { return Vec::new() };
    // Inserted barriers shift indices: edits use the indices of the program without them.
    let back = |event: usize| {
        let (thread, at) = execution.instance.origins[event];
        let inserted = edited.threads[thread].code[..at].iter().filter(|instruction| is_inserted(instruction)).count();
        (thread, at - inserted)
    };
    // An edit of shared code is named by its first execution, so that equal edits are.
    let named = |place| group(program, place).first().copied().unwrap_or(place);
    let (first, second) = (back(a), back(b));
    let agents = [first, second].map(|place| program.threads[place.0].agent);
    let common = if first.0 == second.0 { Scope::Workgroup } else { offered::narrowest(agents[0], agents[1]) };
    let trace = &execution.instance.trace;
    let class = trace.operation(a).access().map_or(Class::Uniform, |access| access.class);
    let mut edits = Vec::new();
    for (place, event) in [(first, a), (second, b)] {
        let place = if program.shares_code() { named(place) } else { place };
        offered::access(place, trace.operation(event), common, &mut edits);
    }
    // A barrier orders nothing through an atomic whose class it does not have; an edge in between may need a wider
    // scope than the two accesses.
    let classes: BTreeSet<_> =
        program.operations().filter_map(|(_, operation)| Some(operation.access()?.class)).collect();
    let scopes: BTreeSet<_> = (0..program.threads.len())
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .map(|(a, b)| offered::narrowest(program.threads[a].agent, program.threads[b].agent))
        .collect();
    for (thread, code) in edited.threads.iter().enumerate() {
        let own = code.code.iter().filter(|instruction| !is_inserted(instruction));
        for (at, instruction) in own.enumerate() {
            let InstructionKind::Execute { operation, .. } = &instruction.kind else { continue };
            let place = (thread, at);
            if offered::synchronizes(operation) && group(program, place).first() == Some(&place) {
                offered::synchronization(place, operation, &classes, &scopes, &mut edits);
            }
        }
    }
    let together = matches!((agents[0], agents[1]),
        (Agent::Device { workgroup: a, .. }, Agent::Device { workgroup: b, .. }) if a == b);
    if together && first.0 != second.0 && program.is_straight() {
        let (first, second) = if program.shares_code() { (named(first), named(second)) } else { (first, second) };
        edits.push(Edit::Barrier(first, second, class));
        edits.push(Edit::Barrier(second, first, class));
    }
    edits
}

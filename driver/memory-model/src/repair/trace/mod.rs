//! Repairs of a race that a trace shows: the smallest set of edits of its sites and commands after which the same
//! execution has the race no more.
//!
//! Unlike the repair of a program, which is verified for all executions, this one is verified for one: reads-from of
//! the atomics is fixed (the flag was seen), that of other reads may change with an edit; that of racing atomics, too,
//! if there is no repair otherwise. An edit of a site changes all its events. Verified means that, by the axioms on the
//! edited trace, the two accesses do not race, no other race was added, the execution remains consistent, and the trace
//! well-formed.
//!
//! 1. "Smallest" assumes that adding an edit to a repair leaves a repair. A wider scope may break that, by adding
//!    writes to a modification order; then a smaller repair may be missed, but none is wrong.
//! 2. That both accesses become atomic is the last repair, since it orders nothing: what is read may still be old.
//! 3. A dependency has access flags, but no ranges of memory: it covers all accesses of its commands.

mod apply;
mod edit;

pub use edit::{Dependency, Memory, TraceEdit};

use std::collections::BTreeSet;

use super::{Edit, offered};
use crate::event::{Command, Event, Scope, Site, Stage, Trace};
use crate::model::{Model, Overwrite};
use crate::relations::{Choice, Frame};
use crate::row::Row;
use crate::slice::{Slice, TraceError};
use crate::wellformed::defects;

/// Bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEffort {
    /// Maximum number of edits of a repair.
    pub edits: usize,
    /// Maximum number of edited traces that the search for the smallest decides.
    pub traces: u64,
    /// Maximum number of repairs of the smallest size.
    pub repairs: usize,
    /// What an edit is.
    pub terms: Terms,
    /// Whether new control barriers are tried.
    pub barriers: bool,
}

/// The edits of operations that repairs may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// The operands of SPIR-V, each alone.
    Operands,
    /// What languages have words for: the whole order that a memory barrier gives, and the attributes of a variable.
    Whole {
        /// Whether atomics can order other memory, and scopes can be chosen.
        atomics: bool,
    },
}

impl Default for TraceEffort {
    fn default() -> Self {
        Self { edits: 6, traces: 2000, repairs: 3, terms: Terms::Operands, barriers: true }
    }
}

/// The repairs of a race.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceRepairs {
    /// Sets of edits, the smallest first; each alone is a repair. Empty if there is none.
    pub repairs: Vec<Vec<TraceEdit>>,
    /// Whether no smaller set of the edits that were tried is a repair (if there is none: no set within the bounds).
    pub smallest: bool,
    /// Whether the racing reads, if they are atomic, may read something else after a repair than they did: there is no
    /// repair otherwise. A read that was stale, say, cannot be after it.
    pub racing_reads_change: bool,
    /// Number of edited traces that were decided.
    pub tried: u64,
}

/// The repairs of the race `pair`. There are none if the pair does not race.
///
/// # Errors
///
/// If the trace has more than 128 events or is ill-formed, if `choice` does not fit, or if the pair does not conflict.
pub fn of_trace(
    trace: &Trace,
    choice: &Choice<u128>,
    pair: (usize, usize),
    model: Model,
    effort: TraceEffort,
) -> Result<TraceRepairs, TraceError> {
    let slice = Slice::new(trace, choice, model)?;
    let pair = slice.pair(pair)?;
    Ok(of_slice(&slice, pair, effort))
}

/// As [`of_trace`], for a pair of a slice that conflicts.
pub(crate) fn of_slice(slice: &Slice<'_>, pair: (usize, usize), effort: TraceEffort) -> TraceRepairs {
    if !slice.is_race(pair.0, pair.1) {
        return TraceRepairs { smallest: true, ..TraceRepairs::default() };
    }
    let reads = slice.frame.sets.reads;
    let plain = reads & !slice.frame.sets.atomics;
    let racing = reads & (1 << pair.0 | 1 << pair.1);
    let TraceEffort { traces: left, terms, barriers, .. } = effort;
    let mut search = TraceRepairSearch { slice, pair, open: plain, consistent: true, left, tried: 0, terms, barriers };
    let mut found = search.repairs(effort);
    if found.repairs.is_empty() && racing & !plain != 0 {
        search.open = plain | racing;
        found = TraceRepairs { racing_reads_change: true, ..search.repairs(effort) };
    }
    found
}

/// What an edited trace is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    /// The pair does not race.
    removed: bool,
    /// And the edits break nothing else.
    repaired: bool,
}

struct TraceRepairSearch<'a> {
    slice: &'a Slice<'a>,
    pair: (usize, usize),
    /// Reads whose sources may change.
    open: u128,
    /// Whether the trace itself is consistent, so that an edited one must be.
    consistent: bool,
    left: u64,
    tried: u64,
    terms: Terms,
    barriers: bool,
}

type Edits = BTreeSet<TraceEdit>;

impl TraceRepairSearch<'_> {
    fn decide(&mut self, edits: &Edits) -> Verdict {
        self.left = self.left.saturating_sub(1);
        self.tried += 1;
        self.verdict(edits).unwrap_or(Verdict { removed: false, repaired: false })
    }

    /// The verdict, if the edited trace fits and its commands have an order.
    fn verdict(&self, edits: &Edits) -> Option<Verdict> {
        let edited = apply::apply(self.slice.trace, &self.slice.choice, edits);
        if edited.trace.len() > u128::LIMIT {
            return None;
        }
        let frame = Frame::<u128>::new(&edited.trace, self.slice.frame.model);
        if !frame.system.closed_is_acyclic() {
            return None;
        }
        let choice = edited.choice(&frame, &self.open)?;
        let after = Slice::derived(&edited.trace, frame, choice);
        let [a, b] = [self.pair.0, self.pair.1].map(|event| edited.events[event]);
        if after.is_race(a, b) {
            return Some(Verdict { removed: false, repaired: false });
        }
        let old = self.slice.races();
        let old: BTreeSet<_> = old.iter().map(|(a, b)| (edited.events[a], edited.events[b])).collect();
        let adds_none = after.races().iter().all(|race| old.contains(&race));
        let repaired =
            adds_none && (!self.consistent || after.violation().is_none()) && defects(&edited.trace).is_empty();
        Some(Verdict { removed: true, repaired })
    }

    fn is_repair(&mut self, edits: &Edits) -> bool {
        self.decide(edits).repaired
    }

    fn repairs(&mut self, effort: TraceEffort) -> TraceRepairs {
        let mut choice = self.slice.choice.clone();
        self.open.iter().for_each(|read| choice.sources[read] = None);
        let recorded = Slice::derived(self.slice.trace, self.slice.frame.clone(), choice);
        self.consistent = recorded.violation().is_none();
        let (additions, insertions) = self.candidates();
        let mut found = TraceRepairs { smallest: true, ..TraceRepairs::default() };
        for edit in insertions
            .iter()
            .filter(|edit| matches!(edit, TraceEdit::Api(_)))
            .chain(&additions)
            .chain(insertions.iter().filter(|edit| matches!(edit, TraceEdit::Code(_))))
        {
            if found.repairs.len() < effort.repairs && self.is_repair(&Edits::from([*edit])) {
                found.repairs.push(vec![*edit]);
            }
        }
        if found.repairs.is_empty() {
            let bases = std::iter::once(None).chain(insertions.iter().copied().map(Some));
            let mut best: Option<Edits> = None;
            for base in bases {
                let base: Edits = base.into_iter().collect();
                let max_edits = best.as_ref().map_or(effort.edits, |best| best.len() - 1);
                let smaller = self.smallest(&base, &additions, max_edits);
                best = smaller.or(best);
            }
            found.smallest = self.left > 0;
            if best.is_none() && !found.smallest {
                best = self.any(&additions);
            }
            found.repairs.extend(best.map(|best| best.into_iter().collect()));
        }
        let atomics = self.atomics().filter(|edit| self.is_repair(&Edits::from([*edit])));
        found.repairs.extend(atomics.map(|edit| vec![edit]));
        found.tried = self.tried;
        found
    }

    /// The smallest repair of `base` and at least one of `additions`, with at most `max_edits` edits.
    fn smallest(&mut self, base: &Edits, additions: &[TraceEdit], max_edits: usize) -> Option<Edits> {
        let all: Edits = base.iter().chain(additions).copied().collect();
        if base.len() >= max_edits || !self.decide(&all).removed {
            return None;
        }
        // What no repair can do without.
        let mut needed = base.clone();
        let mut optional = Vec::new();
        for edit in additions {
            let mut without = all.clone();
            without.remove(edit);
            if self.left > 0 && self.decide(&without).removed {
                optional.push(*edit);
            } else {
                needed.insert(*edit);
            }
            if self.left == 0 {
                return None;
            }
        }
        let room = max_edits.checked_sub(needed.len())?;
        (0..=room).find_map(|more| self.extend(&mut needed.clone(), &optional, more))
    }

    /// A repair by `edits` and `more` of `optional`.
    fn extend(&mut self, edits: &mut Edits, optional: &[TraceEdit], more: usize) -> Option<Edits> {
        if self.left == 0 {
            return None;
        }
        if more == 0 {
            return self.is_repair(edits).then(|| edits.clone());
        }
        if optional.len() < more {
            return None;
        }
        let all = edits.iter().chain(optional).copied().collect();
        if !self.decide(&all).removed {
            return None;
        }
        for (at, edit) in optional.iter().enumerate() {
            edits.insert(*edit);
            let found = self.extend(edits, &optional[at + 1..], more - 1);
            edits.remove(edit);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// All additions without those that are not needed, if they are a repair.
    fn any(&mut self, additions: &[TraceEdit]) -> Option<Edits> {
        let mut edits: Edits = additions.iter().copied().collect();
        if !self.is_repair(&edits) {
            return None;
        }
        for edit in additions {
            edits.remove(edit);
            if !self.is_repair(&edits) {
                edits.insert(*edit);
            }
        }
        Some(edits)
    }

    /// The narrowest scope that contains both agents.
    fn common(&self) -> Scope {
        let trace = self.slice.trace;
        if trace.same_agent(self.pair.0, self.pair.1) {
            return Scope::Workgroup;
        }
        offered::narrowest(trace.agent(self.pair.0), trace.agent(self.pair.1))
    }

    /// Both accesses as atomics, if both have sites.
    fn atomics(&self) -> Option<TraceEdit> {
        let site = |event: usize| self.slice.trace.events[event].site;
        let [a, b] = [site(self.pair.0)?, site(self.pair.1)?];
        Some(TraceEdit::Code(Edit::Atomic(a.min(b), a.max(b), self.common())))
    }

    /// Edits of operations of the trace, and insertions of barriers and dependencies.
    fn candidates(&self) -> (Vec<TraceEdit>, Vec<TraceEdit>) {
        let trace = self.slice.trace;
        let site = |event: usize| trace.events[event].site;
        let mut edits: Vec<Edit<Site>> = Vec::new();
        let mut insertions = self.dependencies();
        let (a, b) = self.pair;
        if let (Some(first), Some(second), Some(access)) = (site(a), site(b), trace.operation(a).access())
            && self.barriers
            && apply::in_one_workgroup(trace, a, b)
        {
            let barrier = |a, b| TraceEdit::Code(Edit::Barrier(a, b, access.class));
            insertions.push(barrier(first, second));
            insertions.extend((first != second).then(|| barrier(second, first)));
        }
        if let Terms::Whole { atomics } = self.terms {
            return (self.whole(atomics), insertions);
        }
        // An edit may make another one possible: MakeAvailable needs release semantics.
        let mut changed = trace.clone();
        loop {
            let known = edits.len();
            for edit in self.offered(&changed) {
                if !edits.contains(&edit) {
                    edits.push(edit);
                }
            }
            if edits.len() == known {
                break;
            }
            let all = edits.iter().map(|edit| TraceEdit::Code(*edit)).collect();
            changed = apply::apply(trace, &self.slice.choice, &all).trace;
        }
        // Those of the accesses come last: of equally many edits, those of synchronization repair more races.
        for event in [Some(a), Some(b).filter(|b| site(*b) != site(a))].into_iter().flatten() {
            if let Some(site) = site(event) {
                offered::access(site, trace.operation(event), self.common(), &mut edits);
            }
        }
        (edits.into_iter().map(TraceEdit::Code).collect(), insertions)
    }

    /// Edits in the terms of languages: of what synchronizes, then of the two accesses.
    fn whole(&self, atomics: bool) -> Vec<TraceEdit> {
        let (trace, common) = (self.slice.trace, self.common());
        let access = |event: usize| trace.operation(event).access();
        let Some(class) = access(self.pair.0).map(|access| access.class) else { return Vec::new() };
        let mut edits = BTreeSet::new();
        for Event { site, operation, .. } in &trace.events {
            let Some(site) = site.filter(|_| offered::synchronizes(operation)) else { continue };
            if operation.atomic() && !atomics {
                continue;
            }
            edits.extend(offered::order(site, operation, class));
            if atomics && !operation.control_barrier() && operation.scope < Some(common) {
                edits.insert(Edit::Widen(site, common));
            }
        }
        let mut edits: Vec<_> = edits.into_iter().map(TraceEdit::Code).collect();
        let private = |event: usize| access(event).is_some_and(|access| !access.non_private);
        let site = |event: usize| trace.events[event].site;
        if let (Some(a), Some(b)) = (site(self.pair.0), site(self.pair.1))
            && (private(self.pair.0) || private(self.pair.1))
        {
            edits.push(TraceEdit::Code(Edit::Coherent(a, b, common)));
        }
        edits
    }

    /// Edits of the synchronization of `trace`, which is the slice's with edits of operations.
    fn offered(&self, trace: &Trace) -> Vec<Edit<Site>> {
        let mut edits = Vec::new();
        let classes: BTreeSet<_> =
            trace.events.iter().filter_map(|event| Some(event.operation.access()?.class)).collect();
        let threads: BTreeSet<_> = trace.events.iter().map(|event| event.thread).collect();
        let pairs = threads.iter().flat_map(|a| threads.range(..a).map(move |b| (trace.agents[*a], trace.agents[*b])));
        let scopes: BTreeSet<_> = pairs.map(|(a, b)| offered::narrowest(a, b)).collect();
        let mut seen = BTreeSet::new();
        for Event { site, operation, .. } in &trace.events {
            let order = (operation.acquire, operation.release, operation.semantics, operation.scope);
            let flags = (operation.make_available, operation.make_visible);
            let Some(site) = site.filter(|site| seen.insert((*site, order, flags))) else { continue };
            if offered::synchronizes(operation) {
                offered::synchronization(site, operation, &classes, &scopes, &mut edits);
            }
        }
        // SPIR-V has no execution scope beyond the workgroup ("OpControlBarrier").
        let barrier =
            |site: Site| trace.events.iter().any(|event| event.site == Some(site) && event.operation.control_barrier());
        edits.retain(|edit| !matches!(*edit, Edit::Widen(site, scope) if scope > Scope::Workgroup && barrier(site)));
        edits
    }

    /// Dependencies between the commands of the two accesses, in each direction that submission allows.
    fn dependencies(&self) -> Vec<TraceEdit> {
        let trace = self.slice.trace;
        let mut found = Vec::new();
        for (first, second) in [self.pair, (self.pair.1, self.pair.0)] {
            let (Some(from), Some(to)) = (trace.command(first), trace.command(second)) else { continue };
            let on_host = |command: Command| command.stage == Stage::Host;
            if from == to || !on_host(from) && !on_host(to) && from.number > to.number {
                continue;
            }
            let writes = |event: usize| trace.operation(event).writes();
            let overwrites = writes(second) && !trace.operation(second).reads();
            let memory = match (writes(first), overwrites) {
                (false, _) => Memory::Execution,
                (true, true) if self.slice.frame.model.overwrite == Overwrite::Availability => Memory::Available,
                _ => Memory::Visible,
            };
            let ordered = self.slice.frame.system.contains(first, second);
            found.push(TraceEdit::Api(Dependency { from, to, memory, ordered }));
        }
        found
    }
}

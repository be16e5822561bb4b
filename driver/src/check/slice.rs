//! A slice: of the events of a log, those that decide whether two accesses race, as a trace of the memory model.

use std::collections::{BTreeMap, BTreeSet};

use spelter_memory_model::Model;
use spelter_memory_model::event::{self, Event, Trace};
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{Choice, Frame, Source, conflicts};
use spelter_memory_model::row::{Row, SparseRow};
use spelter_shaders::ir::Site;
use thiserror::Error;

use super::log::{Accessed, Index, Log};
use super::{reach, reduce};

/// The most events of a slice that is explained: the relations of a trace of this size have rows of 128 bits, with room
/// for what repairs insert.
pub const MAX_EVENTS: usize = 96;

/// The most events that are decided.
const MAX_DECIDED: usize = 384;

/// The most events of which those at the beginning and the end are tried.
const MAX_LONG: usize = 2048;

/// The most nodes of paths that are visited to decide about all pairs of a candidate.
pub(super) const MAX_EFFORT_OF_CANDIDATE: usize = 1 << 23;

/// Why it is not known whether accesses race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undecided {
    /// The events that may order the accesses are too many.
    #[error("more than {MAX_DECIDED} events may order the two accesses")]
    TooLarge,
    /// The accesses of the word are too many to compare all pairs.
    #[error("the word is accessed too often to compare all pairs of accesses")]
    TooManyPairs,
    /// The replay made fewer than two conflicting accesses of the word.
    #[error("the accesses did not occur again when the dispatch was repeated")]
    NotReproduced,
    /// The dispatch was stopped before its end when it ran again.
    #[error("the dispatch was stopped, and was not repeated to its end")]
    Stopped,
    /// The replays of the dispatch have done all that they may do.
    #[error("repeating the dispatch to its end would take too long")]
    TooLong,
    /// The log does not go to the end of the window.
    #[error("the recording needs more memory than its limit")]
    Memory,
}

/// What a slice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Events that may order the accesses as the kernel is.
    Verdict,
    /// Also atomics that would order them if their scopes or semantics were others: for explanations and repairs.
    Repair,
}

/// A trace of the events that decide about a pair of accesses.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The events.
    pub trace: Trace,
    /// Reads-from and modification orders.
    pub choice: Choice<u128>,
    /// The two accesses in the trace.
    pub pair: (usize, usize),
    /// The instruction and the invocation of each event; the memory only for accesses.
    pub events: Vec<Accessed>,
    /// The dispatch and the instruction of each [`event::Site`] of the trace.
    pub sites: Vec<(u32, Site)>,
}

/// The slice for two accesses of a log, the earlier one first.
pub(super) fn slice_of(
    log: &Log,
    (first, second): (Index, Index),
    purpose: Purpose,
    effort: &mut usize,
) -> Result<Slice, Undecided> {
    let between = if log.entry(first).thread == log.entry(second).thread {
        // Program order is all that orders accesses of one invocation.
        [first, second].into()
    } else {
        reach::between(log, (first, second), purpose, effort)?
    };
    let slice = of_events(log, (first, second), purpose, &between)?;
    // The relations between all pairs of its events.
    *effort = effort.saturating_sub(slice.trace.len() * slice.trace.len() / 8);
    Ok(slice)
}

/// What one path between two accesses of different invocations says, whose slice is too large.
pub(super) enum OnePath {
    /// There is none: the two accesses are the whole slice.
    None(Box<Slice>),
    /// It orders them.
    Orders,
    /// Other events may order them.
    Open,
}

/// Looks at a part of the execution: the shortest path between two accesses.
///
/// What a part orders is ordered in the whole, as far as no release sequence is longer in the part: `reduce` keeps the
/// writes that end them.
pub(super) fn by_a_path(log: &Log, pair: (Index, Index), effort: &mut usize) -> Result<OnePath, Undecided> {
    let path = match reach::shortest(log, pair, Purpose::Verdict, effort) {
        Ok(Some(path)) => path,
        Ok(None) => {
            let slice = of_events(log, pair, Purpose::Verdict, &[pair.0, pair.1].into())?;
            return Ok(OnePath::None(Box::new(slice)));
        }
        Err(Undecided::TooLarge) => return Ok(OnePath::Open),
        Err(why) => return Err(why),
    };
    let Ok(slice) = of_events(log, pair, Purpose::Verdict, &path.into_iter().collect()) else {
        return Ok(OnePath::Open);
    };
    *effort = effort.saturating_sub(slice.trace.len() * slice.trace.len() / 8);
    Ok(if slice.is_race() { OnePath::Open } else { OnePath::Orders })
}

/// The slice of the events that a repair of a race may change: all, or those of one path if they are too many.
pub(super) fn for_repair(log: &Log, pair: (Index, Index), effort: &mut usize) -> Option<Slice> {
    let slice = slice_of(log, pair, Purpose::Repair, effort).ok();
    slice.or_else(|| of_a_path(log, pair, Purpose::Repair, effort))
}

/// The slice of one path between two accesses, if there is one.
fn of_a_path(log: &Log, pair: (Index, Index), purpose: Purpose, effort: &mut usize) -> Option<Slice> {
    let path = reach::shortest(log, pair, purpose, effort).ok().flatten()?;
    of_events(log, pair, purpose, &path.into_iter().collect()).ok()
}

/// The slice of the events among these that matter.
fn of_events(log: &Log, pair: (Index, Index), purpose: Purpose, between: &BTreeSet<Index>) -> Result<Slice, Undecided> {
    let kept = reduce::reduce(log, pair, purpose, between, MAX_EVENTS)?;
    let Recorded { trace, choice, pair, sites } = recorded(log, pair, &kept)?;
    let events = kept.iter().map(|&index| log.accessed(index)).collect();
    Ok(Slice { trace, choice, pair, events, sites })
}

/// Decides about a pair whose slice is too large to be explained: `None` if those of its events that are at the
/// beginning and at the end order it, or all do; or else the slice of the former, in which the accesses race as well.
pub(super) fn decide_long(log: &Log, pair: (Index, Index), effort: &mut usize) -> Result<Option<Slice>, Undecided> {
    let between = reach::between(log, pair, Purpose::Verdict, effort)?;
    let kept = reduce::reduce(log, pair, Purpose::Verdict, &between, MAX_LONG)?;
    *effort = effort.checked_sub(kept.len() * kept.len() / 8).ok_or(Undecided::TooManyPairs)?;
    let half = MAX_EVENTS / 2 - 1;
    let mut ends: BTreeSet<Index> = kept.iter().take(half).chain(kept.iter().rev().take(half)).copied().collect();
    ends.extend([pair.0, pair.1]);
    let slice = of_events(log, pair, Purpose::Verdict, &ends)?;
    if !slice.is_race() {
        return Ok(None);
    }
    if kept.len() > MAX_DECIDED {
        return Err(Undecided::TooLarge);
    }
    *effort = effort.checked_sub(kept.len() * kept.len()).ok_or(Undecided::TooManyPairs)?;
    let all = recorded::<SparseRow>(log, pair, &kept)?;
    Ok(is_race(&all.trace, &all.choice, all.pair).then_some(slice))
}

impl Slice {
    /// Whether its pair races.
    pub(super) fn is_race(&self) -> bool {
        is_race(&self.trace, &self.choice, self.pair)
    }
}

/// Whether two events of a trace race.
fn is_race<R: Row>(trace: &Trace, choice: &Choice<R>, (first, second): (usize, usize)) -> bool {
    let frame = Frame::<R>::new(trace, Model::SPEC);
    let order = frame.order(choice);
    conflicts(&frame).contains(first, second) && !order.location_order.either(first, second)
}

/// Events of a log as a trace.
struct Recorded<R: Row> {
    trace: Trace,
    choice: Choice<R>,
    pair: (usize, usize),
    sites: Vec<(u32, Site)>,
}

fn recorded<R: Row>(log: &Log, (first, second): (Index, Index), kept: &[Index]) -> Result<Recorded<R>, Undecided> {
    let mut trace = Trace::default();
    let mut sites = Vec::new();
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for &index in kept {
        let number = log.entry(index).thread;
        let thread = *threads.entry(number).or_insert_with(|| {
            trace.agents.push(log.agent(number));
            trace.agents.len() - 1
        });
        let instance = log.instance(index).map(|(which, _)| which);
        let from = (log.thread(index).dispatch, log.entry(index).site);
        let site = sites.iter().position(|&known| known == from).unwrap_or_else(|| {
            sites.push(from);
            sites.len() - 1
        });
        let site = Some(event::Site(site as u32));
        trace.events.push(Event { thread, operation: log.operation(index), instance, site });
    }
    let place = |index: Index| kept.binary_search(&index).ok();
    let mut order = Relation::new(kept.len());
    for (a, &first) in kept.iter().enumerate().filter(|(at, _)| trace.operation(*at).atomic()) {
        for (b, &second) in kept.iter().enumerate().skip(a + 1).filter(|(at, _)| trace.operation(*at).atomic()) {
            if reach::precedes(log, first, second)? {
                order.insert(a, b);
            }
        }
    }
    let source = |&index: &Index| log.entry(index).source.get().and_then(place).map(Source::Write);
    let choice = Choice { sources: kept.iter().map(source).collect(), modification_order: order };
    let pair = (place(first).unwrap_or_default(), place(second).unwrap_or_default());
    Ok(Recorded { trace, choice, pair, sites })
}

/// The slice for the `first` and the `second` event of a log.
///
/// # Errors
///
/// The events that may order them are too many.
pub fn slice(log: &Log, first: usize, second: usize, purpose: Purpose) -> Result<Slice, Undecided> {
    let (first, second) = (first.min(second), first.max(second));
    slice_of(log, (Index(first as u32), Index(second as u32)), purpose, &mut { MAX_EFFORT_OF_CANDIDATE })
}

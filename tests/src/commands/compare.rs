//! Compares what a device reports of a program with what the axioms say.
//!
//! The device keeps of each byte the last write, and of the reads since the last one of each queue and stage. Only
//! these are compared with a new access: they are *adjacent*. A race of theirs hides races of others.

use std::collections::BTreeSet;

use spelter_driver::Error;
use spelter_driver::check::{Finding, FoundAccess, Hazard, Rule, Severity};
use spelter_memory_model::slice::TraceError;

pub use super::history::Owner;
use super::history::{Access, History, Item, TRANSITION, barrier_ranges, hazard, same_memory, whole_image};
use super::program::{BUFFERS, IMAGES, Program, Range};
use super::{Machine, Pace};

/// Two accesses without a dependency. Reports have them in the order of submission, in which they need not have run. So
/// the first one is the one with the smaller [`Owner`], whichever ran first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// What made the first one.
    pub first: Owner,
    /// What made the second one.
    pub second: Owner,
    /// Which of them write.
    pub hazard: Hazard,
}

impl Pair {
    fn new(first: Owner, second: Owner, hazard: Hazard) -> Self {
        if first <= second {
            return Self { first, second, hazard };
        }
        let hazard = match hazard {
            Hazard::ReadAfterWrite => Hazard::WriteAfterRead,
            Hazard::WriteAfterRead => Hazard::ReadAfterWrite,
            Hazard::WriteAfterWrite => hazard,
        };
        Self { first: second, second: first, hazard }
    }
}

/// The result for a program.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Pairs that conflict for some bytes.
    pub pairs: usize,
    /// Those that race by the axioms, for some bytes.
    pub races: usize,
    /// Races of adjacent accesses that were not reported.
    pub missed: Vec<Pair>,
    /// What was reported and is no race.
    pub wrong: Vec<Pair>,
    /// Races that were not reported, each hidden by one that was.
    pub hidden: usize,
    /// Bytes with a race and no report.
    pub silent: Vec<Range>,
    /// Errors that name none of the program's accesses.
    pub strange: Vec<String>,
    /// Pairs with too many dependencies between them for a trace.
    pub too_large: usize,
}

impl Comparison {
    /// Whether the device and the axioms agree.
    pub fn agrees(&self) -> bool {
        self.missed.is_empty() && self.wrong.is_empty() && self.silent.is_empty() && self.strange.is_empty()
    }

    /// Runs a program, and compares.
    ///
    /// # Errors
    ///
    /// If the program breaks a rule of Vulkan.
    pub fn of(machine: &Machine, program: &Program) -> Result<Self, Error> {
        let findings = machine.run(program, Pace::InOrder)?;
        Ok(Self::with(program, &findings))
    }

    fn with(program: &Program, findings: &[Finding]) -> Self {
        let mut result = Self::default();
        let mut reported = BTreeSet::new();
        for finding in findings.iter().filter(|finding| finding.severity == Severity::Error) {
            match pair(finding) {
                Some(pair) => _ = reported.insert(pair),
                None => result.strange.push(finding.to_string()),
            }
        }
        let history = History::of(program);
        let (mut pairs, mut races, mut missed, mut hidden) = <[BTreeSet<Pair>; 4]>::default().into();
        for segment in segments(&history) {
            let (mut is_racy, mut is_reported) = (false, false);
            let of: Vec<(usize, &Access)> = on(&history, segment).collect();
            for (at, &(second, other)) in of.iter().enumerate() {
                for (from, &(first, one)) in of[..at].iter().enumerate() {
                    let (same, hosts) = (one.owner == other.owner, one.queue.is_none() && other.queue.is_none());
                    let Some(hazard) = hazard(one, other).filter(|_| !same && !hosts) else { continue };
                    let pair = Pair::new(one.owner, other.owner, hazard);
                    pairs.insert(pair);
                    match history.race(first, second, segment) {
                        Err(TraceError::TooLarge { .. }) => result.too_large += 1,
                        Err(error) => result.strange.push(format!("{pair:?}: {error}")),
                        Ok(false) => {}
                        Ok(true) if is_replaced(&history, segment, &of, from, at) => {}
                        Ok(true) => {
                            let found = reported.contains(&pair);
                            (is_racy, is_reported) = (true, is_reported || found);
                            races.insert(pair);
                            if !found {
                                let is_adjacent = is_adjacent(&history, segment, &of, from, at);
                                let set = if is_adjacent { &mut missed } else { &mut hidden };
                                set.insert(pair);
                            }
                        }
                    }
                }
            }
            if is_racy && !is_reported {
                result.silent.push(segment);
            }
        }
        result.wrong = reported.difference(&races).copied().collect();
        (result.pairs, result.races, result.hidden) = (pairs.len(), races.len(), hidden.len());
        result.missed = missed.into_iter().collect();
        result
    }
}

/// The pair of a finding, by the labels of the commands.
fn pair(finding: &Finding) -> Option<Pair> {
    let hazard = match finding.rule {
        Rule::Race(hazard) => hazard,
        Rule::Host => Hazard::ReadAfterWrite,
        Rule::Barrier | Rule::Note => return None,
    };
    Some(Pair::new(owner(finding.first.as_ref()?)?, owner(&finding.second)?, hazard))
}

fn owner(access: &FoundAccess) -> Option<Owner> {
    let Some(command) = &access.command else { return Some(Owner::Host) };
    let of_command = command.name.strip_prefix("layout transition before ");
    let (recording, at) = of_command.unwrap_or(&command.name).split_once(':')?.0.split_once('.')?;
    let (recording, at) = (recording.parse().ok()?, at.parse().ok()?);
    Some(if of_command.is_some() { Owner::Transition(recording, at) } else { Owner::Command(recording, at) })
}

/// Ranges that each access covers whole or not at all.
fn segments(history: &History) -> Vec<Range> {
    let mut list = Vec::new();
    // The last ones have the memory of those before them.
    for whole in (0..BUFFERS - 1).map(Range::whole).chain((0..IMAGES - 1).map(whole_image)) {
        let mut ends: BTreeSet<u64> = [0, whole.end].into();
        for item in &history.items {
            let ranges = match item {
                Item::Access(access) => vec![access.range],
                Item::Barrier { barrier, .. } => barrier_ranges(barrier.memory),
                _ => continue,
            };
            for range in ranges.into_iter().filter(|range| same_memory(*range, whole)) {
                ends.extend([range.start, range.end]);
            }
        }
        let ends: Vec<_> = ends.into_iter().collect();
        list.extend(ends.windows(2).map(|ends| Range { start: ends[0], end: ends[1], ..whole }));
    }
    list
}

fn on(history: &History, segment: Range) -> impl Iterator<Item = (usize, &Access)> {
    history.items.iter().enumerate().filter_map(move |(at, item)| match item {
        Item::Access(access)
            if same_memory(access.range, segment)
                && access.range.start <= segment.start
                && segment.end <= access.range.end =>
        {
            Some((at, access))
        }
        _ => None,
    })
}

/// Whether another write, ordered after the access at `from`, replaced its value before the access at `to`, whatever
/// that lacks: a layout transition, for which values need not be visible; or a write of the host itself, where the host
/// reads at `to`, since such a write needs order only (`axioms.rs`).
fn is_replaced(history: &History, segment: Range, of: &[(usize, &Access)], from: usize, to: usize) -> bool {
    let is_host = |access: &Access| access.queue.is_none();
    let reads_own = is_host(of[to].1) && !of[to].1.writes;
    let replaces = |(at, between): &(usize, &Access)| {
        let is_replacing = between.stage == TRANSITION || reads_own && is_host(between) && between.writes;
        is_replacing && history.race(of[from].0, *at, segment).is_ok_and(|races| !races)
    };
    of[from + 1..to].iter().any(replaces)
}

/// Whether the device compares the access at `to` with the one at `from`: none between them stands for the first one.
///
/// A write does if it is compared with both. Atomics are not compared with each other: so an atomic does not hide a
/// plain access from an atomic, nor an atomic of another queue or stage that it is not ordered after.
fn is_adjacent(history: &History, segment: Range, of: &[(usize, &Access)], from: usize, to: usize) -> bool {
    let ((number, first), second) = (of[from], of[to].1);
    // What a command accessed itself, before its own write, counts with it; accesses of the host are one by one.
    let own = |access: &Access| access.owner != Owner::Host && access.owner == second.owner;
    let place = |access: &Access| (access.queue, access.stage);
    let hides = |at: usize, between: &Access| {
        if !between.writes {
            let same = !first.writes && place(between) == place(first);
            return same && (first.atomic || !between.atomic);
        }
        let mutual = first.atomic && between.atomic;
        let stands = !mutual
            || between.owner == first.owner
            || place(between) == place(first) && first.writes
            || history.race(number, at, segment).is_ok_and(|races| !races);
        stands && !(between.atomic && second.atomic)
    };
    !of[from + 1..to].iter().any(|(at, between)| !own(between) && hides(*at, between))
}

//! Whether the repairs of a dispatch's races, each of which was tried alone, are repairs together: a program is
//! repaired by all of them. Races that one lack of barriers between neighbouring lines causes become a group with one
//! repair.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use spelter_shaders::ir::{Inst, InstData, Kernel, Scope, SiteData, SourceLine};

use super::barrier::VerifiedChange;
use super::change::Changed;
use super::merged::Change;
use super::place::{At, Text};
use super::trial::{Trials, Tried};
use super::{Repairs, own_workgroup};
use crate::check::dispatch::DispatchRun;
use crate::check::finding::{Finding, Repair};
use crate::check::found_memory::FoundPlace;
use crate::check::group::FindingGroup;
use crate::check::identity::FindingIdentity;
use crate::check::slice::Slice;

/// Races whose repairs are tried together, at most.
const MAX_RACES: usize = 512;

/// Trials of some of the repairs together, where all of them are none, at most: those of three or four among hundreds
/// that do not suffice beside the others are found.
const MAX_TOGETHER: usize = 48;

/// The least races of a group, and places where it needs barriers.
const MIN_RACES: usize = 4;
const MIN_PLACES: usize = 3;

/// What a repair says that is none beside those of other races.
const NOT_TOGETHER: &str = "; the repairs of the other races of this dispatch do not suffice beside it, nor it beside \
                            them: make theirs first, and check again";

/// What a repair says that was not tried beside those of other races, or without a result.
const NOT_KNOWN: &str = "; whether it suffices beside the repairs of the other races of this dispatch is not known: \
                         make it, and check again";

/// A race with a repair that trials verified.
pub(in crate::check) struct RepairedRace {
    identity: FindingIdentity,
    place: Option<FoundPlace>,
    sites: [SiteData; 2],
    /// The workgroup of both accesses.
    workgroup: Option<[u32; 3]>,
    repair: Repair,
    verified: VerifiedChange,
}

impl DispatchRun<'_> {
    /// Keeps the first repair of a race, if trials verified it, to try it with those of others.
    pub(in crate::check) fn keep_repaired(&self, race: &Finding, slice: &Slice, found: &mut Repairs) {
        let (Some(first), Some(verified)) = (&race.first, found.verified.take()) else { return };
        let Some(repair) = found.repairs.first().cloned() else { return };
        let mut repaired = self.repaired.borrow_mut();
        if repaired.len() >= MAX_RACES {
            append(&mut found.repairs, NOT_KNOWN);
        } else {
            let sites = [slice.pair.0, slice.pair.1].map(|event| slice.events[event].site);
            repaired.push(RepairedRace {
                identity: race.identity(),
                place: race.memory.as_ref().map(|memory| memory.place.clone()),
                sites: sites.map(|site| self.code.all().kernel.sites[site].clone()),
                workgroup: own_workgroup([first, &race.second]),
                repair,
                verified,
            });
        }
    }

    /// Tries the repairs of the dispatch's races together.
    pub(in crate::check) fn combine(&self) {
        let repaired = self.repaired.take();
        if repaired.len() < 2 {
            return;
        }
        let all: Vec<&RepairedRace> = repaired.iter().collect();
        let tried = if self.can_try() { self.try_together(&all) } else { Tried::Unknown };
        match tried {
            Tried::Silent => self.group(&all),
            Tried::Unknown => self.amend(&all, NOT_KNOWN),
            Tried::Races | Tried::Diverges => {
                let LeftOut { contradict, not_known } = left_out(&all, |races| self.try_together(races));
                self.amend(&contradict, NOT_TOGETHER);
                self.amend(&not_known, NOT_KNOWN);
            }
        }
    }

    /// Adds something to the first repairs of some races.
    fn amend(&self, races: &[&RepairedRace], what: &str) {
        races.iter().for_each(|race| {
            self.code.checker.amend(&race.identity, |finding| append(&mut finding.repairs, what));
        });
    }

    /// What the kernel with the repairs of some races does, as far as these races are concerned.
    fn try_together(&self, races: &[&RepairedRace]) -> Tried {
        let kernel = self.code.kernel();
        let mut changed = Changed::new(kernel, self.code.names.names.language());
        let mut made: Vec<&Change> = Vec::new();
        for race in races {
            let change = &race.verified.change;
            if !made.contains(&change) {
                if changed.also(change, kernel).is_none() {
                    return Tried::Races;
                }
                made.push(change);
            }
        }
        if made.len() < 2 {
            // It was tried for each of them.
            return Tried::Silent;
        }
        let changed = changed.finish();
        for race in races {
            let Some(mut trials) = Trials::new(self, race.sites.clone(), race.workgroup) else { return Tried::Unknown };
            match trials.try_everywhere(&changed) {
                Tried::Silent => {}
                other => return other,
            }
        }
        Tried::Silent
    }

    /// Says of races between lines without a barrier that they are one, and of others that one barrier repairs.
    fn group(&self, races: &[&RepairedRace]) {
        let kernel = self.code.kernel();
        let text = Text::new(kernel);
        let mut open: Vec<GroupMember<'_>> = races.iter().filter_map(|race| GroupMember::new(race, &text)).collect();
        open.sort_by_key(|member| member.span);
        let amend = |members: Vec<GroupMember<'_>>, group: FindingGroup| {
            let group = Arc::new(group);
            for member in members {
                self.code.checker.amend(&member.race.identity, |finding| finding.group = Some(Arc::clone(&group)));
            }
        };
        let mut others: Vec<GroupMember<'_>> = Vec::new();
        while !open.is_empty() {
            let first = open.remove(0);
            let (mut members, mut end) = (vec![first], first.span.1);
            open.retain(|member| {
                let joins = member.span.0 <= end && member.is_like(&first);
                if joins {
                    end = end.max(member.span.1);
                    members.push(*member);
                }
                !joins
            });
            match group_of(kernel, &text, &members) {
                Some(group) => amend(members, group),
                None => others.extend(members),
            }
        }
        while let Some(first) = others.first().copied() {
            let (members, rest) = others.into_iter().partition(|member| member.has_change_of(&first));
            others = rest;
            if let Some(group) = group_of_one_barrier(kernel, &text, &members) {
                amend(members, group);
            }
        }
    }
}

/// Races whose repairs are left out, so that those of the others suffice together.
#[derive(Debug, PartialEq, Eq)]
struct LeftOut<T> {
    /// Those whose repairs are none beside those of races before them, nor these beside them.
    contradict: Vec<T>,
    /// Those of which that is not known.
    not_known: Vec<T>,
}

/// The races that are left out of all, which are none together. They are tried by halves of what is not settled, each
/// with those before it that suffice: most suffice, and few trials settle many of them.
fn left_out<T: Copy>(all: &[T], mut try_together: impl FnMut(&[T]) -> Tried) -> LeftOut<T> {
    let (mut kept, mut left_out) = (Vec::new(), LeftOut { contradict: Vec::new(), not_known: Vec::new() });
    let halves = |part: &[T]| {
        let (first, second) = part.split_at(part.len().div_ceil(2));
        [second.to_vec(), first.to_vec()]
    };
    let (mut open, mut left) = (Vec::from(halves(all)), MAX_TOGETHER);
    while let Some(part) = open.pop() {
        let tried = if left > 0 { try_with(&mut kept, &part, &mut try_together) } else { Tried::Unknown };
        left = left.saturating_sub(1);
        match (tried, &part[..]) {
            (Tried::Silent, _) => {}
            (_, [_, _, ..]) if left > 0 => open.extend(halves(&part)),
            (Tried::Races | Tried::Diverges, [one]) => left_out.contradict.push(*one),
            _ => left_out.not_known.extend(part),
        }
    }
    left_out
}

/// Tries some with those that are kept, and keeps them if they suffice.
fn try_with<T: Copy>(kept: &mut Vec<T>, part: &[T], mut try_together: impl FnMut(&[T]) -> Tried) -> Tried {
    let before = kept.len();
    kept.extend(part);
    let tried = try_together(kept);
    if tried != Tried::Silent {
        kept.truncate(before);
    }
    tried
}

/// Adds something to the first repair.
fn append(repairs: &mut [Repair], what: &str) {
    repairs.iter_mut().take(1).for_each(|repair| repair.text.push_str(what));
}

/// A race in a group.
#[derive(Clone, Copy)]
struct GroupMember<'r> {
    race: &'r RepairedRace,
    /// The accesses' places in the text.
    span: (At, At),
}

impl<'r> GroupMember<'r> {
    /// `None` if it is repaired by something else than barriers.
    fn new(race: &'r RepairedRace, text: &Text<'_>) -> Option<Self> {
        race.workgroup?;
        race.verified.words.as_ref().filter(|_| race.verified.change.only_inserts())?;
        let of = |site: &SiteData| text.of_site(site).first().copied();
        let (a, b) = (of(&race.sites[0])?, of(&race.sites[1])?);
        Some(Self { race, span: (a.min(b), a.max(b)) })
    }

    /// Whether both races are about the same memory, and repaired by barriers of one kind.
    fn is_like(&self, other: &Self) -> bool {
        let words = |member: &Self| member.race.verified.words.as_ref().map(|words| words.barrier);
        self.race.place == other.race.place && words(self) == words(other)
    }

    /// Whether both races are about the same memory, and repaired by the same barriers in the same places.
    fn has_change_of(&self, other: &Self) -> bool {
        self.is_like(other) && self.race.verified.change == other.race.verified.change
    }
}

/// The group that some races are; `None` if they are few, or separated by a barrier.
fn group_of(kernel: &Kernel, text: &Text<'_>, members: &[GroupMember<'_>]) -> Option<FindingGroup> {
    let places: BTreeSet<At> = members.iter().flat_map(|member| member.race.verified.change.places()).collect();
    let (from, to) = (members.iter().map(|m| m.span.0).min()?, members.iter().map(|m| m.span.1).max()?);
    if members.len() < MIN_RACES || places.len() < MIN_PLACES || has_barrier(kernel, from, to) {
        return None;
    }
    let (place, words) = (members[0].race.place.as_ref()?, members[0].race.verified.words.as_ref()?);
    let line = |at: At| text.inst(at).and_then(|inst| kernel.line_of(inst));
    let (first, last) = (line(from)?, line(to)?);
    let (mut before, mut within): (Vec<&SourceLine>, Vec<&SourceLine>) = Default::default();
    for at in &places {
        let (earlier, later) = lines_around(kernel, *at);
        match (earlier, later) {
            (Some(earlier), Some(later)) if (&earlier.file, earlier.line) == (&later.file, later.line) => {
                within.push(later);
            }
            (_, Some(later)) => before.push(later),
            _ => return None,
        }
    }
    let parts = [
        (!before.is_empty()).then(|| format!("before {}", listed(&before, first))),
        (!within.is_empty()).then(|| {
            let lines = listed(&within, first);
            format!("between what is read and what is written in {lines}, which must be two statements")
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (barrier, around, count) = (words.barrier, &words.around, members.len());
    let repair = format!(
        "{barrier} {}, where all invocations of the workgroup execute it{around}; together they order all {count} races",
        parts.join(", and ")
    );
    Some(FindingGroup {
        title: format!("{count} data races in {place}, {}", from_to(first, last)),
        reason: format!(
            "no barrier is between the code at {first} and the code at {last}: it takes the invocations to run in \
             lockstep, which those of a subgroup need not do either"
        ),
        repair: Repair { text: repair, line: Some(first.clone()) },
        count,
    })
}

/// The group of some races that have one change; `None` if they are few.
fn group_of_one_barrier(kernel: &Kernel, text: &Text<'_>, members: &[GroupMember<'_>]) -> Option<FindingGroup> {
    let (from, to) = (members.iter().map(|m| m.span.0).min()?, members.iter().map(|m| m.span.1).max()?);
    if members.len() < MIN_RACES {
        return None;
    }
    // The accesses that are closest to the barrier tell its place best.
    let closest = members.iter().max_by_key(|member| (member.span.0, Reverse(member.span.1)))?;
    let line = |at: At| text.inst(at).and_then(|inst| kernel.line_of(inst));
    let (first, last, count) = (line(from)?, line(to)?, members.len());
    let repair = &closest.race.repair;
    Some(FindingGroup {
        title: format!("{count} data races in {}, {}", closest.race.place.as_ref()?, from_to(first, last)),
        reason: "nothing orders the accesses of any of them, and one change orders them all".to_owned(),
        repair: Repair { text: format!("{}; it orders all {count} races", repair.text), line: repair.line.clone() },
        count,
    })
}

/// Whether a control barrier is between two places in the text.
fn has_barrier(kernel: &Kernel, from: At, to: At) -> bool {
    let insts = |block: usize| kernel.blocks[kernel.layout[block]].insts.iter().enumerate();
    let all =
        (from.block..=to.block).flat_map(|block| insts(block).map(move |(index, inst)| (At { block, index }, inst)));
    let mut between = all.filter(|(at, _)| (from..to).contains(at));
    between.any(|(_, inst)| matches!(kernel.insts[*inst], InstData::Barrier { execution: Scope::Workgroup, .. }))
}

/// The lines of what comes before a place and after it in its block.
fn lines_around(kernel: &Kernel, at: At) -> (Option<&SourceLine>, Option<&SourceLine>) {
    let insts = &kernel.blocks[kernel.layout[at.block]].insts;
    let (before, after) = insts.split_at(at.index.min(insts.len()));
    let line = |inst: &Inst| kernel.line_of(*inst);
    (before.iter().rev().find_map(line), after.iter().find_map(line))
}

/// A line as a number, with the name of its file if that is not the one of the group's first line.
fn number(line: &SourceLine, first: &SourceLine) -> String {
    if line.file == first.file { line.line.to_string() } else { format!("{}:{}", line.file, line.line) }
}

/// `from line 3 to line 8`.
fn from_to(first: &SourceLine, last: &SourceLine) -> String {
    if (&first.file, first.line) == (&last.file, last.line) {
        return format!("in line {}", first.line);
    }
    format!("from line {} to line {}", first.line, number(last, first))
}

/// `each of the lines 3, 5, 8 and lib.glsl:2`.
fn listed(lines: &[&SourceLine], first: &SourceLine) -> String {
    let mut lines = lines.to_vec();
    lines.sort_by(|a, b| (a.file != first.file, &a.file, a.line).cmp(&(b.file != first.file, &b.file, b.line)));
    let mut numbers: Vec<String> = lines.into_iter().map(|line| number(line, first)).collect();
    numbers.dedup();
    match &numbers[..] {
        [] => String::new(),
        [one] => format!("line {one}"),
        [others @ .., last] => format!("each of the lines {} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of two numbers of `all` that contradict each other is kept.
    fn without(contradictions: &[(u32, u32)], all: u32) -> (LeftOut<u32>, usize) {
        let (all, mut trials): (Vec<u32>, usize) = ((0..all).collect(), 0);
        let left_out = left_out(&all, |some| {
            trials += 1;
            assert!(some.is_sorted(), "{some:?}");
            let has = |number: &u32| some.contains(number);
            if contradictions.iter().any(|(one, other)| has(one) && has(other)) { Tried::Races } else { Tried::Silent }
        });
        (left_out, trials)
    }

    #[test]
    fn few_trials_settle_many_repairs() {
        let of = |contradict: &[u32]| LeftOut { contradict: contradict.to_vec(), not_known: Vec::new() };
        assert_eq!(without(&[(0, 1)], 2), (of(&[1]), 2));
        assert_eq!(without(&[(1, 2), (0, 3)], 4).0, of(&[2, 3]));
        let (found, trials) = without(&[(3, 17), (3, 511), (200, 201)], 512);
        assert_eq!(found, of(&[17, 201, 511]));
        assert!(trials <= MAX_TOGETHER, "{trials}");
    }

    #[test]
    fn what_too_many_trials_would_settle_is_not_known() {
        // Each odd number contradicts the one before it.
        let all: Vec<(u32, u32)> = (0..256).map(|number| (2 * number, 2 * number + 1)).collect();
        let (found, trials) = without(&all, 512);
        assert_eq!(trials, MAX_TOGETHER);
        assert!(found.contradict.len() > 8 && found.contradict.iter().all(|number| number % 2 == 1), "{found:?}");
        assert!(found.not_known.len() > 256 && found.not_known.is_sorted(), "{found:?}");
        let unknown = left_out(&[0, 1, 2], |some| if some.len() > 1 { Tried::Unknown } else { Tried::Silent });
        assert_eq!(unknown, LeftOut { contradict: vec![], not_known: vec![1, 2] });
    }

    #[test]
    fn lines_of_a_group_name_their_file_if_it_is_another_one() {
        let line = |file: &str, line: u32| SourceLine { file: file.into(), line, column: 0 };
        let all = [line("sum.comp", 8), line("lib.glsl", 2), line("sum.comp", 3), line("lib.glsl", 2)];
        let listed = |at: &[usize]| listed(&at.iter().map(|&at| &all[at]).collect::<Vec<_>>(), &all[0]);
        assert_eq!(listed(&[0]), "line 8");
        assert_eq!(listed(&[1, 3]), "line lib.glsl:2");
        assert_eq!(listed(&[0, 1, 2, 3]), "each of the lines 3, 8 and lib.glsl:2");
        assert_eq!(from_to(&all[2], &all[0]), "from line 3 to line 8");
        assert_eq!(from_to(&all[1], &all[3]), "in line 2");
        assert_eq!([number(&all[2], &all[0]), number(&all[1], &all[0])], ["3", "lib.glsl:2"]);
    }
}

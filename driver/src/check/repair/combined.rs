//! Whether the repairs of a dispatch's races, each of which was tried alone, are repairs together: a program is
//! repaired by all of them. Races that one lack of barriers between neighbouring lines causes become a group with one
//! repair.

use std::collections::BTreeSet;
use std::sync::Arc;

use spelter_shaders::ir::{Inst, InstData, Kernel, Scope, SiteData, SourceLine};

use super::barrier::VerifiedChange;
use super::change::Changed;
use super::merged::Change;
use super::own_workgroup;
use super::place::{At, Text};
use super::trial::{Trials, Tried};
use crate::check::dispatch::DispatchRun;
use crate::check::finding::{Finding, Repair};
use crate::check::found_memory::FoundPlace;
use crate::check::group::FindingGroup;
use crate::check::identity::FindingIdentity;
use crate::check::slice::Slice;

/// Races whose repairs are tried together, at most.
const MAX_RACES: usize = 128;

/// Races of which some are left out, at most: each is tried with those before it.
const MAX_TRIED: usize = 16;

/// The least races of a group, and places where it needs barriers.
const MIN_RACES: usize = 4;
const MIN_PLACES: usize = 3;

/// What a repair says that is none beside those of other races.
const NOT_TOGETHER: &str = "; the repairs of the other races of this dispatch do not suffice beside it, nor it beside \
                            them: make theirs first, and check again";

/// A race with a repair that trials verified.
pub(in crate::check) struct RepairedRace {
    identity: FindingIdentity,
    place: Option<FoundPlace>,
    sites: [SiteData; 2],
    /// The workgroup of both accesses.
    workgroup: Option<[u32; 3]>,
    verified: VerifiedChange,
}

impl DispatchRun<'_> {
    /// Keeps the first repair of a race, to try it with those of others.
    pub(in crate::check) fn keep_repaired(&self, race: &Finding, slice: &Slice, verified: VerifiedChange) {
        let Some(first) = &race.first else { return };
        let mut repaired = self.repaired.borrow_mut();
        if repaired.len() < MAX_RACES {
            let sites = [slice.pair.0, slice.pair.1].map(|event| slice.events[event].site);
            repaired.push(RepairedRace {
                identity: race.identity(),
                place: race.memory.as_ref().map(|memory| memory.place.clone()),
                sites: sites.map(|site| self.code.all().kernel.sites[site].clone()),
                workgroup: own_workgroup([first, &race.second]),
                verified,
            });
        }
    }

    /// Tries the repairs of the dispatch's races together.
    pub(in crate::check) fn combine(&self) {
        let repaired = self.repaired.take();
        if repaired.len() < 2 || !self.can_try() {
            return;
        }
        let all: Vec<&RepairedRace> = repaired.iter().collect();
        match self.try_together(&all) {
            Tried::Silent => self.group(&all),
            Tried::Unknown => {}
            Tried::Races | Tried::Diverges => {
                for left_out in self.left_out(&all) {
                    self.code.checker.amend(&left_out.identity, |finding| {
                        finding.repairs.iter_mut().take(1).for_each(|repair| repair.text.push_str(NOT_TOGETHER));
                    });
                }
            }
        }
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

    /// The races whose repairs are none beside those of the races before them.
    fn left_out<'r>(&self, races: &[&'r RepairedRace]) -> Vec<&'r RepairedRace> {
        let (mut kept, mut left_out) = (Vec::new(), Vec::new());
        for &race in races.iter().take(MAX_TRIED) {
            kept.push(race);
            if matches!(self.try_together(&kept), Tried::Races | Tried::Diverges) {
                kept.pop();
                left_out.push(race);
            }
        }
        left_out
    }

    /// Says of races between lines without a barrier that they are one.
    fn group(&self, races: &[&RepairedRace]) {
        let kernel = self.code.kernel();
        let text = Text::new(kernel);
        let mut open: Vec<GroupMember<'_>> = races.iter().filter_map(|race| GroupMember::new(race, &text)).collect();
        open.sort_by_key(|member| member.span);
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
            if let Some(group) = group_of(kernel, &text, &members) {
                let group = Arc::new(group);
                for member in members {
                    self.code.checker.amend(&member.race.identity, |finding| finding.group = Some(Arc::clone(&group)));
                }
            }
        }
    }
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
        (!before.is_empty()).then(|| format!("before {}", listed(&before))),
        (!within.is_empty()).then(|| {
            format!("between what is read and what is written in {}, which must be two statements", listed(&within))
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (barrier, around, count) = (words.barrier, &words.around, members.len());
    let repair = format!(
        "{barrier} {}, where all invocations of the workgroup execute it{around}; together they order all {count} races",
        parts.join(", and ")
    );
    Some(FindingGroup {
        title: format!("{count} data races in {place}, from line {} to line {}", first.line, last.line),
        reason: format!(
            "no barrier is between the code at {first} and the code at {last}: it takes the invocations to run in \
             lockstep, which those of a subgroup need not do either"
        ),
        repair: Repair { text: repair, line: Some(first.clone()) },
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

/// `each of the lines 3, 5 and 8`.
fn listed(lines: &[&SourceLine]) -> String {
    let mut numbers: Vec<u32> = lines.iter().map(|line| line.line).collect();
    numbers.sort_unstable();
    numbers.dedup();
    match &numbers[..] {
        [] => String::new(),
        [one] => format!("line {one}"),
        [others @ .., last] => {
            let others: Vec<String> = others.iter().map(u32::to_string).collect();
            format!("each of the lines {} and {last}", others.join(", "))
        }
    }
}

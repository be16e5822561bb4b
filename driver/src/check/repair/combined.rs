//! Whether the repairs of a dispatch's races, each of which was tried alone, are repairs together: a program is
//! repaired by all of them. Races that one lack of barriers between neighbouring lines causes become a group with one
//! repair.

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

/// Races of which some are left out, at most: each is tried with those before it.
const MAX_TRIED: usize = 16;

/// The least races of a group, and places where it needs barriers.
const MIN_RACES: usize = 4;
const MIN_PLACES: usize = 3;

/// What a repair says that is none beside those of other races.
const NOT_TOGETHER: &str = "; the repairs of the other races of this dispatch do not suffice beside it, nor it beside \
                            them: make theirs first, and check again";

/// What a repair says that was not tried beside those of other races, or without a result.
const NOT_KNOWN: &str = "; whether it suffices beside the repairs of the other races of this dispatch is not known: \
                         check again";

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
    /// Keeps the first repair of a race, if trials verified it, to try it with those of others.
    pub(in crate::check) fn keep_repaired(&self, race: &Finding, slice: &Slice, found: &mut Repairs) {
        let (Some(first), Some(verified)) = (&race.first, found.verified.take()) else { return };
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
                let (left_out, not_known) = self.left_out(&all);
                self.amend(&left_out, NOT_TOGETHER);
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

    /// The races whose repairs are none beside those of the races before them, and those of which that is not known.
    fn left_out<'r>(&self, races: &[&'r RepairedRace]) -> (Vec<&'r RepairedRace>, Vec<&'r RepairedRace>) {
        let (tried, rest) = races.split_at(races.len().min(MAX_TRIED));
        let (mut kept, mut left_out, mut not_known) = (Vec::new(), Vec::new(), rest.to_vec());
        for &race in tried {
            kept.push(race);
            let other = match self.try_together(&kept) {
                Tried::Silent => continue,
                Tried::Races | Tried::Diverges => &mut left_out,
                Tried::Unknown => &mut not_known,
            };
            other.extend(kept.pop());
        }
        (left_out, not_known)
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
        title: format!("{count} data races in {place}, from line {} to line {}", first.line, number(last, first)),
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

/// A line as a number, with the name of its file if that is not the one of the group's first line.
fn number(line: &SourceLine, first: &SourceLine) -> String {
    if line.file == first.file { line.line.to_string() } else { format!("{}:{}", line.file, line.line) }
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

    #[test]
    fn lines_of_a_group_name_their_file_if_it_is_another_one() {
        let line = |file: &str, line: u32| SourceLine { file: file.into(), line, column: 0 };
        let all = [line("sum.comp", 8), line("lib.glsl", 2), line("sum.comp", 3), line("lib.glsl", 2)];
        let listed = |at: &[usize]| listed(&at.iter().map(|&at| &all[at]).collect::<Vec<_>>(), &all[0]);
        assert_eq!(listed(&[0]), "line 8");
        assert_eq!(listed(&[1, 3]), "line lib.glsl:2");
        assert_eq!(listed(&[0, 1, 2, 3]), "each of the lines 3, 8 and lib.glsl:2");
        assert_eq!([number(&all[2], &all[0]), number(&all[1], &all[0])], ["3", "lib.glsl:2"]);
    }
}

//! Repairs by control barriers: where they must be, and which ones, found by trials.

use std::cmp::Ordering;

use spelter_memory_model::event::Class;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{Inst, InstData, Kernel, MemoryModel, Scope, SiteData, SourceLine};

use super::change::{self, Changed};
use super::place::{Around, At, Before, Gap, Text};
use super::trial::{Trials, Tried};
use crate::check::finding::{FoundAccess, Repair};
use crate::check::words::{Sides, coherent};

/// What a barrier consists of.
struct BarrierForm {
    text: &'static str,
    insts: Vec<InstData>,
    /// Whether the memory must be `coherent`, too.
    coherent: bool,
}

/// The barriers for memory of a class, the smallest first.
fn kinds(language: Language, kernel: &Kernel, class: Class) -> Vec<BarrierForm> {
    let barrier = |class| change::barrier(kernel, class);
    let kind = |text, insts: &[InstData], coherent| BarrierForm { text, insts: insts.to_vec(), coherent };
    let own = barrier(class);
    let (text, around) = match (language, class) {
        (Language::Wgsl, Class::Workgroup) => ("workgroupBarrier()", None),
        (Language::Wgsl, Class::Uniform) => ("storageBarrier()", None),
        (Language::Wgsl, _) => ("textureBarrier()", None),
        (Language::Glsl, Class::Uniform) => {
            ("memoryBarrierBuffer(); barrier();", Some("memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();"))
        }
        (Language::Glsl, Class::Image) => {
            ("memoryBarrierImage(); barrier();", Some("memoryBarrierImage(); barrier(); memoryBarrierImage();"))
        }
        (Language::Glsl, _) => ("barrier()", None),
        (Language::Spirv, _) => (in_spirv(class, kernel.memory_model), None),
    };
    let Some(around) = around else {
        return [false, true].map(|coherent| kind(text, std::slice::from_ref(&own), coherent)).into();
    };
    let (fence, plain) = (change::fence(kernel, class), barrier(Class::Workgroup));
    let both = [fence.clone(), plain.clone(), fence.clone()];
    vec![kind(text, &[fence, plain], false), kind(around, &both, false), kind(around, &both, true)]
}

/// A barrier in the words of SPIR-V, with the flags that other memory models imply.
fn in_spirv(class: Class, model: MemoryModel) -> &'static str {
    match (class, model) {
        (Class::Workgroup, MemoryModel::Vulkan) => {
            "an OpControlBarrier (Workgroup, AcquireRelease | WorkgroupMemory | MakeAvailable | MakeVisible)"
        }
        (Class::Image, MemoryModel::Vulkan) => {
            "an OpControlBarrier (Workgroup, AcquireRelease | ImageMemory | MakeAvailable | MakeVisible)"
        }
        (_, MemoryModel::Vulkan) => {
            "an OpControlBarrier (Workgroup, AcquireRelease | UniformMemory | MakeAvailable | MakeVisible)"
        }
        (Class::Workgroup, _) => "an OpControlBarrier (Workgroup, AcquireRelease | WorkgroupMemory)",
        (Class::Image, _) => "an OpControlBarrier (Workgroup, AcquireRelease | ImageMemory)",
        _ => "an OpControlBarrier (Workgroup, AcquireRelease | UniformMemory)",
    }
}

/// One of the two accesses of a race, or the update that it is a part of: no barrier is within it.
#[derive(Clone, Debug)]
pub(super) struct RaceSide {
    /// The instructions with which it begins and ends.
    pub(super) sites: [SiteData; 2],
    pub(super) accesses: [FoundAccess; 2],
}

/// The race whose repair is sought.
pub(super) struct UnrepairedRace<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) language: Language,
    pub(super) sites: [&'a SiteData; 2],
    pub(super) sides: &'a [RaceSide; 2],
    pub(super) class: Class,
    /// The memory, as a declaration names it.
    pub(super) place: String,
}

/// What is known of barriers as a repair.
pub(super) enum BarrierSearch {
    Repair {
        repair: Repair,
        /// Whether the barrier is at the end of a loop, and nowhere else.
        only_at_the_end: bool,
    },
    /// Not all invocations of the workgroup execute the code between the two.
    Divergent,
    /// In other workgroups, or between two of them, they still race.
    BetweenWorkgroups,
    Nothing,
}

/// Places for barriers.
struct Places {
    /// Where the two sides begin.
    begins: [At; 2],
    /// The end of what comes first in the text, and the beginning of the other.
    ends: Option<(At, At)>,
    /// Between the two, and at the end of the loop around them, with their order in the text.
    between: Option<(Gap, [usize; 2])>,
    end: Option<(Gap, [usize; 2])>,
}

/// What trials of barriers that are no repair showed.
#[derive(Default)]
struct Seen {
    /// Not all invocations of a workgroup executed one.
    divergent: bool,
    /// The two accesses raced in other workgroups, or between two of them.
    between_workgroups: bool,
}

/// Barriers of the kernel that a repair may complete.
const MAX_COMPLETED: usize = 6;

/// How barriers that are there get to order the two accesses, too.
#[derive(Clone, Copy)]
struct Completion {
    sides: Sides,
    /// Whether the memory must be `coherent`, too.
    coherent: bool,
}

/// Barriers that may be the repair.
#[derive(Clone, Default)]
struct Attempt {
    /// Their places, with the order of the accesses in the text.
    gaps: Vec<(Gap, [usize; 2])>,
    /// How those pass them by that do not come there.
    around: Around,
    /// The barriers that they replace.
    replaced: Vec<SiteData>,
    /// Where a barrier of the workgroup takes the place of one of a subgroup.
    wider: Option<At>,
}

impl UnrepairedRace<'_> {
    /// Whether there are places at which a barrier may be.
    pub(super) fn has_places(&self) -> bool {
        let text = Text::new(self.kernel);
        self.places(&text).is_some_and(|places| places.between.is_some() || places.end.is_some())
    }

    /// Where the two sides are in the text, and barriers may be.
    fn places(&self, text: &Text<'_>) -> Option<Places> {
        let [[first, first_end], [second, second_end]] = self.sides.each_ref().map(|side| {
            let [begin, end] = side.sites.each_ref().map(|site| text.of_site(site));
            [begin.first().copied(), end.last().copied()]
        });
        let (first, first_end, second, second_end) = (first?, first_end?, second?, second_end?);
        // The order of the text, whatever that of the execution was.
        let (order, ends) = match first.cmp(&second) {
            Ordering::Equal => ([0, 1], None),
            Ordering::Less => ([0, 1], Some((first_end, second))),
            Ordering::Greater => ([1, 0], Some((second_end, first))),
        };
        let between = ends.and_then(|(first, second)| text.between(first, second)).map(|gap| (gap, order));
        let end = text.loop_end(first, second).map(|gap| (gap, [0, 1]));
        Some(Places { begins: [first, second], ends, between, end })
    }

    /// The barriers that silence a race of two invocations of a workgroup.
    pub(super) fn barriers(&self, trials: &mut Trials<'_>) -> BarrierSearch {
        let text = Text::new(self.kernel);
        let Some(Places { begins: [first, second], ends, between, end }) = self.places(&text) else {
            return BarrierSearch::Nothing;
        };
        let attempt = |gaps: Vec<(Gap, [usize; 2])>| Attempt { gaps, ..Attempt::default() };
        let mut attempts: Vec<Attempt> = ends
            .map_or_else(Vec::new, |(first, second)| text.subgroup_barriers(first, second))
            .into_iter()
            .map(|at| Attempt { wider: Some(at), ..Attempt::default() })
            .collect();
        let sets = [vec![between.clone()], vec![end.clone()], vec![between.clone(), end]];
        attempts.extend(sets.into_iter().filter_map(|set| set.into_iter().collect::<Option<Vec<_>>>()).map(attempt));
        if let Some(repair) = self.completed(text.barriers_around(first, second), trials) {
            return BarrierSearch::Repair { repair, only_at_the_end: false };
        }
        let kinds = kinds(self.language, self.kernel, self.class);
        let mut seen = Seen::default();
        for attempt in attempts {
            if let Some(found) = self.attempt(&attempt, &kinds, trials, &mut seen) {
                return found;
            }
        }
        if self.races_between_workgroups(&seen) {
            return BarrierSearch::BetweenWorkgroups;
        }
        if !seen.divergent {
            return BarrierSearch::Nothing;
        }
        // Just after the first access, where a return or a branch may follow, or with those that do not come there.
        let early = ends.zip(between.clone()).map(|((first, _), (_, order))| (text.after(first), order));
        let early = early.filter(|early| between.as_ref().is_some_and(|late| late.0.at() != early.0.at()));
        let around = |(gap, order): (Gap, [usize; 2])| {
            let around = text.around(gap.at())?;
            Some(Attempt { around, ..attempt(vec![(gap, order)]) })
        };
        let others =
            [early.clone().map(|early| attempt(vec![early])), between.and_then(around), early.and_then(around)];
        for attempt in others.into_iter().flatten() {
            if let Some(found) = self.attempt(&attempt, &kinds, trials, &mut seen) {
                return found;
            }
        }
        if self.races_between_workgroups(&seen) { BarrierSearch::BetweenWorkgroups } else { BarrierSearch::Divergent }
    }

    /// Whether no barrier can order the two. No two workgroups share workgroup memory: in another one, another barrier
    /// is needed.
    fn races_between_workgroups(&self, seen: &Seen) -> bool {
        seen.between_workgroups && self.class != Class::Workgroup
    }

    /// The repair by barriers that are there, as few of them as suffice, without others.
    fn completed(&self, mut barriers: Vec<Vec<At>>, trials: &mut Trials<'_>) -> Option<Repair> {
        // A barrier for other memory is one more in WGSL, wherever it is; in GLSL a barrier needs memory barriers.
        if self.language != Language::Glsl || self.class == Class::Workgroup || barriers.len() > MAX_COMPLETED {
            return None;
        }
        let mut is_silent = |barriers: &[Vec<At>], by: Completion| {
            let changed = self.with_completed(barriers, by);
            trials.run(&changed) == Tried::Silent && trials.in_all(&changed) == Tried::Silent
        };
        let strongest = Completion { sides: Sides::Both, coherent: true };
        if barriers.is_empty() || !is_silent(&barriers, strongest) {
            return None;
        }
        for at in (0..barriers.len()).rev() {
            let mut fewer = barriers.clone();
            fewer.remove(at);
            if !fewer.is_empty() && is_silent(&fewer, strongest) {
                barriers = fewer;
            }
        }
        let coherent = !is_silent(&barriers, Completion { coherent: false, ..strongest });
        let of = |sides| Completion { sides, coherent };
        let one = [Sides::Before, Sides::After].into_iter().find(|sides| is_silent(&barriers, of(*sides)));
        let by = of(one.unwrap_or(Sides::Both));
        let text = Text::new(self.kernel);
        let insts: Vec<Inst> = barriers.iter().filter_map(|copies| text.inst(*copies.first()?)).collect();
        let side = by.sides.text();
        let places: Vec<String> =
            insts.iter().map(|&inst| format!("{side} {}", barrier_at(self.kernel, inst))).collect();
        let function = if self.class == Class::Image { "memoryBarrierImage()" } else { "memoryBarrierBuffer()" };
        let coherent = if by.coherent { self.coherent() } else { String::new() };
        let text = format!("{function} {}{coherent}", places.join(", and "));
        Some(Repair { text, line: self.kernel.line_of(*insts.first()?).cloned() })
    }

    fn with_completed(&self, barriers: &[Vec<At>], by: Completion) -> Kernel {
        let mut changed = Changed::new(self.kernel, self.language).on(by.sides);
        if by.coherent {
            changed.coherent(self.sites);
        }
        barriers.iter().flatten().for_each(|&at| changed.complete(at, self.class));
        changed.finish()
    }

    /// The declaration that a repair needs, too, in a sentence.
    fn coherent(&self) -> String {
        let has_flags = self.kernel.memory_model == MemoryModel::Vulkan;
        format!(", with {}", coherent(self.language, has_flags, &self.place))
    }

    /// Tries barriers, and those in place of the barriers with which they diverge.
    fn attempt(
        &self,
        attempt: &Attempt,
        kinds: &[BarrierForm],
        trials: &mut Trials<'_>,
        seen: &mut Seen,
    ) -> Option<BarrierSearch> {
        let strongest = kinds.last()?;
        let tried = trials.run(&self.with(attempt, strongest));
        seen.divergent |= tried == Tried::Diverges;
        if matches!(tried, Tried::Races | Tried::Unknown) {
            return None;
        }
        // Barriers between the two that not all invocations reach are of no use beside the new ones.
        let text = Text::new(self.kernel);
        let of = |site: &SiteData| text.of_site(site).first().copied();
        let ends = self.sites.map(of);
        let (first, last) = (ends.iter().min()?, ends.iter().max()?);
        let mut replaced = std::mem::take(&mut trials.divergent);
        replaced.retain(|site| tried == Tried::Diverges || (*first..*last).contains(&of(site)));
        let replacing = Attempt { replaced, ..attempt.clone() };
        if !replacing.replaced.is_empty()
            && trials.run(&self.with(&replacing, strongest)) == Tried::Silent
            && let Some(found) = self.weakest(&replacing, kinds, trials, seen)
        {
            return Some(found);
        }
        if tried == Tried::Silent { self.weakest(attempt, kinds, trials, seen) } else { None }
    }

    /// The repair by the smallest barriers that suffice; `None` if those that they replace order something else, or if
    /// they do not suffice in other workgroups.
    fn weakest(
        &self,
        attempt: &Attempt,
        kinds: &[BarrierForm],
        trials: &mut Trials<'_>,
        seen: &mut Seen,
    ) -> Option<BarrierSearch> {
        let kind = kinds.iter().find(|kind| trials.run(&self.with(attempt, kind)) == Tried::Silent)?;
        let changed = self.with(attempt, kind);
        let replaces = attempt.wider.is_some() || !attempt.replaced.is_empty();
        if replaces && !trials.adds_nothing(&changed) {
            return None;
        }
        match trials.in_all(&changed) {
            Tried::Silent => {}
            Tried::Races => {
                seen.between_workgroups = true;
                return None;
            }
            Tried::Diverges => {
                seen.divergent = true;
                return None;
            }
            Tried::Unknown => return Some(BarrierSearch::Nothing),
        }
        let only_at_the_end = matches!(attempt.gaps[..], [(Gap::LoopEnd { .. }, _)]);
        Some(BarrierSearch::Repair { repair: self.repair(attempt, kind), only_at_the_end })
    }

    fn with(&self, attempt: &Attempt, kind: &BarrierForm) -> Kernel {
        let mut changed = Changed::new(self.kernel, self.language);
        if kind.coherent {
            changed.coherent(self.sites);
        }
        for (gap, _) in &attempt.gaps {
            changed.insert_around(gap.at(), &attempt.around.edges, kind.insts.iter().cloned());
        }
        if let Some(at) = attempt.wider {
            changed.insert(at, kind.insts.iter().cloned());
            changed.remove(at);
        }
        let text = Text::new(self.kernel);
        attempt.replaced.iter().flat_map(|site| text.of_site(site)).for_each(|at| changed.remove(at));
        changed.finish()
    }

    fn repair(&self, attempt: &Attempt, kind: &BarrierForm) -> Repair {
        let mut places: Vec<_> = attempt.gaps.iter().map(|(gap, order)| self.words(gap, *order)).collect();
        let text = Text::new(self.kernel);
        let wider = attempt.wider.and_then(|at| text.inst(at));
        let replaced = attempt.replaced.iter().filter_map(|site| text.inst(*text.of_site(site).first()?));
        let named = |inst| barrier_at(self.kernel, inst);
        let replaced: Vec<String> = wider.into_iter().chain(replaced).map(named).collect();
        if let Some((last, others)) = replaced.split_last() {
            let others = others.iter().map(|other| format!("{other} and ")).collect::<String>();
            places.push(format!("in place of {others}{last}"));
        }
        let coherent = if kind.coherent { self.coherent() } else { String::new() };
        let places = match &attempt.gaps[..] {
            [_] => places.join(", "),
            _ => places.join(", and "),
        };
        let around = around(&attempt.around);
        let text =
            format!("{} {places}, where all invocations of the workgroup execute it{around}{coherent}", kind.text);
        let line = match attempt.gaps.first() {
            Some((Gap::Between { .. }, order)) => self.sides[order[1]].accesses[0].line.clone(),
            Some((Gap::After { .. }, order)) => self.sides[order[0]].accesses[1].line.clone(),
            Some((Gap::LoopEnd { last, .. }, _)) => last.clone(),
            None => wider.and_then(|inst| self.kernel.line_of(inst)).cloned(),
        };
        Repair { text, line }
    }

    /// A place in words. `order` is that of the accesses in the text.
    fn words(&self, gap: &Gap, order: [usize; 2]) -> String {
        let accesses = [&self.sides[order[0]].accesses[1], &self.sides[order[1]].accesses[0]];
        let [earlier, later] = apart(accesses).unwrap_or_else(|| accesses.map(named));
        let in_one_line = statements_of_line(accesses);
        match gap {
            Gap::Between { splits: true, before: Some(before), .. } if in_one_line != Some(Statements::Two) => format!(
                "between {earlier} and {} that has {later}: the condition first reads into a variable",
                outer(before)
            ),
            // A branch may be within an expression, so that the place is not within the instructions of the statement.
            Gap::Between { splits, before: None, .. }
                if in_one_line == Some(Statements::One) || *splits && in_one_line.is_none() =>
            {
                format!("between {earlier} and {later}, which must be two statements")
            }
            Gap::Between { before: None, .. } => format!("after {earlier} and before {later}"),
            Gap::Between { before: Some(before), .. } => {
                format!("after {earlier} and before {later}: before {}", outer(before))
            }
            Gap::After { .. } => format!("directly after {earlier}"),
            Gap::LoopEnd { condition: Some(number), .. } => format!(
                "at the end of the loop, between {} and the next iteration: the condition first reads into a variable",
                named(&self.sides[*number].accesses[0])
            ),
            Gap::LoopEnd { last, .. } => {
                let last = last.as_ref().map_or(String::new(), |line| format!(", after line {}", line.line));
                format!("at the end of the loop{last}, before the next iteration")
            }
        }
    }
}

/// The statements of two accesses in one line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statements {
    /// One, as far as lines without columns tell.
    One,
    Two,
}

/// Whether two accesses in one line are of one statement; `None` if they are not in one line.
fn statements_of_line([one, other]: [&FoundAccess; 2]) -> Option<Statements> {
    let (a, b) = (one.line.as_ref()?, other.line.as_ref()?);
    if (&a.file, a.line, &one.inlined_at) != (&b.file, b.line, &other.inlined_at) {
        return None;
    }
    let between = || {
        let (start, end) = (a.column.min(b.column).checked_sub(1)?, a.column.max(b.column).checked_sub(1)?);
        one.quoted()?.get(start as usize..end as usize)
    };
    Some(if between().is_some_and(|text| text.contains(';')) { Statements::Two } else { Statements::One })
}

/// Two accesses of one line in a sentence, if two calls of a function make them.
fn apart([one, other]: [&FoundAccess; 2]) -> Option<[String; 2]> {
    let calls = || one.inlined_at.iter().zip(&other.inlined_at);
    let (a, b) = calls().find(|(a, b)| a != b).filter(|_| one.line.is_some() && one.line == other.line)?;
    Some([a, b].map(|call| format!("the call at {call}")))
}

/// A branch, loop or call in a sentence.
fn outer(before: &Before) -> String {
    format!("the {} at {}", if before.call { "call" } else { "branch or loop" }, before.line)
}

/// What those do that do not come to a barrier, in words.
pub(super) fn around(around: &Around) -> String {
    let listed = |lines: &[SourceLine]| lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and at ");
    let branches = (!around.branches.is_empty())
        .then(|| format!("the branch at {} ends before it, and begins again after it", listed(&around.branches)));
    let returns = (!around.returns.is_empty()).then(|| {
        format!(
            "instead of the return at {}, put the code before the barrier and the code after it each into an `if`",
            listed(&around.returns)
        )
    });
    let words: Vec<String> = branches.into_iter().chain(returns).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", and ")) }
}

/// A barrier of the kernel in a sentence.
pub(super) fn barrier_at(kernel: &Kernel, inst: Inst) -> String {
    let what = match kernel.insts[inst] {
        InstData::Barrier { execution: Scope::Subgroup, .. } => "the subgroup barrier",
        _ => "the barrier",
    };
    match kernel.line_of(inst) {
        Some(line) => format!("{what} at {line}"),
        None => format!("{what} at SPIR-V word {}", kernel.origins[inst]),
    }
}

/// An access in a sentence.
pub(super) fn named(access: &FoundAccess) -> String {
    let position = access.position().map(|position| format!(" at {position}")).unwrap_or_default();
    format!("the {}{position}", access.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(column: u32, text: &str) -> FoundAccess {
        FoundAccess {
            line: Some(SourceLine { file: "a.comp".into(), line: 1, column }),
            source: Some(text.into()),
            ..FoundAccess::default()
        }
    }

    #[test]
    fn two_statements_of_a_line_are_known_by_their_columns() {
        let text = "s[l] = l; a[l] = s[63u - l];";
        let of = |columns: [u32; 2]| {
            let [one, other] = columns.map(|column| access(column, text));
            statements_of_line([&one, &other])
        };
        assert_eq!(of([1, 18]), Some(Statements::Two));
        assert_eq!(of([18, 1]), Some(Statements::Two));
        assert_eq!(of([11, 18]), Some(Statements::One));
        assert_eq!(of([0, 0]), Some(Statements::One));
        let (one, other) = (access(1, text), access(1, text));
        let elsewhere = FoundAccess { line: Some(SourceLine { line: 2, ..other.line.clone().unwrap() }), ..other };
        assert_eq!(statements_of_line([&one, &elsewhere]), None);
        assert_eq!(statements_of_line([&one, &FoundAccess::default()]), None);
    }
}

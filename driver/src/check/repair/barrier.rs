//! Repairs by control barriers: where they must be, and which ones, found by trials.

use std::cmp::Ordering;

use spelter_memory_model::event::Class;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{Inst, InstData, Kernel, MemoryModel, SiteData};

use super::barrier_words::{BarrierWords, around, barrier_at};
use super::change::{self, Changed};
use super::merged::Change;
use super::place::{Around, At, Gap, Text};
use super::trial::{Trials, Tried};
use crate::check::finding::{FoundAccess, Repair};
use crate::check::words::{Sides, coherent};

/// What a barrier consists of.
pub(super) struct BarrierForm {
    pub(super) text: &'static str,
    insts: Vec<InstData>,
    /// Whether the memory must be `coherent`, too.
    pub(super) coherent: bool,
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
    /// Whether the two are of one update, which barriers must not divide if its write races with itself.
    pub(super) in_update: bool,
    pub(super) class: Class,
    /// The memory, as a declaration names it.
    pub(super) place: String,
}

/// A repair that trials verified, as a change of the kernel.
#[derive(Clone, Debug)]
pub(in crate::check) struct VerifiedChange {
    pub(super) change: Change,
    /// Of a repair that inserts barriers of the workgroup: what it says of them.
    pub(super) words: Option<BarrierWords>,
}

/// What is known of barriers as a repair.
pub(super) enum BarrierSearch {
    Repair {
        repair: Repair,
        /// Whether the barrier is at the end of a loop, and nowhere else.
        only_at_the_end: bool,
        verified: VerifiedChange,
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
pub(super) struct Attempt {
    /// Their places, with the order of the accesses in the text.
    pub(super) gaps: Vec<(Gap, [usize; 2])>,
    /// How those pass them by that do not come there.
    pub(super) around: Around,
    /// The barriers that they replace.
    pub(super) replaced: Vec<SiteData>,
    /// Where a barrier of the workgroup takes the place of one of a subgroup.
    pub(super) wider: Option<At>,
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
            let (repair, change) = repair;
            let verified = VerifiedChange { change, words: None };
            return BarrierSearch::Repair { repair, only_at_the_end: false, verified };
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
    fn completed(&self, mut barriers: Vec<Vec<At>>, trials: &mut Trials<'_>) -> Option<(Repair, Change)> {
        // A barrier for other memory is one more in WGSL, wherever it is; in GLSL a barrier needs memory barriers.
        if self.language != Language::Glsl || self.class == Class::Workgroup || barriers.len() > MAX_COMPLETED {
            return None;
        }
        let mut is_silent =
            |barriers: &[Vec<At>], by: Completion| trials.silences(&self.with_completed(barriers, by).finish());
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
        let repair = Repair { text, line: self.kernel.line_of(*insts.first()?).cloned() };
        Some((repair, self.with_completed(&barriers, by).change(self.kernel)))
    }

    fn with_completed(&self, barriers: &[Vec<At>], by: Completion) -> Changed {
        let mut changed = Changed::new(self.kernel, self.language).on(by.sides);
        if by.coherent {
            changed.coherent(self.sites);
        }
        barriers.iter().flatten().for_each(|&at| changed.complete(at, self.class));
        changed
    }

    /// The declaration that a repair needs, too, in a sentence.
    pub(super) fn coherent(&self) -> String {
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
        let divides = |(gap, _): &(Gap, _)| matches!(gap, Gap::Between { before: None, .. });
        trials.with_own = self.in_update && attempt.gaps.iter().any(divides);
        let found = self.silent_attempt(attempt, kinds, trials, seen);
        trials.with_own = false;
        found
    }

    fn silent_attempt(
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
                // The write of an update may race with itself where it does not race with the read.
                let with_own = std::mem::take(&mut trials.with_own);
                seen.between_workgroups |= !with_own || trials.in_all(&changed) == Tried::Races;
                trials.with_own = with_own;
                return None;
            }
            Tried::Diverges => {
                seen.divergent = true;
                return None;
            }
            Tried::Unknown => return Some(BarrierSearch::Nothing),
        }
        let only_at_the_end = matches!(attempt.gaps[..], [(Gap::LoopEnd { .. }, _)]);
        let change = self.changed(attempt, kind).change(self.kernel);
        let words = BarrierWords { barrier: kind.text, around: around(&attempt.around) };
        let verified = VerifiedChange { change, words: Some(words) };
        Some(BarrierSearch::Repair { repair: self.repair(attempt, kind), only_at_the_end, verified })
    }

    fn with(&self, attempt: &Attempt, kind: &BarrierForm) -> Kernel {
        self.changed(attempt, kind).finish()
    }

    fn changed(&self, attempt: &Attempt, kind: &BarrierForm) -> Changed {
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
        changed
    }
}

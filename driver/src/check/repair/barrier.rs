//! Repairs by control barriers: where they must be, and which ones, found by trials.

use spelter_memory_model::event::Class;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{InstData, Kernel, SiteData};

use super::change::{self, Changed};
use super::place::{Gap, Text};
use super::trial::{Trials, Tried};
use crate::check::finding::{FoundAccess, Repair};

/// What a barrier consists of.
struct Kind {
    text: &'static str,
    insts: Vec<InstData>,
    /// Whether the memory must be `coherent`, too.
    coherent: bool,
}

/// The barriers for memory of a class, the smallest first.
fn kinds(language: Language, kernel: &Kernel, class: Class) -> Vec<Kind> {
    let barrier = |class| change::barrier(kernel, class);
    let kind = |text, insts: &[InstData], coherent| Kind { text, insts: insts.to_vec(), coherent };
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
        (Language::Spirv, Class::Workgroup) => {
            ("an OpControlBarrier (Workgroup, AcquireRelease | WorkgroupMemory)", None)
        }
        (Language::Spirv, Class::Image) => ("an OpControlBarrier (Workgroup, AcquireRelease | ImageMemory)", None),
        (Language::Spirv, _) => ("an OpControlBarrier (Workgroup, AcquireRelease | UniformMemory)", None),
    };
    let Some(around) = around else {
        return [false, true].map(|coherent| kind(text, std::slice::from_ref(&own), coherent)).into();
    };
    let (fence, plain) = (change::fence(kernel, class), barrier(Class::Workgroup));
    let both = [fence.clone(), plain.clone(), fence.clone()];
    vec![kind(text, &[fence, plain], false), kind(around, &both, false), kind(around, &both, true)]
}

/// The race whose repair is sought.
pub(super) struct Race<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) language: Language,
    pub(super) sites: [&'a SiteData; 2],
    pub(super) accesses: [&'a FoundAccess; 2],
    pub(super) class: Class,
    /// The memory, as a declaration names it.
    pub(super) place: String,
}

/// What is known of barriers as a repair.
pub(super) enum Found {
    Repair {
        repair: Repair,
        /// Whether the barrier is at the end of a loop, and nowhere else.
        only_at_the_end: bool,
    },
    /// Not all invocations of the workgroup execute the code between the two.
    Divergent,
    /// In other workgroups, or between two of them, they still race, as far as it is known.
    BetweenWorkgroups,
    Nothing,
}

impl Race<'_> {
    /// The barriers that silence a race of two invocations of a workgroup.
    pub(super) fn barriers(&self, trials: &mut Trials<'_>) -> Found {
        let text = Text::new(self.kernel);
        let at = self.sites.map(|site| text.of_site(site));
        let [Some(first), Some(second)] = [at[0].first(), at[1].first()] else { return Found::Nothing };
        let [Some(first_end), Some(second_end)] = [at[0].last(), at[1].last()] else { return Found::Nothing };
        // The order of the text, whatever that of the execution was.
        let between = match first.cmp(second) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => text.between(*first_end, *second).map(|gap| (gap, [0, 1])),
            std::cmp::Ordering::Greater => text.between(*second_end, *first).map(|gap| (gap, [1, 0])),
        };
        let end = text.loop_end(*first, *second).map(|gap| (gap, [0, 1]));
        let sets = [vec![between.clone()], vec![end.clone()], vec![between, end]];
        let sets = sets.into_iter().filter_map(|set| set.into_iter().collect::<Option<Vec<_>>>());
        let kinds = kinds(self.language, self.kernel, self.class);
        let Some(strongest) = kinds.last() else { return Found::Nothing };
        let mut divergent = false;
        for set in sets {
            match trials.run(&self.with(&set, strongest)) {
                Tried::Races => {}
                Tried::Diverges => divergent = true,
                Tried::Silent => {
                    let weaker = kinds.iter().find(|kind| trials.run(&self.with(&set, kind)) == Tried::Silent);
                    let kind = weaker.unwrap_or(strongest);
                    if !trials.is_silent_in_all(&self.with(&set, kind)) {
                        return Found::BetweenWorkgroups;
                    }
                    let repair = self.repair(&set, kind);
                    let only_at_the_end = matches!(set[..], [(Gap::LoopEnd { .. }, _)]);
                    return Found::Repair { repair, only_at_the_end };
                }
            }
        }
        if divergent { Found::Divergent } else { Found::Nothing }
    }

    fn with(&self, gaps: &[(Gap, [usize; 2])], kind: &Kind) -> Kernel {
        let mut changed = Changed::new(self.kernel, self.language);
        if kind.coherent {
            changed.coherent(self.sites);
        }
        gaps.iter().for_each(|(gap, _)| changed.insert(gap.at(), kind.insts.iter().cloned()));
        changed.finish()
    }

    fn repair(&self, gaps: &[(Gap, [usize; 2])], kind: &Kind) -> Repair {
        let places: Vec<_> = gaps.iter().map(|(gap, order)| self.words(gap, *order)).collect();
        let coherent = match (kind.coherent, self.language) {
            (false, _) => String::new(),
            (true, Language::Spirv) => format!(", with non-private accesses to {}", self.place),
            (true, _) => format!(", with `coherent` on {}", self.place),
        };
        let places = places.join(", and ");
        let text = format!("{} {places}, where all invocations of the workgroup execute it{coherent}", kind.text);
        let line = match &gaps[0] {
            (Gap::Between { .. }, order) => self.accesses[order[1]].line.clone(),
            (Gap::LoopEnd { last, .. }, _) => last.clone(),
        };
        Repair { text, line }
    }

    /// A place in words. `order` is that of the accesses in the text.
    fn words(&self, gap: &Gap, order: [usize; 2]) -> String {
        let [earlier, later] = order.map(|number| named(self.accesses[number]));
        match gap {
            Gap::Between { splits: true, before: Some(line), .. } => format!(
                "between {earlier} and the branch or loop at {line} that has {later}: the condition first reads into a \
                 variable"
            ),
            Gap::Between { splits: true, .. } => {
                format!("between {earlier} and {later}, which must be two statements")
            }
            Gap::Between { before: None, .. } => format!("after {earlier} and before {later}"),
            Gap::Between { before: Some(line), .. } => {
                format!("after {earlier} and before {later}: before the branch or loop at {line}")
            }
            Gap::LoopEnd { last, .. } => {
                let last = last.as_ref().map_or(String::new(), |line| format!(", after line {}", line.line));
                format!("at the end of the loop{last}, before the next iteration")
            }
        }
    }
}

/// An access in a sentence.
pub(super) fn named(access: &FoundAccess) -> String {
    let position = access.position().map(|position| format!(" at {position}")).unwrap_or_default();
    format!("the {}{position}", access.action)
}

//! Repairs of message passing: an invocation writes data and sets a flag, and another one sees the flag and reads the
//! data. No single change orders the data: the flag's write has to become an atomic one that releases, its read an
//! atomic one that acquires, and what they guard `coherent` where the profile asks for it. They are tried together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use spelter_memory_model::event::{Class, Scope};
use spelter_shaders::check::observer::{Invocation, Memory};
use spelter_shaders::front::Language;
use spelter_shaders::ir::{
    self, AtomicOp, InstData, Kernel, MemoryModel, Place, Site, SiteAction, SiteData, Value, VariableSpace,
};

use super::barrier_words::named;
use super::change::{AtomicOrder, Changed, class_of};
use super::place::Text;
use super::trial::{Trials, Tried};
use crate::check::confirm::Confirmed;
use crate::check::dispatch::DispatchRun;
use crate::check::finding::{FoundAccess, Repair};
use crate::check::log::{Accessed, Index, Log};
use crate::check::words;

/// Flags of a chain from the data's writer to their reader, at most, and reads of flags that are looked at.
const MAX_FLAGS: usize = 4;
const MAX_SEEN: usize = 1 << 14;

/// Values of a computation that are followed, at most.
pub(super) const MAX_VALUES: usize = 64;

/// A flag, by the instructions that set it and that see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) struct Flag {
    pub(in crate::check) write: (Site, Invocation),
    pub(in crate::check) read: (Site, Invocation),
}

impl Flag {
    pub(in crate::check) fn is_of(&self, sites: [Site; 2]) -> bool {
        [self.write.0, self.read.0] == sites || [self.read.0, self.write.0] == sites
    }
}

/// Whether an instruction reads a flag: its value decides branches and does nothing else.
pub(in crate::check) fn is_flag(kernel: &Kernel, site: &SiteData) -> bool {
    let text = Text::new(kernel);
    let [at] = text.of_site(site)[..] else { return false };
    let reads = match text.data(at) {
        InstData::Load { .. } => true,
        InstData::Atomic { op, .. } => !op.is_store(),
        _ => false,
    };
    let value = text.inst(at).and_then(|inst| kernel.results[inst]);
    reads && value.is_some_and(|value| only_decides(kernel, value))
}

/// Whether a value reaches a condition, and nothing else.
fn only_decides(kernel: &Kernel, value: Value) -> bool {
    let mut seen: BTreeSet<Value> = [value].into();
    let mut open = vec![value];
    let mut decides = false;
    while let Some(value) = open.pop() {
        if seen.len() > MAX_VALUES {
            return false;
        }
        let mut reached = Vec::new();
        for inst in kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.iter().copied()) {
            let data = &kernel.insts[inst];
            let mut uses = false;
            data.for_each_use(|used| uses |= used == value);
            if !uses {
                continue;
            }
            match data {
                InstData::Pure { .. } | InstData::Select { .. } => reached.extend(kernel.results[inst]),
                InstData::Branch { .. } | InstData::Switch { .. } | InstData::Jump { .. } => {
                    decides |= match data {
                        InstData::Branch { condition, .. } => *condition == value,
                        InstData::Switch { selector, .. } => *selector == value,
                        _ => false,
                    };
                    for call in data.targets() {
                        let params = &kernel.blocks[call.block].params;
                        let passed = call.args.iter().zip(params).filter(|(argument, _)| **argument == value);
                        reached.extend(passed.map(|(_, param)| *param));
                    }
                }
                // A variable of the invocation: whatever is read from it.
                InstData::Store { place: Place::Variable { variable, offset }, .. }
                    if kernel.variables[*variable].space == VariableSpace::Private && *offset != value =>
                {
                    reached.extend(kernel.insts.iter().filter_map(|(inst, data)| match data {
                        InstData::Load { place: Place::Variable { variable: read, .. }, .. } if read == variable => {
                            kernel.results[inst]
                        }
                        _ => None,
                    }));
                }
                _ => return false,
            }
        }
        open.extend(reached.into_iter().filter(|value| seen.insert(*value)));
    }
    decides
}

/// Whether atomic operations are what a race of two accesses asks for: the memory has atomics already, or each of the
/// two sets it to a constant.
pub(super) fn is_atomic_by_nature(kernel: &Kernel, sites: [&SiteData; 2]) -> bool {
    let text = Text::new(kernel);
    let is_atomic = |site: &SiteData| matches!(site.action, SiteAction::Atomic { .. });
    let sets = |site: &SiteData| match text.of_site(site)[..] {
        [at] => match text.data(at) {
            InstData::Store { value, .. } => matches!(kernel.definition(*value), Some(InstData::Const { .. })),
            _ => false,
        },
        _ => false,
    };
    is_atomic(sites[0]) != is_atomic(sites[1]) || sites.iter().all(|site| sets(site))
}

/// The flags by which the later access of a race may know of the earlier one, in the order in which they were set: the
/// last one is what its invocation waited for or saw before it, the first one was set after the earlier access, and the
/// invocation that set one of the others had seen the one before. As few as there can be; none if there is no such
/// chain. Takes time by the length of the record.
pub(in crate::check) fn guarding(log: &Log, race: &Confirmed, kernel: &Kernel) -> Vec<Flag> {
    let all = || log.words.values().flatten().copied();
    let first = all().filter(|&index| log.accessed(index) == race.first).min();
    let second = all().filter(|&index| log.accessed(index) == race.second).max();
    let Some((first, second)) = first.zip(second) else { return Vec::new() };
    // Barriers may be between the flag and the data, so it is enough that invocations are of one workgroup; unless both
    // workgroups are one.
    let apart = race.first.by.workgroup != race.second.by.workgroup;
    let agent = |index: Index| {
        let by = log.accessed(index).by;
        (by.workgroup, (!apart).then_some(by.local))
    };
    let seen = seen_flags(log, first..second, kernel, &|write, read| agent(write) != agent(read));
    let origin = agent(first);
    // Until when each agent is of interest, with the flags that lead from there to the later access.
    let mut known = HashMap::from([(agent(second), second)]);
    let mut open: Vec<(Index, Vec<Flag>)> = vec![(second, Vec::new())];
    for _ in 0..MAX_FLAGS {
        let mut next: Vec<(Index, Vec<Flag>)> = Vec::new();
        let mut found: Option<(Index, Vec<Flag>)> = None;
        for (until, flags) in &open {
            for &(write, read) in seen.iter().filter(|(_, read)| read < until && agent(*read) == agent(*until)) {
                let (one, other) = (log.accessed(write), log.accessed(read));
                let flag = Flag { write: (one.site, one.by), read: (other.site, other.by) };
                let all = || [flag].into_iter().chain(flags.iter().copied()).collect();
                if agent(write) == origin {
                    if found.as_ref().is_none_or(|(known, _)| *known < read) {
                        found = Some((read, all()));
                    }
                } else if known.get(&agent(write)).is_none_or(|&until| until < write) {
                    known.insert(agent(write), write);
                    next.push((write, all()));
                }
            }
        }
        if let Some((_, flags)) = found {
            return flags;
        }
        open = next;
    }
    Vec::new()
}

/// Reads of flags and the writes that they see, between two events of a log.
fn seen_flags(
    log: &Log,
    between: Range<Index>,
    kernel: &Kernel,
    matters: &dyn Fn(Index, Index) -> bool,
) -> Vec<(Index, Index)> {
    let (first, second) = (between.start, between.end);
    let mut flags: HashMap<Site, bool> = HashMap::new();
    // Atomics of other words are recorded, too, if a repair may make them order something.
    let mut atomics: BTreeMap<(Memory, u64), Vec<Index>> = BTreeMap::new();
    for index in (first.0..second.0).map(Index) {
        if matches!(log.data(index).action, SiteAction::Atomic { .. }) {
            let Accessed { memory, by, .. } = log.accessed(index);
            let workgroup = if matches!(memory, Memory::Workgroup(_)) { by.workgroup } else { 0 };
            atomics.entry((memory, workgroup)).or_default().push(index);
        }
    }
    let mut seen = Vec::new();
    for accesses in log.words.values().chain(atomics.values()) {
        let mut last_write = None;
        for &index in accesses.iter().take_while(|&&index| index < second) {
            let operation = log.operation(index);
            let write = last_write.filter(|&write| first < write);
            if let Some(write) = write
                && operation.reads()
                && matters(write, index)
                && seen.len() < MAX_SEEN
            {
                let (one, other) = (log.accessed(write), log.accessed(index));
                let is_same = (one.memory, one.bytes) == (other.memory, other.bytes);
                let mut is_flag = || *flags.entry(other.site).or_insert_with(|| is_flag(kernel, log.data(index)));
                if is_same && is_flag() {
                    seen.push((write, index));
                }
            }
            if operation.writes() {
                last_write = Some(index);
            }
        }
    }
    seen
}

impl DispatchRun<'_> {
    /// The changes that make flags order what they guard, as one repair; for flags of which nothing is known to be
    /// guarded, those that make them order anything.
    pub(super) fn flag_repair(&self, flags: &[Flag], guarded: Option<&Confirmed>) -> Option<Repair> {
        let language = self.code.names.names.language();
        if language == Language::Wgsl {
            return None;
        }
        let kernel = self.code.kernel();
        let data = |site: Site| self.code.all().kernel.sites[site].clone();
        let last = flags.last()?;
        let pair = match guarded {
            Some(race) => [race.slice.pair.0, race.slice.pair.1].map(|event| data(race.slice.events[event].site)),
            None => [last.write.0, last.read.0].map(data),
        };
        let mut classes = vec![class_of(&pair[0])];
        for flag in flags {
            classes.extend(Some(class_of(&data(flag.write.0))).filter(|class| !classes.contains(class)));
        }
        let mut trials = Trials::new(self, pair.clone(), None)?;
        let has_fences = kernel.insts.values().any(|data| matches!(data, InstData::Fence { .. }));
        let orders = [false, true].into_iter().filter(|ordered| *ordered || has_fences && guarded.is_some());
        let options = orders.flat_map(|ordered| [false, true].map(|coherent| (ordered, coherent)));
        for (ordered, coherent) in options {
            let classes: &[Class] = if ordered { &classes } else { &[] };
            let mut is_silent = |flags: &[Flag]| {
                let mut changed = Changed::new(kernel, language);
                for side in sides(flags) {
                    let order = AtomicOrder { classes, acquires: side.acquires };
                    changed.atomic(&data(side.by.0), side.scope, order)?;
                }
                if coherent {
                    changed.coherent([&pair[0], &pair[1]]);
                }
                let changed = changed.finish();
                Some(trials.run(&changed) == Tried::Silent && !trials.races_in_opposite_order(&changed))
            };
            let mut flags = flags.to_vec();
            if !is_silent(&flags)? {
                continue;
            }
            // Some of them may order what comes before them as they are.
            for at in (0..flags.len()).rev() {
                let mut fewer = flags.clone();
                fewer.remove(at);
                if !fewer.is_empty() && is_silent(&fewer)? {
                    flags = fewer;
                }
            }
            let in_words = |one: FlagAccess| {
                let access = self.access(one.by.0, one.by.1);
                side(language, kernel, &access, &data(one.by.0), one.scope, classes, one.acquires)
            };
            let mut parts: Vec<String> = sides(&flags).into_iter().filter_map(in_words).collect();
            if let Some(race) = guarded.filter(|_| coherent) {
                let described = self.describe(&race.slice, &self.common(race));
                let place = described.names().places[race.slice.pair.1].to_string();
                let has_flags = kernel.memory_model == MemoryModel::Vulkan;
                parts.push(words::coherent(language, has_flags, &place));
            }
            let needs = match language {
                Language::Spirv => "",
                _ => "; gl_Scope… needs `#extension GL_KHR_memory_scope_semantics : require`",
            };
            let line = self.access(flags[0].write.0, flags[0].write.1).line;
            let all = if parts.len() > 1 { "all of these: " } else { "" };
            return Some(Repair { text: format!("{all}{}{needs}", parts.join(", and ")), line });
        }
        None
    }
}

/// An instruction that sets or sees a flag, as an atomic of this scope.
#[derive(Clone, Copy)]
struct FlagAccess {
    by: (Site, Invocation),
    scope: Scope,
    acquires: bool,
}

/// The instructions of flags, each once: several flags may be set and seen by the same ones.
fn sides(flags: &[Flag]) -> Vec<FlagAccess> {
    let mut sides: Vec<FlagAccess> = Vec::new();
    for flag in flags {
        let apart = flag.write.1.workgroup != flag.read.1.workgroup;
        let scope = if apart { Scope::QueueFamily } else { Scope::Workgroup };
        for (by, acquires) in [(flag.write, false), (flag.read, true)] {
            match sides.iter_mut().find(|side| side.by.0 == by.0 && side.acquires == acquires) {
                Some(known) => known.scope = known.scope.max(scope),
                None => sides.push(FlagAccess { by, scope, acquires }),
            }
        }
    }
    sides
}

/// One side of a flag as an atomic, in words; `None` if it stays as it is. An atomic operation keeps its scope, and
/// what it orders.
fn side(
    language: Language,
    kernel: &Kernel,
    access: &FoundAccess,
    site: &SiteData,
    scope: Scope,
    classes: &[Class],
    acquires: bool,
) -> Option<String> {
    let named = named(access);
    let with_flags = kernel.memory_model == MemoryModel::Vulkan;
    let mut order = if acquires { "Acquire" } else { "Release" };
    let mut scope = if scope == Scope::Workgroup { "Workgroup" } else { "Device" };
    let mut atomic = None;
    if let SiteAction::Atomic { op, scope: own, semantics, .. } = site.action {
        if classes.is_empty() {
            return None;
        }
        atomic = Some(op);
        scope = match own {
            ir::Scope::Invocation | ir::Scope::Subgroup => "Subgroup",
            ir::Scope::Workgroup => "Workgroup",
            ir::Scope::QueueFamily | ir::Scope::Device | ir::Scope::CrossDevice => "Device",
        };
        if if acquires { semantics.releases() } else { semantics.acquires() } {
            order = "AcquireRelease";
        }
    }
    if language == Language::Spirv {
        let scope = if (scope, with_flags) == ("Device", true) { "QueueFamily" } else { scope };
        let flag = match (with_flags, acquires) {
            (false, _) => "",
            (true, true) => " | MakeVisible",
            (true, false) => " | MakeAvailable",
        };
        let classes: String = classes.iter().map(|class| format!(" | {class:?}Memory")).collect();
        let semantics = if classes.is_empty() { "Relaxed".to_owned() } else { format!("{order}{classes}{flag}") };
        return Some(match (atomic, acquires) {
            (Some(_), _) => format!("{semantics} for {named}"),
            (None, true) => format!("OpAtomicLoad ({scope}, {semantics}) in place of {named}"),
            (None, false) => format!("OpAtomicStore ({scope}, {semantics}) in place of {named}"),
        });
    }
    let scope = format!("gl_Scope{scope}");
    let flag = match (with_flags, acquires) {
        (false, _) => "",
        (true, true) => " | gl_SemanticsMakeVisible",
        (true, false) => " | gl_SemanticsMakeAvailable",
    };
    let storage: Vec<_> = classes
        .iter()
        .map(|class| match class {
            Class::Workgroup => "gl_StorageSemanticsShared",
            Class::Image => "gl_StorageSemanticsImage",
            _ => "gl_StorageSemanticsBuffer",
        })
        .collect();
    let semantics = match storage[..] {
        [] => "0, 0".to_owned(),
        _ => format!("{}, gl_Semantics{order}{flag}", storage.join(" | ")),
    };
    Some(match (atomic, acquires) {
        (Some(AtomicOp::CompareExchange), _) => {
            let failed = if acquires { semantics.as_str() } else { "0, 0" };
            format!("{scope}, {semantics}, {failed} as further arguments of {named}")
        }
        (Some(_), _) => format!("{scope}, {semantics} as further arguments of {named}"),
        (None, true) => format!("atomicLoad(…, {scope}, {semantics}) in place of {named}"),
        (None, false) => format!("atomicStore(…, …, {scope}, {semantics}) in place of {named}"),
    })
}

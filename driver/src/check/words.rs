//! Reasons and repairs in the words of GLSL and WGSL: their programs have barriers, qualifiers and bindings where the
//! memory model has semantics, flags and references.

use spelter_memory_model::event::{Access, Class, Scope, Site};
use spelter_memory_model::explain::{MissingRequirement, Outside, Reason};
use spelter_memory_model::names::Names;
use spelter_memory_model::relations::Source;
use spelter_memory_model::repair::{Edit, TraceEdit};
use spelter_shaders::front::Language;

use super::explanation::SliceNames;
use super::slice::Slice;

/// The memory of a class.
fn memory(language: Language, class: Class) -> &'static str {
    match (language, class) {
        (Language::Wgsl, Class::Uniform) => "storage buffers",
        (Language::Wgsl, Class::Workgroup) => "workgroup variables",
        (Language::Wgsl, Class::Image) => "storage textures",
        (_, Class::Uniform) => "buffers",
        (_, Class::Workgroup) => "shared variables",
        (_, Class::Image) => "images",
        (_, Class::Output) => "outputs",
    }
}

/// The instances of a scope, in which invocations are or are not.
fn group(scope: Scope) -> &'static str {
    match scope {
        Scope::Invocation => "invocation",
        Scope::Subgroup => "subgroup",
        Scope::Workgroup => "workgroup",
        Scope::QueueFamily | Scope::Device | Scope::CrossDevice => "device",
    }
}

/// The functions that make memory of a class visible: that of a memory barrier, and that of a barrier which is also a
/// control barrier, if there is one.
struct Barriers {
    memory: Option<&'static str>,
    control: &'static str,
}

fn barriers(language: Language, class: Class) -> Option<Barriers> {
    let (memory, control) = match (language, class) {
        (Language::Wgsl, Class::Workgroup) => (None, "workgroupBarrier()"),
        (Language::Wgsl, Class::Uniform) => (None, "storageBarrier()"),
        (Language::Wgsl, Class::Image) => (None, "textureBarrier()"),
        (Language::Glsl, Class::Workgroup) => (Some("memoryBarrierShared()"), "barrier()"),
        (Language::Glsl, Class::Uniform) => (Some("memoryBarrierBuffer()"), "memoryBarrierBuffer() and barrier()"),
        (Language::Glsl, Class::Image) => (Some("memoryBarrierImage()"), "memoryBarrierImage() and barrier()"),
        (Language::Spirv, _) | (_, Class::Output) => return None,
    };
    Some(Barriers { memory, control })
}

/// What lets accesses to a place be ordered with those of other invocations. With `has_flags`, the module has flags of
/// single accesses: it uses the Vulkan memory model.
pub(super) fn coherent(language: Language, has_flags: bool, place: &str) -> String {
    match (language, has_flags) {
        (Language::Spirv, true) => format!("non-private accesses to {place}"),
        (Language::Spirv, false) => format!("`OpDecorate … Coherent` on {place}"),
        _ => format!("`coherent` on {place}"),
    }
}

/// The sides of a control barrier on which a repair has a memory barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sides {
    Both,
    Before,
    After,
}

impl Sides {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Both => "before and after",
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// An edit of a slice, if its language has words for it. Memory barriers are on these sides of control barriers.
pub(super) fn edit(names: &SliceNames<'_>, edit: &TraceEdit, slice: &Slice, sides: Sides) -> Option<String> {
    let TraceEdit::Code(edit) = edit else { return None };
    let language = names.language;
    let event_at = |site| slice.trace.events.iter().position(|event| event.site == Some(site));
    let both = |first, second| {
        let [first, second] = [event_at(first)?, event_at(second)?].map(|event| names.reference(event));
        Some(if first == second { first } else { format!("{first} and {second}") })
    };
    if language == Language::Spirv {
        return match *edit {
            Edit::NonPrivate(site) | Edit::Available(site, _) | Edit::Visible(site, _) if !names.with_flags => {
                Some(coherent(language, false, &names.reference(event_at(site)?)))
            }
            Edit::Coherent(first, second, _) if !names.with_flags => {
                Some(coherent(language, false, &both(first, second)?))
            }
            // These operands are valid with this one only.
            Edit::Available(site, scope) | Edit::Visible(site, scope) => {
                let access = slice.trace.operation(event_at(site)?).access()?;
                let flag = if matches!(edit, Edit::Available(..)) { "Available" } else { "Visible" };
                let (scope, at) = (scope.name(), names.site(site));
                (!access.non_private).then(|| format!("NonPrivatePointer | MakePointer{flag} ({scope}) on {at}"))
            }
            _ => None,
        };
    }
    match *edit {
        Edit::Barrier(before, after, class) => {
            let control = barriers(language, class)?.control;
            let (before, after) = (names.site(before), names.site(after));
            Some(format!(
                "{control} after {before} and before {after}, where all invocations of the workgroup execute it"
            ))
        }
        Edit::Order(site, class) => {
            let operation = slice.trace.operation(event_at(site)?);
            let (at, functions) = (names.site(site), barriers(language, class)?);
            Some(match (operation.access(), functions.memory) {
                (Some(access), Some(barrier)) => {
                    // A memory barrier is one with the atomic if it is for its memory, too.
                    let barrier = if access.class == class { barrier } else { "memoryBarrier()" };
                    let role = role(access, site, slice);
                    let side = match (role.releases, role.acquires) {
                        (true, false) => "before",
                        (false, true) => "after",
                        _ => "before and after",
                    };
                    let arguments = arguments(role, class, names, site);
                    format!("{arguments} as further arguments of {at}, or {barrier} {side} it")
                }
                (_, Some(barrier)) if operation.control_barrier() => format!("{barrier} {} {at}", sides.text()),
                (_, Some(barrier)) => format!("{barrier} before and after {at}"),
                (_, None) => format!("{} in addition to {at}", functions.control),
            })
        }
        Edit::Coherent(first, second, _) => Some(coherent(language, names.with_flags, &both(first, second)?)),
        Edit::Widen(site, scope) => {
            let scope = if scope > Scope::Workgroup { Scope::Device } else { scope };
            Some(format!("gl_Scope{} for {}", scope.name(), names.site(site)))
        }
        Edit::Atomic(first, second, _) => {
            let (first, second) = (names.site(first), names.site(second));
            let at = if first == second { first } else { format!("{first} and {second}") };
            Some(format!("atomic operations in place of {at}; which of them comes first stays open"))
        }
        _ => None,
    }
}

/// What changes need in GLSL that have arguments for scope and semantics.
pub(super) fn needs(texts: &[String]) -> &'static str {
    let has_arguments = texts.iter().any(|text| text.contains("gl_Scope"));
    if has_arguments { "; gl_Scope… needs `#extension GL_KHR_memory_scope_semantics : require`" } else { "" }
}

/// Whether an atomic has to acquire, and to release.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicRole {
    pub(super) acquires: bool,
    pub(super) releases: bool,
}

/// What an atomic does between the two accesses: one from which another reads passes on what precedes it, and one that
/// reads from another gets it. A lock is given back by a release, and taken by an acquire.
pub(super) fn role(access: &Access, site: Site, slice: &Slice) -> AtomicRole {
    let at = |event: usize| slice.trace.events[event].site == Some(site);
    let read = || {
        slice.choice.sources.iter().enumerate().filter_map(|(read, source)| match source {
            Some(Source::Write(write)) => Some((read, *write)),
            _ => None,
        })
    };
    let acquires = access.reads && read().any(|(read, _)| at(read));
    let releases = access.writes && read().any(|(_, write)| at(write));
    if acquires || releases {
        AtomicRole { acquires, releases }
    } else {
        AtomicRole { acquires: access.reads, releases: access.writes }
    }
}

/// The arguments of an atomic function of GLSL with which it orders memory of a class. The flags of availability and
/// visibility are implied, unless the module has the Vulkan memory model. A compare-exchange has them twice: the second
/// ones for the case that it only reads.
fn arguments(role: AtomicRole, class: Class, names: &SliceNames<'_>, site: Site) -> String {
    let storage = match class {
        Class::Workgroup => "gl_StorageSemanticsShared",
        Class::Image => "gl_StorageSemanticsImage",
        _ => "gl_StorageSemanticsBuffer",
    };
    let semantics = |AtomicRole { acquires, releases }: AtomicRole| {
        let (order, flags) = match (acquires, releases) {
            (true, true) => ("AcquireRelease", " | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible"),
            (true, false) => ("Acquire", " | gl_SemanticsMakeVisible"),
            _ => ("Release", " | gl_SemanticsMakeAvailable"),
        };
        format!("{storage}, gl_Semantics{order}{}", if names.with_flags { flags } else { "" })
    };
    let mut arguments = format!("gl_ScopeDevice, {}", semantics(role));
    if names.compares(site) {
        arguments += ", ";
        arguments += &if role.acquires { semantics(AtomicRole { releases: false, ..role }) } else { "0, 0".to_owned() };
    }
    arguments
}

/// A reason why two accesses are not ordered, if the language has other words for it than the memory model.
pub(super) fn reason(names: &SliceNames<'_>, reason: &Reason, (first, second): (usize, usize)) -> Option<String> {
    let language = names.language;
    if language == Language::Spirv {
        return None;
    }
    let place = |event: usize| names.place(event);
    let gap = |gap: &MissingRequirement| self::gap(names, gap, (first, second));
    match reason {
        Reason::NotMutual(lacks) => gap(lacks),
        Reason::ReadsFrom { read, write, lacks } => {
            Some(format!("{} reads from {}, but {}", place(*read), place(*write), gap(lacks)?))
        }
        // At one place in the source it is one barrier for a reader, though each invocation has an event of its own.
        Reason::ControlBarriers { left, right, lacks: MissingRequirement::Class(event, class) }
            if place(*left) == place(*right) =>
        {
            let (meet, lacks) = (place(*left), memory(language, *class));
            let at = place(*event);
            let it = if at == meet { "it" } else { &at };
            Some(format!("both invocations wait at {meet}, but {it} does not cover {lacks}"))
        }
        Reason::ControlBarriers { left, right, lacks } => {
            Some(format!("{} and {} wait for each other, but {}", place(*left), place(*right), gap(lacks)?))
        }
        Reason::Private(events) => match events[..] {
            [one] => Some(format!("{} is of memory that is not declared `coherent`", place(one))),
            _ => {
                let [first, second] = [first, second].map(|event| names.reference(event));
                let (what, are) = match first == second {
                    true => (first, "is"),
                    false => (format!("{first} and {second}, the same memory,"), "are"),
                };
                Some(format!("{what} {are} not declared `coherent`"))
            }
        },
        Reason::TwoReferences => {
            let [first, second] = [first, second].map(|event| names.reference(event));
            Some(two_references(names, (&first, &second), false))
        }
        Reason::NotAvailable(scope) | Reason::AvailableOnlyTo { needed: scope, .. } => {
            Some(format!("no memory barrier makes {} available beyond its {}", place(first), narrower(*scope)))
        }
        Reason::NotVisible(scope) => Some(format!(
            "no memory barrier makes values from beyond its {} visible to {}",
            narrower(*scope),
            place(second)
        )),
        _ => None,
    }
}

/// The reason why accesses through two descriptors race of which the first one writes; of `one` invocation, or of two.
pub(super) fn two_references(names: &SliceNames<'_>, (first, second): (&str, &str), one: bool) -> String {
    let descriptor = if names.language == Language::Spirv { "descriptor" } else { "binding" };
    let order = if one { "program order does not order" } else { "no barrier orders" };
    format!(
        "{first} and {second} are the same memory, but {order} a write before accesses through another {descriptor}"
    )
}

/// What a memory barrier that does not reach a scope is confined to.
fn narrower(scope: Scope) -> &'static str {
    match scope {
        Scope::Invocation | Scope::Subgroup => "invocation",
        Scope::Workgroup => "subgroup",
        _ => "workgroup",
    }
}

fn gap(names: &SliceNames<'_>, gap: &MissingRequirement, (first, second): (usize, usize)) -> Option<String> {
    let language = names.language;
    let place = |event: usize| names.place(event);
    let relaxed = |event: usize, side: &str| match language {
        Language::Wgsl => "atomics of WGSL order no other memory".to_owned(),
        _ => {
            let at = place(event);
            format!("{at} orders no other memory: it is relaxed, and no memory barrier for its memory is {side} it")
        }
    };
    Some(match gap {
        MissingRequirement::References => "they use different bindings".to_owned(),
        MissingRequirement::Scope(outside) => {
            let text = |outside: &Outside| {
                let group = group(outside.scope);
                format!(
                    "{} is not in the {group} of {}, which reaches no farther",
                    place(outside.event),
                    place(outside.of)
                )
            };
            let mut texts: Vec<_> = outside.iter().map(text).collect();
            // Two invocations of one instruction.
            texts.dedup();
            texts.join(", and ")
        }
        MissingRequirement::NoRelease(event) => relaxed(*event, "before"),
        MissingRequirement::NoAcquire(event) => relaxed(*event, "after"),
        MissingRequirement::Class(event, class) => {
            format!("{} does not cover {}", place(*event), memory(language, *class))
        }
        MissingRequirement::NothingReleases => format!("no memory barrier is between {} and the barrier", place(first)),
        MissingRequirement::NothingAcquires => {
            format!("no memory barrier is between the barrier and {}", place(second))
        }
        MissingRequirement::NotContinued => {
            "the barriers between the accesses are for different kinds of memory".to_owned()
        }
        MissingRequirement::HostAndDevice | MissingRequirement::Bytes => return None,
    })
}

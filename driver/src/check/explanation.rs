//! Why two accesses race, and what would order them: the memory model's answers in the words of the kernel.

use std::sync::Arc;

use spelter_memory_model::Model;
use spelter_memory_model::event;
use spelter_memory_model::explain;
use spelter_memory_model::format::write_slice;
use spelter_memory_model::names::Names;
use spelter_memory_model::repair::{self, Terms, TraceEdit, TraceEffort};
use spelter_memory_model::slice;
use spelter_shaders::check::Cause;
use spelter_shaders::front::Language;
use spelter_shaders::ir::SourceLine;

use super::finding::{FoundAccess, Repair};
use super::found_memory::FoundPlace;
use super::slice::Slice;
use super::words::{self, Sides};

/// The bounds of the search for repairs: a report must not take longer than the run.
fn effort(language: Language, barriers: bool) -> TraceEffort {
    let (edits, terms) = match language {
        Language::Spirv => (3, Terms::Operands),
        Language::Glsl => (4, Terms::Whole { atomics: true }),
        Language::Wgsl => (3, Terms::Whole { atomics: false }),
    };
    TraceEffort { edits, traces: 400, repairs: 2, terms, barriers }
}

/// The names of a slice's events.
#[derive(Clone, Copy)]
pub(super) struct SliceNames<'a> {
    /// The instruction of each event.
    pub(super) accesses: &'a [FoundAccess],
    /// The instruction of each [`event::Site`].
    pub(super) sites: &'a [FoundAccess],
    /// The resource of each event, as its instruction names it.
    pub(super) places: &'a [FoundPlace],
    /// The language of the kernel.
    pub(super) language: Language,
    /// Whether its atomics state availability and visibility.
    pub(super) with_flags: bool,
    /// Whether the instruction of each [`event::Site`] is a compare-exchange.
    pub(super) compare: &'a [bool],
}

/// An access in a sentence.
pub(super) fn named(access: &FoundAccess) -> String {
    let position = access.position().map(|position| format!(" at {position}")).unwrap_or_default();
    format!("the {}{position}", access.action)
}

impl Names for SliceNames<'_> {
    fn place(&self, event: usize) -> String {
        let access = &self.accesses[event];
        named(access)
    }

    fn event(&self, event: usize) -> String {
        self.place(event)
    }

    fn reference(&self, event: usize) -> String {
        self.places[event].to_string()
    }

    fn site(&self, site: event::Site) -> String {
        let access = self.sites.get(site.0 as usize);
        access.map_or_else(|| site.to_string(), named)
    }
}

impl SliceNames<'_> {
    /// Whether an instruction is a compare-exchange.
    pub(super) fn compares(&self, site: event::Site) -> bool {
        self.compare.get(site.0 as usize).copied().unwrap_or(false)
    }

    /// The first condition of the memory model that fails between the two accesses, in a sentence.
    pub(super) fn reason(&self, slice: &Slice) -> Option<String> {
        if self.needs_one_reference(slice) {
            let [first, second] = [slice.pair.0, slice.pair.1].map(|event| self.places[event].to_string());
            let one = slice.trace.same_agent(slice.pair.0, slice.pair.1);
            return Some(words::two_references(self, (&first, &second), one));
        }
        let explanation = explain::of_trace(&slice.trace, &slice.choice, slice.pair, Model::SPEC, self).ok()?;
        let cause = explanation.cause()?;
        Some(match &cause.reason {
            explain::Reason::Unrelated => {
                // The order in which they happened is the one that nothing guarantees.
                let (first, second) = slice.pair;
                format!("nothing orders {} before {}", self.place(first), self.place(second))
            }
            reason => words::reason(self, reason, explanation.pair).unwrap_or_else(|| cause.because.clone()),
        })
    }

    /// The slice as a litmus test, if the format can express it.
    pub(super) fn replay(&self, slice: &Slice) -> Option<Arc<str>> {
        let slice = slice::Slice::new(&slice.trace, &slice.choice, Model::SPEC).ok()?;
        write_slice(&slice, self).ok().map(Arc::from)
    }

    /// Sets of changes after which the same execution has no race, the smallest first.
    pub(super) fn edits(&self, slice: &Slice) -> Vec<Vec<TraceEdit>> {
        // A barrier in place of atomics is sought by trials, where it may be: here it would be the smaller repair.
        let effort = effort(self.language, !self.has_atomics(slice));
        let found = repair::of_trace(&slice.trace, &slice.choice, slice.pair, Model::SPEC, effort);
        found.map(|found| found.repairs).unwrap_or_default()
    }

    /// Whether atomics may order the two accesses.
    pub(super) fn has_atomics(&self, slice: &Slice) -> bool {
        slice.trace.events.iter().any(|event| event.operation.atomic())
    }

    /// Whether the two accesses are made through different descriptors.
    pub(super) fn have_two_references(&self, slice: &Slice) -> bool {
        let reference = |event: usize| slice.trace.operation(event).access().map(|access| access.reference);
        reference(slice.pair.0) != reference(slice.pair.1)
    }

    /// Whether nothing can order the two accesses as they are: they are made through different descriptors, and the
    /// first one writes. After a read an execution dependency suffices, through any descriptor.
    pub(super) fn needs_one_reference(&self, slice: &Slice) -> bool {
        let writes = slice.trace.operation(slice.pair.0).access().is_some_and(|access| access.writes);
        writes && self.have_two_references(slice)
    }

    /// The repair that both accesses are made through the descriptor of one, in place of the other one's.
    pub(super) fn one_binding(&self, one: usize, other: usize) -> Repair {
        let text = format!("one binding for both: {} in place of {}", self.places[one], self.places[other]);
        Repair { text, line: self.accesses[other].line.clone() }
    }

    /// Whether the two accesses do not race as atomics: they use one reference and the same bytes.
    pub(super) fn may_be_atomic(&self, slice: &Slice) -> bool {
        let (first, second) = slice.pair;
        let access = |event: usize| slice.trace.operation(event).access();
        let place = |event: usize| access(event).map(|access| (access.reference, &access.location));
        first != second && place(first).is_some() && place(first) == place(second)
    }

    /// A set of changes in words. Memory barriers are on these sides of control barriers.
    pub(super) fn repair(&self, edits: &[TraceEdit], slice: &Slice, sides: Sides) -> Repair {
        let words = |edit: &TraceEdit| words::edit(self, edit, slice, sides);
        let mut texts = TraceEdit::texts(edits, (&slice.trace, slice.pair), self, words);
        // One declaration is for several accesses.
        texts.dedup();
        let line = edits.iter().find_map(|edit| match edit {
            TraceEdit::Code(edit) => {
                let (first, second) = edit.places();
                self.sites.get(second.unwrap_or(first).0 as usize)?.line.clone()
            }
            TraceEdit::Api(_) => None,
        });
        Repair { text: texts.join(", and ") + words::needs(&texts), line }
    }
}

/// The detector's hint, where the axioms were not asked.
pub(super) fn of_cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Unordered => "nothing orders the two accesses",
        Cause::Barrier => "the barrier between them does not cover this memory: its semantics lack the storage class",
        Cause::Private => "an access is private: only program order orders it",
        Cause::Reference => "they use different descriptors or variables for the same memory",
        Cause::Scope => "the scope of an atomic does not include the other invocation",
        Cause::Overlap => "the atomics are of different sizes or places",
        Cause::Command => "nothing orders the two commands",
    }
}

/// The advice about a barrier that not all invocations reach: `other` is the barrier where some of them wait, `early` a
/// return before it.
pub(super) fn of_divergence(other: Option<&FoundAccess>, barrier: &FoundAccess, early: Option<&SourceLine>) -> Repair {
    let text = match (other, early) {
        (Some(other), _) => {
            let [one, other] = [named(other), named(barrier)];
            format!(
                "one barrier in place of {one} and {other}, before or after the branch or loop in which invocations of \
                 the workgroup differ: the branch keeps all but the barriers"
            )
        }
        (None, Some(line)) => format!(
            "a condition around the code between the barriers in place of the return at {line}, so that all \
             invocations of the workgroup execute {}",
            named(barrier)
        ),
        (None, None) => format!(
            "{} outside of each branch and loop in which invocations of the workgroup differ, and no return before it",
            named(barrier)
        ),
    };
    Repair { text, line: early.or(barrier.line.as_ref()).cloned() }
}

fn workgroup(of: &FoundAccess) -> Option<[u32; 3]> {
    of.invocation.map(|invocation| invocation.workgroup)
}

/// The advice about accesses of different workgroups, which no barrier orders.
pub(super) fn between_workgroups(language: Language, (first, second): (&FoundAccess, &FoundAccess)) -> Option<Repair> {
    (workgroup(first) != workgroup(second)).then(|| two_dispatches(language))
}

/// The advice that two dispatches order what workgroups do.
pub(super) fn two_dispatches(language: Language) -> Repair {
    let why = match language {
        Language::Wgsl => "nothing in WGSL orders plain accesses of different workgroups",
        Language::Glsl | Language::Spirv => "no control barrier waits for another workgroup",
    };
    Repair { text: format!("two dispatches: {why}"), line: None }
}

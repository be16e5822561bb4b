//! Why two accesses race, and what would order them: the memory model's answers in the words of the kernel.

use std::sync::Arc;

use spelter_memory_model::Model;
use spelter_memory_model::event::{self, Class};
use spelter_memory_model::explain;
use spelter_memory_model::format::write_slice;
use spelter_memory_model::names::Names;
use spelter_memory_model::repair::{self, Edit, TraceEdit, TraceEffort};
use spelter_memory_model::slice;
use spelter_shaders::check::Cause;
use spelter_shaders::ir::MemoryModel;

use super::finding::{FoundAccess, FoundPlace, Repair};
use super::slice::Slice;

/// The bounds of the search for repairs: a report must not take longer than the run.
const EFFORT: TraceEffort = TraceEffort { edits: 3, traces: 400, repairs: 2 };

/// The names of a slice's events.
pub(super) struct SliceNames<'a> {
    /// The instruction of each event.
    pub(super) accesses: &'a [FoundAccess],
    /// The instruction of each [`event::Site`].
    pub(super) sites: &'a [FoundAccess],
    /// The memory in conflict.
    pub(super) place: &'a FoundPlace,
    /// The rules of the kernel's language.
    pub(super) language: MemoryModel,
}

/// An access in a sentence.
fn named(access: &FoundAccess) -> String {
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

    fn reference(&self, _: usize) -> String {
        self.place.to_string()
    }

    fn site(&self, site: event::Site) -> String {
        let access = self.sites.get(site.0 as usize);
        access.map_or_else(|| site.to_string(), named)
    }
}

impl SliceNames<'_> {
    /// The first condition of the memory model that fails between the two accesses, in a sentence.
    pub(super) fn reason(&self, slice: &Slice) -> Option<String> {
        let explanation = explain::of_trace(&slice.trace, &slice.choice, slice.pair, Model::SPEC, self).ok()?;
        let cause = explanation.cause()?;
        Some(match &cause.reason {
            explain::Reason::Unrelated => {
                // The order in which they happened is the one that nothing guarantees.
                let (first, second) = slice.pair;
                format!("nothing orders {} before {}", self.place(first), self.place(second))
            }
            _ => cause.because.clone(),
        })
    }

    /// The slice as a litmus test, if the format can express it.
    pub(super) fn replay(&self, slice: &Slice) -> Option<Arc<str>> {
        let slice = slice::Slice::new(&slice.trace, &slice.choice, Model::SPEC).ok()?;
        write_slice(&slice, self).ok().map(Arc::from)
    }

    /// Changes after which the same execution has no race, the smallest first.
    pub(super) fn repairs(&self, slice: &Slice) -> Vec<Repair> {
        let found = repair::of_trace(&slice.trace, &slice.choice, slice.pair, Model::SPEC, EFFORT);
        let sets = found.map(|found| found.repairs).unwrap_or_default();
        sets.iter().map(|edits| self.repair(edits, slice)).collect()
    }

    fn repair(&self, edits: &[TraceEdit], slice: &Slice) -> Repair {
        let texts: Vec<_> = edits.iter().map(|edit| self.edit(edit, slice)).collect();
        let line = edits.iter().find_map(|edit| match edit {
            TraceEdit::Code(edit) => {
                let (first, second) = edit.places();
                self.sites.get(second.unwrap_or(first).0 as usize)?.line.clone()
            }
            TraceEdit::Api(_) => None,
        });
        Repair { text: texts.join(", and "), line }
    }

    /// An edit in the words of the language: GLSL and WGSL have functions for control barriers.
    fn edit(&self, edit: &TraceEdit, slice: &Slice) -> String {
        let TraceEdit::Code(Edit::Barrier(before, after, class)) = edit else {
            return edit.text(&slice.trace, slice.pair, self);
        };
        let barrier = match (self.language, class) {
            (MemoryModel::Wgsl, Class::Workgroup) => "workgroupBarrier()",
            (MemoryModel::Wgsl, Class::Uniform) => "storageBarrier()",
            (MemoryModel::Wgsl, Class::Image) => "textureBarrier()",
            (MemoryModel::Glsl450, Class::Workgroup) => "barrier()",
            (MemoryModel::Glsl450, Class::Uniform) => "memoryBarrierBuffer() and barrier()",
            (MemoryModel::Glsl450, Class::Image) => "memoryBarrierImage() and barrier()",
            _ => return edit.text(&slice.trace, slice.pair, self),
        };
        let (before, after) = (self.site(*before), self.site(*after));
        format!("{barrier} after {before} and before {after}, where all invocations of the workgroup execute it")
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

fn workgroup(of: &FoundAccess) -> Option<[u32; 3]> {
    of.invocation.map(|invocation| invocation.workgroup)
}

/// What WGSL cannot express: an order between workgroups.
pub(super) fn between_workgroups(
    language: MemoryModel,
    (first, second): (&FoundAccess, &FoundAccess),
) -> Option<Repair> {
    (language == MemoryModel::Wgsl && workgroup(first) != workgroup(second)).then(|| Repair {
        text: "two dispatches: nothing in WGSL orders plain accesses of different workgroups".to_owned(),
        line: None,
    })
}

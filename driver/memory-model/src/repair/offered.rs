//! The edits that repairs try, of one operation each: the same for programs and for traces.

use std::collections::BTreeSet;

use super::Edit;
use crate::event::{Action, Agent, Class, Operation, Scope};

/// Whether the operation can synchronize: an atomic or a barrier.
pub(super) fn synchronizes(operation: &Operation) -> bool {
    operation.atomic() || is_barrier(operation)
}

/// Edits of a racing access, whose other access has an agent in the same instance of `common`.
pub(super) fn access<P: Copy>(place: P, operation: &Operation, common: Scope, edits: &mut Vec<Edit<P>>) {
    let Some(access) = operation.access().filter(|access| !access.atomic) else { return };
    edits.push(Edit::NonPrivate(place));
    if access.writes {
        edits.push(Edit::Available(place, common));
    }
    if access.reads {
        edits.push(Edit::Visible(place, common));
    }
}

fn is_barrier(operation: &Operation) -> bool {
    operation.control_barrier() || matches!(operation.action, Action::Fence)
}

/// The narrowest scope whose instance contains both agents.
pub(super) fn narrowest(a: Agent, b: Agent) -> Scope {
    Scope::SHADER.into_iter().find(|scope| a.shares(b, *scope)).unwrap_or(Scope::Device)
}

/// The edit by which a function of a language makes a synchronizing operation order memory of a class, unless it does.
pub(super) fn order<P: Copy>(place: P, operation: &Operation, class: Class) -> Option<Edit<P>> {
    let edit = Edit::Order(place, class);
    let mut changed = operation.clone();
    edit.change(&mut changed);
    (changed != *operation).then_some(edit)
}

/// Edits of a synchronizing operation.
pub(super) fn synchronization<P: Copy>(
    place: P,
    operation: &Operation,
    classes: &BTreeSet<Class>,
    scopes: &BTreeSet<Scope>,
    edits: &mut Vec<Edit<P>>,
) {
    edits.extend((operation.release && !operation.make_available).then_some(Edit::MakeAvailable(place)));
    edits.extend((operation.acquire && !operation.make_visible).then_some(Edit::MakeVisible(place)));
    for &class in classes {
        if operation.acquire || operation.release {
            edits.extend((!operation.semantics.contains(class)).then_some(Edit::Semantics(place, class)));
        }
        if !operation.release && (is_barrier(operation) || operation.writes()) {
            edits.push(Edit::Release(place, class));
        }
        if !operation.acquire && (is_barrier(operation) || operation.reads()) {
            edits.push(Edit::Acquire(place, class));
        }
    }
    let wider = scopes.iter().filter(|wider| operation.scope.is_none_or(|scope| scope < **wider));
    edits.extend(wider.map(|scope| Edit::Widen(place, *scope)));
}

//! Which accesses an availability or visibility operation covers.
//!
//! "A memory barrier or atomic operation via agent A that includes MakeAvailable in its semantics performs an
//! availability operation whose source scope includes agent A and all references in the storage classes in that
//! instruction's storage class semantics, and all memory locations." "A memory write instruction that includes
//! MakePointerAvailable … performs an availability operation whose source scope includes the agent and reference used
//! to perform the write and the memory locations written by the instruction." The same, mirrored, for visibility.
//!
//! Deviations:
//! 1. Covered-by-availability and covered-by-visibility are two relations; the Khronos model has one for both (A5).
//! 2. Before 2025 the Khronos model let either flag of a barrier cover both sides of it
//!    ([`Coverage::Symmetric`](crate::Coverage::Symmetric)).
//! 3. An operation of the API covers every access of its kind of agent: the code that builds the trace must take the
//!    stages, accesses and ranges of a barrier into account.

use crate::event::{Action, Domain, Trace};
use crate::model::{Coverage, Inclusion, Model};
use crate::relation::Relation;
use crate::row::Row;

/// Pairs of an access and an availability operation that covers it, and pairs of a visibility operation and an access
/// that it covers, for the bytes that two accesses share by `shares`. Order and domains are not considered here.
pub(super) fn covers<R: Row>(
    trace: &Trace,
    model: Model,
    shares: &dyn Fn(usize, usize) -> bool,
) -> (Relation<R>, Relation<R>) {
    let n = trace.len();
    let symmetric = model.coverage == Coverage::Symmetric;
    let through = |a: usize, b: usize| match (trace.operation(a).access(), trace.operation(b).access()) {
        (Some(x), Some(y)) => x.reference == y.reference && shares(a, b),
        _ => false,
    };
    let in_semantics = |access: usize, of: usize| {
        let semantics = trace.operation(of).semantics;
        access != of && trace.operation(access).access().is_some_and(|access| semantics.contains(access.class))
    };
    let by_api = |access: usize, domain: Domain| {
        trace.operation(access).access().is_some() && Domain::of(trace.agent(access)) == domain
    };
    let available = |access: usize, by: usize| {
        let operation = trace.operation(by);
        let implied = operation.access().is_some_and(|access| access.available) && through(access, by);
        let made = operation.make_available || symmetric && operation.make_visible;
        let api = match operation.action {
            Action::Available(domain) => by_api(access, domain),
            Action::Visible(domain) => symmetric && by_api(access, domain),
            _ => false,
        };
        implied || made && in_semantics(access, by) || api
    };
    let visible = |by: usize, access: usize| {
        let operation = trace.operation(by);
        let implied = operation.access().is_some_and(|access| access.visible) && through(access, by);
        let made = operation.make_visible || symmetric && operation.make_available;
        let api = match operation.action {
            Action::Visible(domain) => by_api(access, domain),
            Action::Available(domain) => symmetric && by_api(access, domain),
            _ => false,
        };
        implied || made && in_semantics(access, by) || api
    };
    let availability = Relation::of(n, available);
    let visibility = Relation::of(n, visible);
    match model.inclusion {
        Inclusion::Split => (availability, visibility),
        Inclusion::Joint => {
            // Instructions cover in both directions, as in the single relation of the Khronos model.
            let flagged =
                |event: usize| trace.operation(event).access().is_some_and(|access| access.available || access.visible);
            let instructions = Relation::of(n, |a, b| (flagged(a) || flagged(b)) && through(a, b));
            let joint = availability.or(&visibility).or(&instructions);
            (joint.clone(), joint)
        }
    }
}

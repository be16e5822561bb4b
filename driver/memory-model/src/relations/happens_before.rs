//! Inter-thread-happens-before and happens-before.
//!
//! "Let SC be a non-empty set of storage class semantics. Then operation A inter-thread-happens-before\<SC\> operation
//! B if and only if … A system-synchronizes-with B; A synchronizes-with B, and both A and B have all of SC in their
//! semantics; A is an operation on memory in a storage class in SC or that has all of SC in its semantics, B is a
//! release barrier or release atomic with all of SC in its semantics, and A is program-ordered before B; [the same
//! mirrored for acquires;] A and B are both host operations and A inter-thread-happens-before B as defined in the host
//! language specification; or A inter-thread-happens-before\<SC\> some X and X inter-thread-happens-before\<SC\> B."
//! "Operation A happens-before operation B if and only if A is program-ordered before B [or] A
//! inter-thread-happens-before\<SC\> B for some set of storage classes SC."
//!
//! Deviations:
//! 1. Happens-before is not transitive, as the appendix says; the glossary says that it is (A4, a switch).
//! 2. Of the host language's order, host atomics are derived, as in C++ and Rust: what is sequenced before a release
//!    happens before what is sequenced after the acquire, whatever kind of operation it is (a flush, say). Other
//!    synchronization of host threads (a mutex, the end of a thread) is given by the trace.
//! 3. A set of classes that no acquire or release of the trace has adds nothing to system-synchronizes-with, and is
//!    omitted. So is a set whose classes are part of a larger one with the same acquires and releases: that orders what
//!    the smaller one orders, and more accesses.

use crate::event::{Class, Classes};
use crate::model::HappensBefore;
use crate::relation::Relation;
use crate::row::Row;

use super::classes::ByClass;
use super::{Frame, Sets};

/// One set of storage classes.
#[derive(Clone, Debug)]
pub struct ClassSet<R: Row> {
    /// The set.
    pub classes: Classes,
    /// Operations with all of the set in their semantics.
    pub ordered: R,
    /// The edges that do not depend on reads-from.
    pub fixed: Relation<R>,
}

/// The sets of classes that are relevant for a trace, each with its edges.
pub(super) fn class_sets<R: Row>(
    sets: &Sets<R>,
    by_class: &ByClass<R>,
    program_order: &Relation<R>,
    system: &Relation<R>,
) -> Vec<ClassSet<R>> {
    let synchronizing = sets.acquires.with(&sets.releases);
    let of = |classes: Classes| {
        let ordered = classes.iter().fold(synchronizing.clone(), |set, class| set.and(by_class.semantics(class)));
        let has_all = |class: &Class| ordered.and(by_class.semantics(*class)) == ordered;
        if ordered.is_empty() || Class::ALL.into_iter().filter(has_all).collect::<Classes>() != classes {
            return None;
        }
        let concerned = by_class.accesses_in(classes).with(&ordered);
        let to_releases = program_order.clone().from(&concerned).to(&ordered.and(&sets.releases));
        let from_acquires = program_order.clone().from(&ordered.and(&sets.acquires)).to(&concerned);
        Some(ClassSet { classes, fixed: system.clone().or(&to_releases).or(&from_acquires), ordered })
    };
    let mut found: Vec<_> = Classes::sets().filter_map(of).collect();
    if found.is_empty() && !system.is_empty() {
        found.push(ClassSet { classes: Classes::ALL, ordered: R::default(), fixed: system.clone() });
    }
    found
}

/// Inter-thread-happens-before of host operations.
pub(super) fn host_order<R: Row>(frame: &Frame<R>, synchronizes_with: &Relation<R>) -> Relation<R> {
    let hosts = &frame.sets.hosts;
    let synchronized = synchronizes_with.clone().from(hosts).to(hosts);
    if synchronized.is_empty() {
        return synchronized;
    }
    let sequenced = frame.program_order.clone().from(hosts).reflexive();
    sequenced.then(&synchronized).then(&sequenced).closed()
}

/// Happens-before.
pub(super) fn happens_before<R: Row>(frame: &Frame<R>, synchronizes_with: &Relation<R>) -> Relation<R> {
    let mut before = frame.program_order.clone();
    let host_order = host_order(frame, synchronizes_with);
    for set in &frame.class_sets {
        let synchronized = synchronizes_with.clone().from(&set.ordered).to(&set.ordered);
        before = before.or(&synchronized.or(&set.fixed).or(&host_order).closed());
    }
    match frame.model.happens_before {
        HappensBefore::Appendix => before,
        HappensBefore::Transitive => before.closed(),
    }
}

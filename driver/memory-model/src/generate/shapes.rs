//! Shapes: operations of generated programs without their locations.

use crate::event::{Access, Action, Class, Classes, Location, Operation, Scope};

use super::{Bounds, Kind};

/// The distinct shapes within bounds. An access gets its location and class later.
pub(super) fn shapes(bounds: &Bounds) -> Vec<Operation> {
    let classes: Vec<_> = Class::ALL.into_iter().take(bounds.classes).collect();
    // Semantics have one class or all.
    let mut semantics: Vec<Classes> = classes.iter().map(|class| Classes::NONE.with(*class)).collect();
    if classes.len() > 1 {
        semantics.push(classes.iter().copied().collect());
    }
    let mut scopes = bounds.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    let mut shapes = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| bounds.kinds.contains(kind)) {
        match kind {
            Kind::Plain => plain(&scopes, &mut shapes),
            Kind::Atomic => {
                for (reads, writes) in [(true, false), (false, true)] {
                    ordered(&access(reads, writes, true), (reads, writes), true, &scopes, &semantics, &mut shapes);
                }
            }
            Kind::Update => ordered(&access(true, true, true), (true, true), true, &scopes, &semantics, &mut shapes),
            Kind::Fence => {
                ordered(&Operation::new(Action::Fence), (true, true), false, &scopes, &semantics, &mut shapes);
            }
            Kind::Barrier => {
                for scope in [Scope::Subgroup, Scope::Workgroup].into_iter().filter(|scope| scopes.contains(scope)) {
                    let barrier = Operation::new(Action::ControlBarrier { execution: scope });
                    ordered(&barrier, (true, true), true, &[scope], &semantics, &mut shapes);
                }
            }
        }
    }
    shapes.iter_mut().for_each(Operation::complete);
    shapes
}

/// For each shape, the index of the one with the first two storage classes exchanged in its semantics.
pub(super) fn exchanged(shapes: &[Operation]) -> Vec<u16> {
    let exchange = |class: Class| match class {
        Class::Uniform => Class::Workgroup,
        Class::Workgroup => Class::Uniform,
        other => other,
    };
    let of = |shape: &Operation| {
        let wanted = Operation { semantics: shape.semantics.iter().map(exchange).collect(), ..shape.clone() };
        shapes.iter().position(|known| *known == wanted).unwrap_or(0) as u16
    };
    shapes.iter().map(of).collect()
}

fn access(reads: bool, writes: bool, atomic: bool) -> Operation {
    Operation::new(Action::Access(Access {
        reads,
        writes,
        atomic,
        non_private: atomic,
        available: false,
        visible: false,
        class: Class::Uniform,
        reference: 0,
        location: Location::whole(0),
    }))
}

/// Plain loads and stores: private, non-private, and visible or available in each scope.
fn plain(scopes: &[Scope], shapes: &mut Vec<Operation>) {
    for writes in [false, true] {
        let private = access(!writes, writes, false);
        let with = |change: &dyn Fn(&mut Access), scope: Option<Scope>| {
            let mut operation = Operation { scope, ..private.clone() };
            operation.access_mut().into_iter().for_each(change);
            operation
        };
        shapes.push(private.clone());
        shapes.push(with(&|access| access.non_private = true, None));
        for &scope in scopes {
            let flag = |access: &mut Access| (access.available, access.visible) = (writes, !writes);
            shapes.push(with(&flag, Some(scope)));
        }
    }
}

/// `base` with each scope and each order that it `may` have (acquire, release, both, or relaxed), with the given
/// semantics, with and without availability and visibility.
fn ordered(
    base: &Operation,
    may: (bool, bool),
    relaxed: bool,
    scopes: &[Scope],
    semantics: &[Classes],
    shapes: &mut Vec<Operation>,
) {
    for &scope in scopes {
        let scoped = Operation { scope: Some(scope), ..base.clone() };
        shapes.extend(relaxed.then(|| scoped.clone()));
        for (acquire, release) in [(true, false), (false, true), (true, true)] {
            if acquire && !may.0 || release && !may.1 {
                continue;
            }
            for &semantics in semantics {
                for (make_available, make_visible) in [(false, false), (false, true), (true, false), (true, true)] {
                    if (!make_available || release) && (!make_visible || acquire) {
                        shapes.push(Operation {
                            acquire,
                            release,
                            semantics,
                            make_available,
                            make_visible,
                            ..scoped.clone()
                        });
                    }
                }
            }
        }
    }
}

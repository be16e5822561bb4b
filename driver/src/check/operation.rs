//! Memory-model operations: the translation of the instruction at a site.

use spelter_memory_model::event::{Access, Action, Class, Classes, Location, Operation, Scope};
use spelter_shaders::ir::{self, AtomicOp, Semantics, SiteAction, StorageClass};

/// The operation of an execution of a site. `wrote` is whether an atomic wrote; `place` is the location and the number
/// of the reference, which barriers do not have.
///
/// Semantics without a storage class or without an order have no effect. A compare-exchange that fails only reads, with
/// its other semantics.
pub fn operation(action: &SiteAction, wrote: bool, place: Option<(Location, u32)>) -> Operation {
    let (location, reference) = place.unwrap_or((Location { object: 0, bytes: 0..0 }, 0));
    let access = |storage: StorageClass| Access {
        reads: false,
        writes: false,
        atomic: false,
        non_private: false,
        available: false,
        visible: false,
        class: class(storage),
        reference,
        location,
    };
    let mut operation = match *action {
        SiteAction::Read(site) => {
            let access = Access {
                reads: true,
                non_private: site.non_private,
                visible: site.scope.is_some(),
                ..access(site.class)
            };
            let mut operation = Operation::new(Action::Access(access));
            operation.scope = site.scope.map(scope);
            operation
        }
        SiteAction::Write(site) => {
            let access = Access {
                writes: true,
                non_private: site.non_private,
                available: site.scope.is_some(),
                ..access(site.class)
            };
            let mut operation = Operation::new(Action::Access(access));
            operation.scope = site.scope.map(scope);
            operation
        }
        SiteAction::Atomic { op, class, scope: within, semantics, unequal } => {
            let reads = !matches!(op, AtomicOp::Store | AtomicOp::HalfStore);
            let access = Access { reads, writes: wrote, atomic: true, ..access(class) };
            let mut operation = Operation::new(Action::Access(access));
            operation.scope = Some(scope(within));
            let failed = op == AtomicOp::CompareExchange && !wrote;
            set_semantics(&mut operation, if failed { unequal } else { semantics });
            operation
        }
        SiteAction::Fence { scope: within, semantics } => {
            let mut operation = Operation::new(Action::Fence);
            operation.scope = Some(scope(within));
            set_semantics(&mut operation, semantics);
            operation
        }
        SiteAction::Barrier { execution, memory, semantics } => {
            let mut operation = Operation::new(Action::ControlBarrier { execution: scope(execution) });
            operation.scope = Some(scope(memory));
            set_semantics(&mut operation, semantics);
            operation
        }
    };
    operation.complete();
    operation
}

/// Sets order, classes and flags of an atomic or a barrier from SPIR-V's `Memory Semantics`. Semantics without a class
/// order nothing.
pub fn set_semantics(operation: &mut Operation, semantics: Semantics) {
    const OUTPUT: u32 = 0x1000;
    let bit = |class: Class| match class {
        Class::Uniform => StorageClass::Uniform.bit(),
        Class::Workgroup => StorageClass::Workgroup.bit(),
        Class::Image => StorageClass::Image.bit(),
        Class::Output => OUTPUT,
    };
    let classes: Classes = Class::ALL.into_iter().filter(|&class| semantics.0 & bit(class) != 0).collect();
    let access = operation.access();
    let (reads, writes) = access.map_or((true, true), |access| (access.reads, access.writes));
    operation.acquire = semantics.acquires() && reads && !classes.is_empty();
    operation.release = semantics.releases() && writes && !classes.is_empty();
    if operation.acquire || operation.release {
        operation.semantics = classes;
    }
    operation.make_available = operation.release && semantics.0 & Semantics::MAKE_AVAILABLE != 0;
    operation.make_visible = operation.acquire && semantics.0 & Semantics::MAKE_VISIBLE != 0;
}

fn class(class: StorageClass) -> Class {
    match class {
        StorageClass::Uniform => Class::Uniform,
        StorageClass::Workgroup => Class::Workgroup,
        StorageClass::Image => Class::Image,
    }
}

/// The scope in the memory model.
pub fn scope(scope: ir::Scope) -> Scope {
    match scope {
        ir::Scope::Invocation => Scope::Invocation,
        ir::Scope::Subgroup => Scope::Subgroup,
        ir::Scope::Workgroup => Scope::Workgroup,
        ir::Scope::QueueFamily => Scope::QueueFamily,
        ir::Scope::Device => Scope::Device,
        ir::Scope::CrossDevice => Scope::CrossDevice,
    }
}

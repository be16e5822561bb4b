//! What a shader's accesses, atomics and barriers are in the memory model, by the rules of its language
//! ([`MemoryModel`]).

use spelter_memory_model::event::{Access, Class, Classes, Operation, Scope};
use spelter_shaders::ir::{self, MemoryModel, Semantics, StorageClass};

/// Sets the attributes of a load or store.
pub(super) fn access(model: MemoryModel, operation: &mut Operation, declared: ir::Access) {
    let Some(access) = operation.access_mut() else { return };
    let class = match access.class {
        Class::Workgroup => StorageClass::Workgroup,
        Class::Image => StorageClass::Image,
        Class::Uniform | Class::Output => StorageClass::Uniform,
    };
    let of = model.access(class, declared);
    *access = Access {
        non_private: of.non_private,
        available: of.scope.is_some() && access.writes,
        visible: of.scope.is_some() && access.reads,
        ..access.clone()
    };
    operation.scope = of.scope.map(scope);
}

/// Sets the order, the classes and the flags of an atomic or a barrier. Semantics without a class order nothing.
pub(super) fn semantics(model: MemoryModel, operation: &mut Operation, declared: Semantics) {
    const CLASSES: [(u32, Class); 4] =
        [(0x40, Class::Uniform), (0x100, Class::Workgroup), (0x800, Class::Image), (0x1000, Class::Output)];
    let of = model.semantics(declared);
    let classes: Classes = CLASSES.into_iter().filter(|(bit, _)| of.0 & bit != 0).map(|(_, class)| class).collect();
    let is_access = operation.access().is_some();
    operation.acquire = of.acquires() && !classes.is_empty() && (!is_access || operation.reads());
    operation.release = of.releases() && !classes.is_empty() && (!is_access || operation.writes());
    if operation.acquire || operation.release {
        operation.semantics = classes;
    }
    operation.make_available = operation.release && of.0 & Semantics::MAKE_AVAILABLE != 0;
    operation.make_visible = operation.acquire && of.0 & Semantics::MAKE_VISIBLE != 0;
}

/// The scope in the memory model.
pub(super) fn scope(scope: ir::Scope) -> Scope {
    match scope {
        ir::Scope::Invocation => Scope::Invocation,
        ir::Scope::Subgroup => Scope::Subgroup,
        ir::Scope::Workgroup => Scope::Workgroup,
        ir::Scope::QueueFamily => Scope::QueueFamily,
        ir::Scope::Device => Scope::Device,
        ir::Scope::CrossDevice => Scope::CrossDevice,
    }
}

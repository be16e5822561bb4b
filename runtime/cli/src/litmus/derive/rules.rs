//! Memory-model operations of a shader's accesses, atomics and barriers, by the rules of its language
//! ([`MemoryModel`]).

pub(super) use spelter_driver::check::scope;
use spelter_driver::check::set_semantics;
use spelter_memory_model::event::{Access, Class, Operation};
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
    set_semantics(operation, model.semantics(declared));
}

//! What a shader's accesses, atomics and barriers are in the memory model, by the language's rules.
//!
//! - **Vulkan**: as declared.
//! - **GLSL450** modules have no operands of the memory model. `Coherent` and `Volatile` accesses are non-private and
//!   make their values available to, and visible from, the queue family; workgroup variables do so in the workgroup;
//!   barriers and atomics with semantics make memory available and visible. These are the rules by which SPIRV-Tools
//!   translates such modules to the Vulkan model. Other accesses are private.
//! - **WGSL** ("Memory Model"): accesses to storage and workgroup memory are non-private, available and visible in the
//!   workgroup; barriers make memory available and visible.

use spelter_memory_model::event::{Access, Class, Classes, Operation, Scope};
use spelter_shaders::ir;

/// The language's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    Vulkan,
    Glsl450,
    Wgsl,
}

/// `OpMemoryModel`, and its operand `Vulkan`.
const OP_MEMORY_MODEL: u32 = 14;
const VULKAN: u32 = 3;
/// The words of the header of a module.
const HEADER: usize = 5;

impl Rules {
    /// The rules of a module; WGSL has none.
    pub(super) fn of(spirv: Option<&[u32]>) -> Self {
        let Some(words) = spirv else { return Self::Wgsl };
        let mut at = HEADER;
        while let Some(&first) = words.get(at) {
            if first & 0xffff == OP_MEMORY_MODEL {
                return if words.get(at + 2) == Some(&VULKAN) { Self::Vulkan } else { Self::Glsl450 };
            }
            at += ((first >> 16) as usize).max(1);
        }
        Self::Glsl450
    }

    /// Sets the attributes of a load or store.
    pub(super) fn access(self, operation: &mut Operation, declared: ir::Access) {
        let Some(access) = operation.access_mut() else { return };
        let coherent = declared.non_private || declared.volatile;
        let (non_private, scope) = match (self, access.class) {
            (Self::Vulkan, _) => (declared.non_private, declared.available_visible.map(scope)),
            (Self::Wgsl, _) | (Self::Glsl450, Class::Workgroup) => (true, Some(Scope::Workgroup)),
            (Self::Glsl450, _) if coherent => (true, Some(Scope::QueueFamily)),
            (Self::Glsl450, _) => (false, None),
        };
        *access = Access {
            non_private,
            available: scope.is_some() && access.writes,
            visible: scope.is_some() && access.reads,
            ..access.clone()
        };
        operation.scope = scope;
    }

    /// Sets the order, the classes and the flags of an atomic or a barrier. Semantics without a class order nothing.
    pub(super) fn semantics(self, operation: &mut Operation, ir::Semantics(bits): ir::Semantics) {
        const CLASSES: [(u32, Class); 4] =
            [(0x40, Class::Uniform), (0x100, Class::Workgroup), (0x800, Class::Image), (0x1000, Class::Output)];
        let classes: Classes = CLASSES.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, class)| class).collect();
        let is_access = operation.access().is_some();
        operation.acquire = bits & 0x1a != 0 && !classes.is_empty() && (!is_access || operation.reads());
        operation.release = bits & 0x1c != 0 && !classes.is_empty() && (!is_access || operation.writes());
        if operation.acquire || operation.release {
            operation.semantics = classes;
        }
        let implied = self != Self::Vulkan;
        operation.make_available = operation.release && (implied || bits & 0x2000 != 0);
        operation.make_visible = operation.acquire && (implied || bits & 0x4000 != 0);
    }
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

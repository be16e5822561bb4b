//! The memory model of a module's language, and the attributes of accesses, atomics and barriers that it implies.
//!
//! - **Vulkan**: as declared.
//! - **GLSL450** modules have no operands of the memory model. `Coherent` and `Volatile` accesses are non-private and
//!   make their values available to, and visible from, the queue family; workgroup variables do so in the workgroup;
//!   barriers and atomics with semantics make memory available and visible. These are the rules by which SPIRV-Tools
//!   (`upgrade-memory-model`) translates such modules to the Vulkan model. Other accesses are private.
//! - **WGSL** ("Memory Model"): accesses to storage and workgroup memory are non-private, available and visible in the
//!   workgroup; barriers make memory available and visible in the workgroup.

use super::{Access, AccessSite, Scope, Semantics, StorageClass};

/// The rules of the language of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryModel {
    /// SPIR-V's `Vulkan`.
    Vulkan,
    /// SPIR-V's `GLSL450`, and `Simple`.
    #[default]
    Glsl450,
    /// WGSL.
    Wgsl,
}

impl MemoryModel {
    /// The attributes of a load or store with these memory operands.
    pub fn access(self, class: StorageClass, declared: Access) -> AccessSite {
        let coherent = declared.non_private || declared.volatile;
        let (non_private, scope) = match (self, class) {
            (Self::Vulkan, _) => (declared.non_private, declared.available_visible),
            (Self::Wgsl, _) | (Self::Glsl450, StorageClass::Workgroup) => (true, Some(Scope::Workgroup)),
            (Self::Glsl450, _) if coherent => (true, Some(Scope::QueueFamily)),
            (Self::Glsl450, _) => (false, None),
        };
        AccessSite { class, non_private, volatile: declared.volatile, scope }
    }

    /// The semantics of an atomic or a barrier, with the flags that are implied: a release makes available and an
    /// acquire makes visible, if they name a class of memory. Without one they order nothing.
    pub fn semantics(self, declared: Semantics) -> Semantics {
        let mut bits = declared.0;
        if self != Self::Vulkan && declared.has_classes() {
            bits |= if declared.releases() { Semantics::MAKE_AVAILABLE } else { 0 };
            bits |= if declared.acquires() { Semantics::MAKE_VISIBLE } else { 0 };
        }
        Semantics(bits)
    }

    /// The memory scope of a control barrier: WGSL's have that of the workgroup, although translators to SPIR-V may
    /// give them a wider one.
    pub fn barrier_scope(self, declared: Scope) -> Scope {
        if self == Self::Wgsl { Scope::Workgroup } else { declared }
    }
}

impl Semantics {
    /// `MakeAvailable`.
    pub const MAKE_AVAILABLE: u32 = 0x2000;
    /// `MakeVisible`.
    pub const MAKE_VISIBLE: u32 = 0x4000;
    /// `UniformMemory`, `SubgroupMemory`, `WorkgroupMemory`, `CrossWorkgroupMemory`, `AtomicCounterMemory`,
    /// `ImageMemory` and `OutputMemory`.
    const CLASSES: u32 = 0x1fc0;

    /// Whether they are acquire, acquire-release or sequentially consistent.
    pub fn acquires(self) -> bool {
        self.0 & (0x2 | 0x8 | 0x10) != 0
    }

    /// Whether they are release, acquire-release or sequentially consistent.
    pub fn releases(self) -> bool {
        self.0 & (0x4 | 0x8 | 0x10) != 0
    }

    /// Whether they name a class of memory.
    pub fn has_classes(self) -> bool {
        self.0 & Self::CLASSES != 0
    }
}

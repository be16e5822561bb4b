//! Sites: what checked mode must know about each access to shared memory and each synchronizing instruction of a kernel
//! as it was read, however the optimiser changes the instruction itself.

use std::sync::Arc;

use super::{AtomicOp, Scope, Semantics};

/// An instruction of the module that accesses shared memory or synchronizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteData {
    /// What it does.
    pub action: SiteAction,
    /// Its SPIR-V word; 0 if unknown.
    pub word: u32,
    /// SPIR-V words of the calls through which it was inlined, the outermost first.
    pub inlined_at: Arc<[u32]>,
}

/// What an instruction does in the memory model, implied attributes included: those that a module of the GLSL450 memory
/// model or a WGSL module does not write down are filled in by the rules of its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteAction {
    /// A load, or an image instruction that reads.
    Read(AccessSite),
    /// A store, or an image instruction that writes.
    Write(AccessSite),
    /// An atomic operation.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// The class of the memory.
        class: StorageClass,
        /// Memory scope.
        scope: Scope,
        /// Semantics; of a compare-exchange, those on success.
        semantics: Semantics,
        /// Semantics if a compare-exchange fails; 0 for other operations.
        unequal: Semantics,
    },
    /// `OpMemoryBarrier`.
    Fence {
        /// Memory scope.
        scope: Scope,
        /// Semantics.
        semantics: Semantics,
    },
    /// `OpControlBarrier`.
    Barrier {
        /// The invocations that wait for each other.
        execution: Scope,
        /// Memory scope.
        memory: Scope,
        /// Semantics.
        semantics: Semantics,
    },
}

/// The attributes of a plain access in the memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessSite {
    /// The class of the memory.
    pub class: StorageClass,
    /// `NonPrivatePointer` or `NonPrivateTexel`, declared or implied.
    pub non_private: bool,
    /// `Volatile`.
    pub volatile: bool,
    /// Of a write: the scope to which it makes its value available. Of a read: the scope from which it makes values
    /// visible.
    pub scope: Option<Scope>,
}

impl AccessSite {
    /// Whether it is private: an availability or visibility operation is allowed on non-private accesses only.
    pub fn is_private(&self) -> bool {
        !self.non_private && self.scope.is_none()
    }
}

/// A set of SPIR-V storage classes that memory semantics name with one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageClass {
    /// `StorageBuffer`, `PhysicalStorageBuffer`, `Uniform`: `UniformMemory`.
    Uniform,
    /// `Workgroup`: `WorkgroupMemory`.
    Workgroup,
    /// `Image`, and texels of storage images and texel buffers: `ImageMemory`.
    Image,
}

impl StorageClass {
    /// The bit of SPIR-V's `Memory Semantics`.
    pub fn bit(self) -> u32 {
        match self {
            Self::Uniform => 0x40,
            Self::Workgroup => 0x100,
            Self::Image => 0x800,
        }
    }
}

impl SiteAction {
    /// The class of the memory that it accesses; `None` for barriers.
    pub fn class(&self) -> Option<StorageClass> {
        match *self {
            Self::Read(access) | Self::Write(access) => Some(access.class),
            Self::Atomic { class, .. } => Some(class),
            Self::Fence { .. } | Self::Barrier { .. } => None,
        }
    }
}

//! Memory types. All memory is one heap that host and device share; the types differ in host visibility and coherence.

use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk::{self, MemoryPropertyFlags as P};

/// The types, ordered as Vulkan requires: a type whose flags are a subset of another's comes first.
const TYPES: [P; 3] = [
    P::DEVICE_LOCAL,
    P::from_raw(P::DEVICE_LOCAL.as_raw() | P::HOST_VISIBLE.as_raw() | P::HOST_CACHED.as_raw()),
    P::from_raw(
        P::DEVICE_LOCAL.as_raw() | P::HOST_VISIBLE.as_raw() | P::HOST_CACHED.as_raw() | P::HOST_COHERENT.as_raw(),
    ),
];

/// A bit for each type: every resource may use any of them.
pub(crate) const ALL: u32 = (1 << TYPES.len()) - 1;

/// The flags of a type; `None` if the type does not exist.
pub(crate) fn flags(index: u32) -> Option<P> {
    TYPES.get(index as usize).copied()
}

/// `VkPhysicalDeviceMemoryProperties` with a heap of `heap_size` bytes.
pub(crate) fn properties(heap_size: u64) -> vk::PhysicalDeviceMemoryProperties {
    let mut properties = vk::PhysicalDeviceMemoryProperties {
        memory_type_count: TYPES.len() as u32,
        memory_heap_count: 1,
        ..Default::default()
    };
    for (place, flags) in properties.memory_types.iter_mut().zip(TYPES) {
        *place = vk::MemoryType { property_flags: flags, heap_index: 0 };
    }
    properties.memory_heaps[0] = vk::MemoryHeap { size: heap_size, flags: vk::MemoryHeapFlags::DEVICE_LOCAL };
    properties
}

/// Handle types that can be imported: memory that the program allocated, but not memory of other devices.
pub(crate) const IMPORTED: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

static IN_USE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

/// Bytes of live allocations.
pub(crate) fn bytes_in_use() -> u64 {
    IN_USE.load(Ordering::Relaxed)
}

/// The maximum of [`bytes_in_use`] so far.
pub(crate) fn peak_bytes_in_use() -> u64 {
    PEAK.load(Ordering::Relaxed)
}

/// Counts an allocation.
pub(crate) fn add_bytes_in_use(bytes: u64) {
    let used = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(used, Ordering::Relaxed);
}

/// Counts the end of an allocation.
pub(crate) fn subtract_bytes_in_use(bytes: u64) {
    IN_USE.fetch_sub(bytes, Ordering::Relaxed);
}

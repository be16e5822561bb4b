//! Memory types. All memory is one heap that host and device share; the types differ in host visibility and coherence.

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

//! Memory types. All memory is one heap that host and device share; the types differ in what a program may do with it.

use ash::vk::{self, MemoryPropertyFlags as P};

/// Types in the order that Vulkan asks for: one with fewer flags before one with more.
const TYPES: [P; 3] = [
    P::DEVICE_LOCAL,
    P::from_raw(P::DEVICE_LOCAL.as_raw() | P::HOST_VISIBLE.as_raw() | P::HOST_CACHED.as_raw()),
    P::from_raw(
        P::DEVICE_LOCAL.as_raw() | P::HOST_VISIBLE.as_raw() | P::HOST_CACHED.as_raw() | P::HOST_COHERENT.as_raw(),
    ),
];

/// A bit for each type: any of them will do for anything.
pub(crate) const ALL: u32 = (1 << TYPES.len()) - 1;

/// The flags of a type, if there is one.
pub(crate) fn flags(index: u32) -> Option<P> {
    TYPES.get(index as usize).copied()
}

/// `VkPhysicalDeviceMemoryProperties` of a heap of so many bytes.
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

//! Host memory used as device memory (`VK_EXT_external_memory_host`).
//!
//! # Safety
//!
//! [`GuestSlice::new`] requires its range to be mapped, readable and writable while a copy of the slice is used. Here
//! the caller guarantees it, by Vulkan's rule that imported memory outlives the memory object, its buffers and all
//! commands.

use std::sync::Arc;

use spelter_shaders::guest::GuestSlice;

use super::DeviceMemory;
use crate::device::Device;
use crate::error::{Error, require};
use crate::memory::{Allocation, Owner};

impl Device {
    /// Alignment of imported memory's start and end (`minImportedHostPointerAlignment`), in bytes.
    pub const IMPORT_ALIGNMENT: u64 = 4096;

    /// `vkAllocateMemory` with `VkImportMemoryHostPointerInfoEXT`: `size` bytes of host memory at `pointer`.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped, readable and writable, and no Rust reference points to them, as long as this memory
    /// object, a buffer or image that is bound to it, a descriptor set that names one of those, or a command that uses
    /// one exists.
    pub unsafe fn import_host_memory(&self, pointer: *mut u8, size: u64) -> Result<DeviceMemory, Error> {
        let at = "VkImportMemoryHostPointerInfoEXT";
        let aligned = (pointer.addr() as u64).is_multiple_of(Self::IMPORT_ALIGNMENT) && !pointer.is_null();
        require(aligned, at, "VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749", || {
            format!("address {:#x} is not a multiple of {}", pointer.addr(), Self::IMPORT_ALIGNMENT)
        })?;
        let whole = size > 0 && size.is_multiple_of(Self::IMPORT_ALIGNMENT);
        require(whole, at, "VUID-VkMemoryAllocateInfo-allocationSize-01745", || {
            format!("allocationSize {size} is not a multiple of {}", Self::IMPORT_ALIGNMENT)
        })?;
        // SAFETY: the caller guarantees that the range stays mapped and unreferenced.
        let slice = unsafe { GuestSlice::new(pointer, size) };
        Ok(DeviceMemory::of_allocation(self, Arc::new(Allocation::new(slice, Owner::Host))))
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    use ash::vk::{BufferUsageFlags, CommandBufferUsageFlags};

    use super::*;
    use crate::device::DeviceOptions;

    #[test]
    fn commands_and_the_host_see_the_same_bytes() {
        let device =
            Device::new(DeviceOptions { workers: 1, heap_size: 16 << 20, ..DeviceOptions::default() }).unwrap();
        let layout = Layout::from_size_align(8192, 4096).unwrap();
        // SAFETY: the layout is not empty.
        let pointer = unsafe { alloc_zeroed(layout) };
        // SAFETY: it is freed after its last use.
        let refused =
            |offset, size| unsafe { device.import_host_memory(pointer.wrapping_add(offset), size) }.unwrap_err();
        assert!(refused(4, 4096).to_string().contains("VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749"));
        assert!(refused(0, 100).to_string().contains("VUID-VkMemoryAllocateInfo-allocationSize-01745"));
        // SAFETY: as above.
        let memory = unsafe { device.import_host_memory(pointer, 8192) }.unwrap();
        let buffer = device.create_buffer(4096, BufferUsageFlags::TRANSFER_DST).unwrap();
        buffer.bind_memory(&memory, 4096).unwrap();
        let command = device.create_command_pool().allocate();
        command.begin(CommandBufferUsageFlags::empty()).unwrap();
        command.fill_buffer(&buffer, 8, 4, 0xabcd_1234).unwrap();
        command.end().unwrap();
        device.queue().submit(&[&command], None).unwrap();
        device.queue().wait_idle().unwrap();
        // SAFETY: nothing runs, and the word is inside.
        let word = unsafe { pointer.wrapping_add(4096 + 8).cast::<u32>().read() };
        assert_eq!((word, memory.host_address()), (0xabcd_1234, pointer));
        drop((command, buffer, memory));
        // SAFETY: nothing uses it any more.
        unsafe { dealloc(pointer, layout) };
    }
}

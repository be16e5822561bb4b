//! Memory objects: a piece of the heap that the host reads and writes, with bounds.

use std::sync::Arc;

use spelter_shaders::guest::GuestSlice;

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::memory::Allocation;

/// Memory of a device (`VkDeviceMemory`). A handle; the memory is freed when the last user is gone, be it this, a buffer
/// or a recorded command.
#[derive(Clone, Debug)]
pub struct DeviceMemory {
    device: Device,
    allocation: Arc<Allocation>,
}

impl DeviceMemory {
    pub(crate) fn new(device: &Device, size: u64, memory_type: u32) -> Result<Self, Error> {
        let at = "vkAllocateMemory";
        require(size > 0, at, "VUID-VkMemoryAllocateInfo-allocationSize-07897", || "allocationSize is 0".into())?;
        let types = device.memory_types().len();
        require((memory_type as usize) < types, at, "VUID-vkAllocateMemory-pAllocateInfo-01714", || {
            format!("memoryTypeIndex {memory_type} of {types} types")
        })?;
        let heap = device.heap().size();
        require(size <= heap, at, "VUID-vkAllocateMemory-pAllocateInfo-01713", || {
            format!("allocationSize {size} in a heap of {heap} bytes")
        })?;
        Ok(Self::of_allocation(device, device.heap().allocate(size)?))
    }

    /// Memory that there is already.
    pub(crate) fn of_allocation(device: &Device, allocation: Arc<Allocation>) -> Self {
        Self { device: device.clone(), allocation }
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.slice().len()
    }

    /// Copies bytes out, from byte `offset` on. Bytes that a running command writes meanwhile are old or new.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.check(offset, into.len())?;
        self.slice().read(offset, into);
        Ok(())
    }

    /// Copies bytes in, from byte `offset` on.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.check(offset, from.len())?;
        self.slice().write(offset, from);
        Ok(())
    }

    /// `vkMapMemory`: where the memory is in the host's addresses, from now until the last user of it is gone. Kernels may
    /// write it at any time: no Rust reference may point there.
    pub fn host_address(&self) -> *mut u8 {
        self.slice().pointer()
    }

    /// The rules of a mapping of that range; nothing at all may be read anywhere inside.
    fn check(&self, offset: u64, len: usize) -> Result<(), Misuse> {
        let (at, size, len) = ("vkMapMemory", self.size(), len as u64);
        require(offset < size || (len == 0 && offset == size), at, "VUID-vkMapMemory-offset-00679", || {
            format!("offset {offset} in memory of {size} bytes")
        })?;
        require(len <= size - offset, at, "VUID-vkMapMemory-size-00681", || {
            format!("{len} bytes at offset {offset} in memory of {size} bytes")
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    /// The bytes, good as long as the allocation is held.
    pub(crate) fn slice(&self) -> GuestSlice {
        self.allocation.slice()
    }
}

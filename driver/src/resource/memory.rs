//! Memory objects: ranges of the heap, with bounds-checked access for the host.

use std::ops::Range;
use std::sync::Arc;

use spelter_shaders::guest::GuestSlice;

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::memory::Allocation;

/// Memory of a device (`VkDeviceMemory`). A handle; the memory is freed when the last handle, bound resource and
/// recorded command that uses it are dropped.
#[derive(Clone, Debug)]
pub struct DeviceMemory {
    device: Device,
    allocation: Arc<Allocation>,
}

impl Device {
    /// `vkAllocateMemory`: `size` bytes of a type of [`Device::memory_types`], all zero.
    pub fn allocate_memory(&self, size: u64, memory_type: u32) -> Result<DeviceMemory, Error> {
        DeviceMemory::new(self, size, memory_type)
    }
}

impl DeviceMemory {
    fn new(device: &Device, size: u64, memory_type: u32) -> Result<Self, Error> {
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

    /// A memory object for an existing allocation.
    pub(crate) fn of_allocation(device: &Device, allocation: Arc<Allocation>) -> Self {
        Self { device: device.clone(), allocation }
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.slice().len()
    }

    /// Copies bytes out, beginning at byte `offset`. Bytes that a running command writes meanwhile have their old or
    /// their new values.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.check(offset, into.len())?;
        self.host_accesses(offset, into.len(), false);
        self.slice().read(offset, into);
        Ok(())
    }

    /// Copies bytes in, beginning at byte `offset`.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), Error> {
        self.check(offset, from.len())?;
        self.host_accesses(offset, from.len(), true);
        self.slice().write(offset, from);
        Ok(())
    }

    /// `vkMapMemory`: the memory's host address, valid until the memory is freed. Kernels may write the bytes at any
    /// time, so no Rust reference may point to them.
    pub fn host_address(&self) -> *mut u8 {
        self.allocation.host_pointer()
    }

    fn host_accesses(&self, offset: u64, len: usize, writes: bool) {
        let checker = self.device.checker();
        checker.inspect(|checker| checker.host_accesses(self.slice(), offset, len as u64, writes));
    }

    /// Tells checked mode that the host accesses a range through its address from now on, or no longer. What it does
    /// there is not seen, but what it has waited for should be visible to it.
    pub fn note_mapping(&self, range: Range<u64>, mapped: bool) {
        let checker = self.device.checker();
        checker.inspect(|checker| checker.maps(self.slice(), range, mapped));
    }

    /// Checks a range by the rules of `vkMapMemory`, except that an empty range at the end is allowed.
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

    /// The bytes, valid as long as the allocation exists.
    pub(crate) fn slice(&self) -> GuestSlice {
        self.allocation.slice()
    }
}

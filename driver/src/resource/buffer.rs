//! Buffers: a size and a usage, bound once to a range of a memory object.

use std::sync::{Arc, OnceLock};

use ash::vk;
use spelter_shaders::guest::GuestSlice;

use super::DeviceMemory;
use super::known::Known;
use crate::check::ResourceKind;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;
use crate::memory::Allocation;

/// Alignment of buffers in memory, in bytes: a cache line, which is also the widest vector.
const ALIGNMENT: u64 = 64;

/// A buffer (`VkBuffer`). A handle; it keeps its memory alive.
#[derive(Clone, Debug)]
pub struct Buffer {
    inner: Arc<BufferInner>,
}

#[derive(Debug)]
struct BufferInner {
    device: Device,
    size: u64,
    usage: vk::BufferUsageFlags,
    storage: OnceLock<Storage>,
    known: Known,
}

impl BufferInner {
    /// Whether shaders may access the buffer by its device address.
    fn is_addressable(&self) -> bool {
        self.usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS)
    }
}

impl Drop for BufferInner {
    fn drop(&mut self) {
        // In a forked process, a thread that does not exist there may hold the lock, and no kernel runs.
        if self.device.loss().is_forked() {
            return;
        }
        self.known.gone(&self.device);
        if let (true, Some(storage)) = (self.is_addressable(), self.storage.get()) {
            self.device.heap().addresses().remove(storage.slice, storage.allocation.slice());
        }
    }
}

/// The bytes of a buffer or image, and the allocation that owns them.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    pub(crate) slice: GuestSlice,
    pub(crate) allocation: Arc<Allocation>,
}

/// The rules of a command for a buffer that it uses.
pub(crate) struct BufferRules {
    pub(crate) at: &'static str,
    pub(crate) usage: vk::BufferUsageFlags,
    pub(crate) usage_vuid: &'static str,
    pub(crate) memory_vuid: &'static str,
    pub(crate) parent_vuid: &'static str,
}

impl Device {
    /// `vkCreateBuffer`: `size` bytes; memory must be bound before use.
    pub fn create_buffer(&self, size: u64, usage: vk::BufferUsageFlags) -> Result<Buffer, Error> {
        Buffer::new(self, size, usage)
    }
}

impl Buffer {
    fn new(device: &Device, size: u64, usage: vk::BufferUsageFlags) -> Result<Self, Error> {
        let (at, max) = ("vkCreateBuffer", Limits::DEVICE.max_buffer_size);
        require(size > 0, at, "VUID-VkBufferCreateInfo-size-00912", || "size is 0".into())?;
        require(size <= max, at, "VUID-VkBufferCreateInfo-size-06409", || {
            format!("size {size} above maxBufferSize {max}")
        })?;
        require(!usage.is_empty(), at, "VUID-VkBufferCreateInfo-None-09500", || "usage is 0".into())?;
        let known = Known::new(device, ResourceKind::Buffer, usage.as_raw());
        let inner = BufferInner { device: device.clone(), size, usage, storage: OnceLock::new(), known };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.inner.size
    }

    /// Permitted uses.
    pub fn usage(&self) -> vk::BufferUsageFlags {
        self.inner.usage
    }

    /// `vkGetBufferMemoryRequirements`.
    pub fn requirements(&self) -> vk::MemoryRequirements {
        vk::MemoryRequirements {
            size: self.inner.size.next_multiple_of(ALIGNMENT),
            alignment: ALIGNMENT,
            memory_type_bits: (1 << self.inner.device.memory_types().len()) - 1,
        }
    }

    /// `vkBindBufferMemory`: binds the buffer to `memory` from byte `offset`. The binding is final.
    pub fn bind_memory(&self, memory: &DeviceMemory, offset: u64) -> Result<(), Error> {
        self.check_bind(memory, offset)?;
        let slice = memory.slice().slice(offset, self.inner.size);
        let storage = Storage { slice, allocation: Arc::clone(memory.allocation()) };
        // The first of several threads that bind the buffer at once succeeds, and only it adds the addresses.
        self.inner.storage.set(storage).map_err(|_| already_bound())?;
        self.inner.known.bound(self.device(), slice);
        if self.inner.is_addressable() {
            self.device().heap().addresses().add(slice, memory.slice());
        }
        Ok(())
    }

    /// The name of the buffer in findings of checked mode (`vkSetDebugUtilsObjectNameEXT`).
    pub fn set_debug_name(&self, name: Option<&str>) {
        self.inner.known.set_name(self.device(), name);
    }

    /// `vkGetBufferDeviceAddress`: the buffer's address for shaders, which is also its address for the host.
    pub fn device_address(&self) -> Result<u64, Error> {
        let at = "vkGetBufferDeviceAddress";
        require(self.inner.is_addressable(), at, "VUID-VkBufferDeviceAddressInfo-buffer-02601", || {
            format!("the buffer's usage {:?} lacks SHADER_DEVICE_ADDRESS", self.inner.usage)
        })?;
        let storage = self.storage().ok_or_else(|| {
            Misuse::new(at, "the buffer has no memory bound", "VUID-VkBufferDeviceAddressInfo-buffer-02600")
        })?;
        Ok(storage.slice.address() as u64)
    }

    fn check_bind(&self, memory: &DeviceMemory, offset: u64) -> Result<(), Misuse> {
        let (at, needs, size) = ("vkBindBufferMemory", self.requirements(), memory.size());
        require(memory.device().is(self.device()), at, "VUID-vkBindBufferMemory-memory-parent", || {
            "memory of another device".into()
        })?;
        if self.inner.storage.get().is_some() {
            return Err(already_bound());
        }
        require(offset < size, at, "VUID-vkBindBufferMemory-memoryOffset-01031", || {
            format!("memoryOffset {offset} in memory of {size} bytes")
        })?;
        let alignment = needs.alignment;
        require(offset.is_multiple_of(alignment), at, "VUID-vkBindBufferMemory-memoryOffset-01036", || {
            format!("memoryOffset {offset} is not a multiple of {alignment}")
        })?;
        require(needs.size <= size - offset, at, "VUID-vkBindBufferMemory-size-01037", || {
            format!(
                "the buffer needs {} bytes, memory of {size} bytes has {} after {offset}",
                needs.size,
                size - offset
            )
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn storage(&self) -> Option<&Storage> {
        self.inner.storage.get()
    }

    /// The buffer's storage, if a command of `device` may use the buffer by these rules.
    pub(crate) fn checked(&self, device: &Device, rules: &BufferRules) -> Result<&Storage, Misuse> {
        let at = rules.at;
        require(self.device().is(device), at, rules.parent_vuid, || "a buffer of another device".into())?;
        require(self.inner.usage.contains(rules.usage), at, rules.usage_vuid, || {
            format!("the buffer's usage {:?} lacks {:?}", self.inner.usage, rules.usage)
        })?;
        self.storage().ok_or_else(|| Misuse::new(at, "the buffer has no memory bound", rules.memory_vuid))
    }
}

fn already_bound() -> Misuse {
    let problem = "the buffer has memory bound already";
    Misuse::new("vkBindBufferMemory", problem, "VUID-vkBindBufferMemory-buffer-07459")
}

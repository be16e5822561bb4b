//! The storage behind a resource. An object never changes its storage; it is made, used and dropped.

use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use spelter_driver::{Buffer, Device, DeviceMemory};

use crate::error::Error;

/// A buffer with memory of its own.
#[derive(Debug)]
pub(crate) struct ResourceObject {
    id: u64,
    memory: DeviceMemory,
    buffer: Buffer,
    /// Serial of the last batch that reads it; 0 if none has.
    last_read: AtomicU64,
    /// Serial of the last batch that writes it; 0 if none has.
    last_write: AtomicU64,
}

impl ResourceObject {
    /// `bytes` bytes, all zero.
    pub(crate) fn new(device: &Device, bytes: u64) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::INDIRECT_BUFFER;
        let buffer = device.create_buffer(bytes, usage)?;
        let memory = device.allocate_memory(buffer.requirements().size, 0)?;
        buffer.bind_memory(&memory, 0)?;
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            memory,
            buffer,
            last_read: AtomicU64::new(0),
            last_write: AtomicU64::new(0),
        })
    }

    /// A number that no other object has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.buffer.size()
    }

    /// The memory, bound from its first byte on.
    pub(crate) fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    /// The driver's buffer.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Notes that the batch `serial` uses the object. Serials only grow, so the last one is the largest.
    pub(crate) fn used(&self, serial: u64, access: Access) {
        let last = if access.writes() { &self.last_write } else { &self.last_read };
        // Relaxed: read again only under the lock of the context that the object belongs to.
        last.fetch_max(serial, Ordering::Relaxed);
    }

    /// The serial that must have retired before the host may access the object in this way.
    pub(crate) fn busy_until(&self, access: Access) -> u64 {
        let written = self.last_write.load(Ordering::Relaxed);
        if access.writes() { written.max(self.last_read.load(Ordering::Relaxed)) } else { written }
    }
}

/// How a command, or the host, uses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is only read.
    Read,
    /// It may be written.
    Write,
}

impl Access {
    pub(crate) fn writes(self) -> bool {
        self == Self::Write
    }
}

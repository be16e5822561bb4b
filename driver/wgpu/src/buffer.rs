//! Buffers, and the one function that finds the buffer of a binding.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::ptr::NonNull;

use spelter_driver::vk::BufferUsageFlags as Vulkan;
use spelter_driver::{Device, Error};
use wgpu_hal::BufferBinding;
use wgpu_types::BufferUses;

use crate::memory::{MemoryPool, Place};

/// A buffer. A handle.
#[derive(Clone)]
pub struct Buffer {
    pub(crate) raw: spelter_driver::Buffer,
    place: Place,
}

thread_local! {
    /// The buffer that the last [`Debug`] of one on this thread left, while [`bound`] asks for it.
    static SHOWN: RefCell<Shown> = const { RefCell::new(Shown::Unasked) };
}

enum Shown {
    Unasked,
    Asked(Option<Buffer>),
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SHOWN.with_borrow_mut(|shown| {
            if let Shown::Asked(buffer) = shown {
                *buffer = Some(self.clone());
            }
        });
        write!(f, "Buffer({} bytes)", self.raw.size())
    }
}

/// The buffer of a binding. wgpu-hal 30 has no accessor for back ends outside of its crate (31 has
/// `BufferBinding::buffer`), but prints the buffer with the binding: the buffer hands itself out when it is printed.
pub(crate) fn bound(binding: &BufferBinding<'_, Buffer>) -> Option<Buffer> {
    SHOWN.set(Shown::Asked(None));
    // The text is dropped, and writing it cannot fail.
    let _printed = write!(Nowhere, "{binding:?}");
    match SHOWN.replace(Shown::Unasked) {
        Shown::Asked(buffer) => buffer,
        Shown::Unasked => None,
    }
}

/// A writer that drops everything.
struct Nowhere;

impl Write for Nowhere {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        Ok(())
    }
}

impl Buffer {
    pub(crate) fn new(device: &Device, pool: &MemoryPool, size: u64, uses: BufferUses) -> Result<Self, Error> {
        // Vulkan has no buffers without bytes; wgpu has.
        let size = size.max(4);
        let raw = device.create_buffer(size, usage(uses))?;
        let place = pool.take(device, size)?;
        raw.bind_memory(&place.memory, place.offset)?;
        Ok(Self { raw, place })
    }

    /// Gives the memory back. No command that uses the buffer may be pending.
    pub(crate) fn destroy(self, pool: &MemoryPool) {
        pool.give(self.place, self.raw.size());
    }

    /// The host address of a byte.
    pub(crate) fn address(&self, offset: u64) -> Option<NonNull<u8>> {
        NonNull::new(self.place.memory.host_address().wrapping_add((self.place.offset + offset) as usize))
    }
}

/// Uses that buffers of this device have in Vulkan. Copies are always permitted: wgpu's own commands, such as the fill
/// of bytes that were never written, need them. What draws has no commands here.
fn usage(uses: BufferUses) -> Vulkan {
    const USES: [(BufferUses, Vulkan); 4] = [
        (BufferUses::UNIFORM, Vulkan::UNIFORM_BUFFER),
        (BufferUses::STORAGE_READ_ONLY, Vulkan::STORAGE_BUFFER),
        (BufferUses::STORAGE_READ_WRITE, Vulkan::STORAGE_BUFFER),
        (BufferUses::INDIRECT, Vulkan::INDIRECT_BUFFER),
    ];
    let copies = Vulkan::TRANSFER_SRC | Vulkan::TRANSFER_DST;
    USES.iter().filter(|(wgpu, _)| uses.intersects(*wgpu)).fold(copies, |all, (_, vulkan)| all | *vulkan)
}

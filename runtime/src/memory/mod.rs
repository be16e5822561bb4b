//! Storage allocation: small buffers share blocks, large ones have separate memory, and the storage of replaced objects
//! is used again.

mod faults;
mod small;
pub(crate) mod spares;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use ash::vk;
use spelter_driver::{Buffer, Device, DeviceMemory, Image, ImageInfo};
use spelter_locks::Mutex;

use crate::error::{Error, rule};
use crate::serial::Object;
use crate::stats::Counters;
use crate::submission::Submission;
pub(crate) use faults::Fault;
use faults::Faults;
use small::{SmallAllocation, SmallBlocks};
use spares::Bytes;

/// The spare storages of a device.
pub(crate) type SparePool = spares::SparePool<Storage>;
/// The spare storages of one resource.
pub(crate) type Spares = spares::Spares<Storage>;

/// Up to this number of pending objects are listed before entries of dropped ones are swept.
const MAX_UNSWEPT: usize = 64;

/// The smallest staging buffer.
const MIN_STAGING_BYTES: u64 = 1 << 10;
/// Sizes of staging buffers that are kept: up to 4 MiB.
const STAGING_CLASSES: usize = 13;

/// The value of undefined bytes if poisoning is enabled.
const POISON: u8 = 0xa5;

/// An object whose bytes are pending: a replaced object or a staging buffer. Memory needs only the batches that use it.
pub(crate) type PendingObject = dyn Object<Submission = Submission> + Send + Sync;

/// The memory of a device, shared by all its contexts.
#[derive(Debug)]
pub(crate) struct Memory {
    device: Device,
    /// Bytes of all its memory.
    heap: u64,
    small: Arc<SmallBlocks>,
    pub(crate) counters: Counters,
    /// Allocations that tests let fail.
    pub(crate) faults: Faults,
    /// Spare storage of resources and of staging buffers.
    pub(crate) spare: Arc<SparePool>,
    /// Spare staging buffers, by size.
    staging: [Spares; STAGING_CLASSES],
    /// For staging buffers that are too large to be kept: keeps nothing.
    unkept: Spares,
    /// Bytes of objects that were replaced and have not retired, and of staging buffers.
    pending: AtomicU64,
    /// The objects of these bytes, oldest first. A leaf lock.
    pending_objects: Mutex<VecDeque<Weak<PendingObject>>>,
    /// The limit for `pending`.
    pub(crate) budget: u64,
    /// Overwrites undefined contents, so that programs that rely on them fail.
    pub(crate) poison: bool,
}

/// The description of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    /// A buffer with this number of bytes.
    Buffer(u64),
    /// An image.
    Image(ImageInfo),
}

/// The driver's object for a storage.
#[derive(Clone, Debug)]
enum Handle {
    Buffer(Buffer),
    Image(Image),
}

/// Bytes of device memory that a driver's buffer or image is bound to.
#[derive(Debug)]
pub(crate) struct Storage {
    handle: Handle,
    memory: DeviceMemory,
    /// Its offset in the memory.
    offset: u64,
    bytes: u64,
    /// Whether all bytes are known to be 0.
    zero: bool,
    /// Its place in a block, freed on drop.
    place: Option<SmallAllocation>,
}

impl Memory {
    pub(crate) fn new(device: &Device, poison: bool) -> Self {
        let heap = device.memory_heaps().iter().map(|heap| heap.size).sum::<u64>();
        let (small, counters) = (Arc::new(SmallBlocks::new(device)), Counters::default());
        let budget = (heap / 8).clamp(1 << 20, 256 << 20);
        let spare = SparePool::new(budget);
        let (staging, unkept) = (std::array::from_fn(|_| Spares::new(&spare)), Spares::new(&SparePool::new(0)));
        Self {
            device: device.clone(),
            heap,
            small,
            counters,
            faults: Faults::default(),
            spare,
            staging,
            unkept,
            pending: AtomicU64::new(0),
            pending_objects: Mutex::default(),
            budget,
            poison,
        }
    }

    /// A buffer or image with undefined contents.
    pub(crate) fn storage(&self, template: &Template) -> Result<Storage, Error> {
        if self.faults.fails() {
            return Err(Error::OutOfMemory(String::new()));
        }
        let (handle, needs) = match template {
            Template::Buffer(bytes) => self.buffer(*bytes)?,
            Template::Image(info) => {
                let image = self.device.create_image(info)?;
                let needs = image.requirements().size;
                (Handle::Image(image), needs)
            }
        };
        let bytes = if let Template::Buffer(bytes) = template { *bytes } else { needs };
        let place = self.small.take(needs)?;
        let (memory, offset, zero) = match &place {
            Some(place) => (place.memory().clone(), place.offset(), place.is_fresh()),
            // More than the whole heap: a misuse for the driver, here a lack of memory like any other.
            None if needs > self.heap => return Err(Error::OutOfMemory(String::new())),
            None => (self.device.allocate_memory(needs, 0)?, 0, true),
        };
        match &handle {
            Handle::Buffer(buffer) => buffer.bind_memory(&memory, offset)?,
            Handle::Image(image) => image.bind_memory(&memory, offset)?,
        }
        Ok(Storage { handle, memory, offset, bytes, zero, place })
    }

    /// A driver's buffer, and the bytes of memory that it needs.
    fn buffer(&self, bytes: u64) -> Result<(Handle, u64), Error> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::INDIRECT_BUFFER;
        let buffer = self.device.create_buffer(bytes, usage)?;
        let needs = buffer.requirements().size;
        Ok((Handle::Buffer(buffer), needs))
    }

    /// The size of a staging buffer for `bytes` bytes, and the spares of that size: powers of two from 1 KiB on.
    pub(crate) fn staging(&self, bytes: u64) -> (u64, &Spares) {
        let size = bytes.max(MIN_STAGING_BYTES).next_power_of_two();
        let class = (size / MIN_STAGING_BYTES).trailing_zeros() as usize;
        match self.staging.get(class) {
            Some(spares) => (size, spares),
            // Too large to be kept.
            None => (bytes, &self.unkept),
        }
    }

    /// Whether `bytes` more bytes may be pending. A single object may be larger than the budget.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        // Relaxed: a measure of pressure; a stale value is good enough.
        let pending = self.pending.load(Relaxed);
        pending == 0 || pending.saturating_add(bytes) <= self.budget
    }

    /// Remembers an object that was replaced or is a staging buffer: its bytes are freed when its batches retire.
    pub(crate) fn note_pending(&self, object: Weak<PendingObject>) {
        let mut pending_objects = self.pending_objects.lock();
        while pending_objects.front().is_some_and(|object| object.strong_count() == 0) {
            pending_objects.pop_front();
        }
        // An object that stays for long must not keep the dead entries after it.
        if pending_objects.len() >= MAX_UNSWEPT && pending_objects.len().is_power_of_two() {
            pending_objects.retain(|object| object.strong_count() > 0);
        }
        pending_objects.push_back(object);
    }

    /// The objects whose bytes are pending, oldest first.
    pub(crate) fn pending_objects(&self) -> Vec<Weak<PendingObject>> {
        let mut pending_objects = self.pending_objects.lock();
        pending_objects.retain(|object| object.strong_count() > 0);
        pending_objects.iter().cloned().collect()
    }

    /// Counts bytes as pending until [`Memory::remove_pending`].
    pub(crate) fn add_pending(&self, bytes: u64) {
        // Relaxed: a sum, which orders nothing.
        self.pending.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes as freed.
    pub(crate) fn remove_pending(&self, bytes: u64) {
        // Relaxed: as in `add_pending`.
        self.pending.fetch_sub(bytes, Relaxed);
    }
}

impl Bytes for Storage {
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Storage {
    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.bytes
    }

    /// The driver's buffer.
    pub(crate) fn buffer(&self) -> Result<&Buffer, Error> {
        match &self.handle {
            Handle::Buffer(buffer) => Ok(buffer),
            Handle::Image(_) => Err(Error::resource("an image where a buffer is meant", rule::KIND)),
        }
    }

    /// The driver's image.
    pub(crate) fn image(&self) -> Result<&Image, Error> {
        match &self.handle {
            Handle::Image(image) => Ok(image),
            Handle::Buffer(_) => Err(Error::resource("a buffer where an image is meant", rule::KIND)),
        }
    }

    /// Another driver's buffer at the same bytes, for texels with one usage.
    pub(crate) fn texel_buffer(&self, device: &Device, usage: vk::BufferUsageFlags) -> Result<Buffer, Error> {
        let buffer = device.create_buffer(self.bytes, usage)?;
        buffer.bind_memory(&self.memory, self.offset)?;
        Ok(buffer)
    }

    /// Copies bytes in. The range is inside the buffer.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.memory.write(self.offset + offset, bytes)?)
    }

    /// Copies bytes out. The range is inside the buffer.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        Ok(self.memory.read(self.offset + offset, into)?)
    }

    /// Makes all bytes 0.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.zero, true) { self.fill(0..self.size(), 0) } else { Ok(()) }
    }

    /// Moves the storage to another owner.
    pub(crate) fn hand_over(&mut self) -> Self {
        let (handle, memory) = (self.handle.clone(), self.memory.clone());
        Self { handle, memory, offset: self.offset, bytes: self.bytes, zero: false, place: self.place.take() }
    }

    /// Overwrites all bytes, so that a read of undefined contents returns junk.
    pub(crate) fn poison(&self) -> Result<(), Error> {
        self.poison_range(0..self.size())
    }

    /// Like [`Storage::poison`], for these bytes only.
    pub(crate) fn poison_range(&self, range: Range<u64>) -> Result<(), Error> {
        self.fill(range, POISON)
    }

    fn fill(&self, range: Range<u64>, byte: u8) -> Result<(), Error> {
        let piece = [byte; 4096];
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(piece.len() as u64);
            self.write(at, &piece[..len as usize])?;
            at += len;
        }
        Ok(())
    }
}

//! Descriptor sets: the bytes, images and samplers of each slot.
//!
//! Contents are copied on write. A command buffer takes a snapshot when it binds a set, so a later write never changes
//! what was recorded; Vulkan calls such a command buffer invalid, and submitting it is an error here, too.

use std::sync::{Arc, Weak};

use ash::vk;
use spelter_locks::Mutex;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::Descriptor;

use super::image::ImageWritten;
use super::layout::{LayoutEntry, is_buffer, is_dynamic, is_uniform};
use super::{DescriptorPool, DescriptorSetLayout};
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::host_memory::{self, OutOfHostMemory};
use crate::limits::Limits;
use crate::memory::Allocation;
use crate::resource::Buffer;

/// Values of a descriptor (`VkDescriptorBufferInfo`).
#[derive(Clone, Copy, Debug)]
pub struct BufferInfo<'a> {
    /// The buffer, with memory bound.
    pub buffer: &'a Buffer,
    /// First byte.
    pub offset: u64,
    /// Bytes, or [`vk::WHOLE_SIZE`] for all bytes from `offset`.
    pub range: u64,
}

/// A descriptor set (`VkDescriptorSet`). A handle; its share of the pool is returned when the last handle drops.
#[derive(Clone, Debug)]
pub struct DescriptorSet {
    inner: Arc<DescriptorSetInner>,
}

#[derive(Debug)]
struct DescriptorSetInner {
    device: Device,
    /// `None` for a pushed set.
    pool: Option<DescriptorPool>,
    layout: DescriptorSetLayout,
    /// Elements of the last binding that the set lacks.
    missing: usize,
    contents: Mutex<Arc<Contents>>,
}

impl Drop for DescriptorSetInner {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give_back(&self.layout, self.missing);
        }
    }
}

/// A snapshot of a set, with the owners of its memory.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(super) slots: Vec<Option<Written>>,
    /// Number of writes that invalidate command buffers which have the set bound.
    version: u64,
}

/// A written descriptor.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// A range of a buffer.
    Buffer(BufferWritten),
    /// An image, a sampler, both, or a texel buffer.
    Image(ImageWritten),
}

/// A written range of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct BufferWritten {
    /// The whole buffer.
    buffer: GuestSlice,
    offset: u64,
    /// In bytes, never [`vk::WHOLE_SIZE`].
    range: u64,
    whole: bool,
    _allocation: Arc<Allocation>,
}

impl BufferWritten {
    /// The bytes that a shader accesses.
    pub(crate) fn slice(&self, dynamic_offset: u64) -> GuestSlice {
        self.buffer.slice(self.offset + dynamic_offset, self.range)
    }

    /// The rules for a dynamic offset.
    fn check_dynamic(&self, at: &str, dynamic_offset: u32) -> Result<(), Misuse> {
        let end = u128::from(self.offset) + u128::from(self.range) + u128::from(dynamic_offset);
        if self.whole {
            require(dynamic_offset == 0, at, "VUID-vkCmdBindDescriptorSets-pDescriptorSets-06715", || {
                format!("dynamic offset {dynamic_offset} with a range of VK_WHOLE_SIZE")
            })?;
        }
        let size = self.buffer.len();
        require(end <= u128::from(size), at, "VUID-vkCmdBindDescriptorSets-pDescriptorSets-01979", || {
            format!("dynamic offset {dynamic_offset} brings the range to byte {end} in a buffer of {size} bytes")
        })
    }
}

impl Contents {
    /// Contents with only the immutable samplers.
    fn new(layout: &DescriptorSetLayout) -> Result<Self, OutOfHostMemory> {
        let mut slots = host_memory::filled(None, layout.slots())?;
        for (slot, sampler) in layout.immutable() {
            slots[*slot] = Some(Written::Image(ImageWritten::sampler(sampler)));
        }
        Ok(Self { slots, version: 0 })
    }

    /// The bytes of a slot; empty if it was never written.
    pub(crate) fn slice(&self, slot: usize, dynamic_offset: u32) -> GuestSlice {
        match self.slots.get(slot) {
            Some(Some(Written::Buffer(written))) => written.slice(dynamic_offset.into()),
            Some(Some(Written::Image(written))) => written.descriptor.view.memory,
            _ => GuestSlice::EMPTY,
        }
    }

    /// The image and sampler of a slot; null if neither was ever written.
    pub(crate) fn image(&self, slot: usize) -> Descriptor {
        match self.slots.get(slot) {
            Some(Some(Written::Image(written))) => *written.descriptor,
            _ => Descriptor::NULL,
        }
    }
}

/// A set that may have been freed.
#[derive(Clone, Debug)]
pub(crate) struct WeakSet {
    inner: Weak<DescriptorSetInner>,
}

impl WeakSet {
    /// The current contents, unless the set was freed.
    pub(crate) fn contents(&self) -> Option<Arc<Contents>> {
        self.inner.upgrade().map(|set| Arc::clone(&set.contents.lock()))
    }

    /// Whether both name the same set.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether a write since that snapshot invalidates command buffers. `false` for a freed set.
    pub(crate) fn changed_since(&self, contents: &Arc<Contents>) -> bool {
        self.inner.upgrade().is_some_and(|set| set.contents.lock().version != contents.version)
    }
}

impl DescriptorSet {
    pub(super) fn new(
        pool: &DescriptorPool,
        layout: &DescriptorSetLayout,
        missing: usize,
    ) -> Result<Self, OutOfHostMemory> {
        Ok(Self::with_contents(Some(pool.clone()), layout, missing, Arc::new(Contents::new(layout)?)))
    }

    fn with_contents(
        pool: Option<DescriptorPool>,
        layout: &DescriptorSetLayout,
        missing: usize,
        contents: Arc<Contents>,
    ) -> Self {
        let (device, layout, contents) = (layout.device().clone(), layout.clone(), Mutex::new(contents));
        Self { inner: Arc::new(DescriptorSetInner { device, pool, layout, missing, contents }) }
    }

    /// A set without a pool, for pushed descriptors (`vkCmdPushDescriptorSet`).
    pub fn pushed(layout: &DescriptorSetLayout) -> Result<Self, Error> {
        Ok(Self::with_contents(None, layout, 0, Arc::new(Contents::new(layout)?)))
    }

    /// A pushed set with a copy of this one's contents, to write the next push into; earlier bindings keep theirs.
    pub fn pushed_after(&self) -> Self {
        Self::with_contents(None, self.layout(), 0, self.snapshot())
    }

    /// `vkUpdateDescriptorSets`: writes `infos` from `element` of `binding`. A write past the end of the binding
    /// continues in the next bindings, which must have the same type.
    pub fn write(
        &self,
        binding: u32,
        element: u32,
        ty: vk::DescriptorType,
        infos: &[BufferInfo<'_>],
    ) -> Result<(), Error> {
        let at = format!("pDescriptorWrites: binding {binding}");
        require(is_buffer(ty), &at, "VUID-VkWriteDescriptorSet-descriptorType-parameter", || {
            format!("descriptors of type {ty:?} are not buffers")
        })?;
        let first = self.place(&at, binding, element, ty, infos.len())?;
        let one = |info| Ok::<_, Error>(Written::Buffer(self.check(&at, ty, info)?));
        let written = host_memory::try_collect(infos.iter().map(one))?;
        Ok(self.put(first, written)?)
    }

    /// Stores descriptors into slots that [`DescriptorSet::place`] returned.
    pub(super) fn put(&self, first: usize, written: Vec<Written>) -> Result<(), OutOfHostMemory> {
        self.put_slots(first, written.into_iter().map(Some))
    }

    /// As [`DescriptorSet::put`]; `None` empties a slot.
    pub(super) fn put_slots(
        &self,
        first: usize,
        written: impl IntoIterator<Item = Option<Written>>,
    ) -> Result<(), OutOfHostMemory> {
        let mut contents = self.inner.contents.lock();
        if Arc::get_mut(&mut contents).is_none() {
            let slots = host_memory::copied(&contents.slots)?;
            *contents = Arc::new(Contents { slots, version: contents.version });
        }
        // This is the only handle, so nothing is copied here.
        let contents = Arc::make_mut(&mut contents);
        let mut end = first;
        for (slot, written) in contents.slots[first..].iter_mut().zip(written) {
            *slot = written;
            end += 1;
        }
        contents.version += u64::from(!self.layout().unused_while_pending(first..end));
        Ok(())
    }

    /// Whether the set has no pool: its descriptors are pushed.
    pub(super) fn is_pushed(&self) -> bool {
        self.inner.pool.is_none()
    }

    pub(super) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn layout(&self) -> &DescriptorSetLayout {
        &self.inner.layout
    }

    pub(crate) fn snapshot(&self) -> Arc<Contents> {
        Arc::clone(&self.inner.contents.lock())
    }

    pub(crate) fn downgrade(&self) -> WeakSet {
        WeakSet { inner: Arc::downgrade(&self.inner) }
    }

    /// The slot where a write begins, if the write fits.
    pub(super) fn place(
        &self,
        at: &str,
        binding: u32,
        element: u32,
        ty: vk::DescriptorType,
        count: usize,
    ) -> Result<usize, Misuse> {
        require(count > 0, at, "VUID-VkWriteDescriptorSet-descriptorCount-arraylength", || {
            "descriptorCount is 0".into()
        })?;
        let entries = self.layout().entries();
        let found = entries.iter().position(|entry| entry.binding == binding).ok_or_else(|| {
            Misuse::new(at, "the layout has no such binding", "VUID-VkWriteDescriptorSet-dstBinding-00316")
        })?;
        let LayoutEntry { ty: has, first, count: elements, .. } = entries[found];
        require(has == ty, at, "VUID-VkWriteDescriptorSet-descriptorType-00319", || {
            format!("descriptorType is {ty:?}, the binding's is {has:?}")
        })?;
        let is_last = found + 1 == entries.len();
        // Only the last binding can have fewer elements than its layout: those of its variable count.
        let elements = if is_last { elements - self.inner.missing } else { elements };
        let (start, left) = (first + element as usize, self.layout().slots() - self.inner.missing - first);
        let fits = (element as usize) < elements && element as usize + count <= left;
        require(fits, at, "VUID-VkWriteDescriptorSet-dstArrayElement-00321", || {
            format!("elements {element} to {} of {elements}", u64::from(element) + count as u64 - 1)
        })?;
        // A write that exceeds its binding continues in the next ones (Vulkan, "consecutive binding updates").
        let mut touched = entries[found..].iter().take_while(|entry| entry.first < start + count);
        require(touched.all(|e| e.ty == ty), at, "VUID-VkWriteDescriptorSet-descriptorCount-00317", || {
            format!("the write continues in a binding that is not of type {ty:?}")
        })?;
        Ok(start)
    }

    /// Checks one descriptor by the rules of its type.
    fn check(&self, at: &str, ty: vk::DescriptorType, info: &BufferInfo<'_>) -> Result<BufferWritten, Misuse> {
        let BufferInfo { buffer, offset, range } = *info;
        require(buffer.device().is(&self.inner.device), at, "VUID-VkWriteDescriptorSet-commonparent", || {
            "a buffer of another device".into()
        })?;
        let size = buffer.size();
        require(offset < size, at, "VUID-VkDescriptorBufferInfo-offset-00340", || {
            format!("offset {offset} in a buffer of {size} bytes")
        })?;
        require(range > 0, at, "VUID-VkDescriptorBufferInfo-range-00341", || "range is 0".into())?;
        let (rest, whole) = (size - offset, range == vk::WHOLE_SIZE);
        require(whole || range <= rest, at, "VUID-VkDescriptorBufferInfo-range-00342", || {
            format!("range {range} at offset {offset} in a buffer of {size} bytes")
        })?;
        let range = range.min(rest);
        check_kind(at, ty, buffer, offset, range)?;
        let storage = buffer.storage().ok_or_else(|| {
            let vuid = "VUID-VkWriteDescriptorSet-descriptorType-00329";
            Misuse::new(at, "the buffer has no memory bound", vuid)
        })?;
        let _allocation = Arc::clone(&storage.allocation);
        Ok(BufferWritten { buffer: storage.slice, offset, range, whole, _allocation })
    }
}

/// Checks usage, alignment and size, which differ between uniform and storage buffers.
fn check_kind(at: &str, ty: vk::DescriptorType, buffer: &Buffer, offset: u64, range: u64) -> Result<(), Misuse> {
    let limits = Limits::DEVICE;
    let (usage, alignment, max, vuids) = if is_uniform(ty) {
        let vuids = [
            "VUID-VkWriteDescriptorSet-descriptorType-00330",
            "VUID-VkWriteDescriptorSet-descriptorType-00327",
            "VUID-VkWriteDescriptorSet-descriptorType-00332",
        ];
        let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
        (usage, limits.min_uniform_buffer_offset_alignment, limits.max_uniform_buffer_range, vuids)
    } else {
        let vuids = [
            "VUID-VkWriteDescriptorSet-descriptorType-00331",
            "VUID-VkWriteDescriptorSet-descriptorType-00328",
            "VUID-VkWriteDescriptorSet-descriptorType-00333",
        ];
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
        (usage, limits.min_storage_buffer_offset_alignment, limits.max_storage_buffer_range, vuids)
    };
    require(buffer.usage().contains(usage), at, vuids[0], || {
        format!("the buffer's usage {:?} lacks {usage:?}", buffer.usage())
    })?;
    require(offset.is_multiple_of(alignment), at, vuids[1], || {
        format!("offset {offset} is not a multiple of {alignment}")
    })?;
    require(range <= u64::from(max), at, vuids[2], || format!("range {range} above the limit {max}"))
}

/// The dynamic offsets of one set by slot: 0 for a slot that is not dynamic.
pub(crate) fn spread_offsets(
    at: &str,
    layout: &DescriptorSetLayout,
    contents: &Contents,
    dynamic: &[u32],
) -> Result<Arc<[u32]>, Error> {
    if dynamic.is_empty() {
        return Ok(Arc::default());
    }
    let mut offsets = host_memory::filled(0, layout.slots())?;
    let entries = layout.entries().iter().filter(|entry| is_dynamic(entry.ty));
    let slots = entries.flat_map(|entry| (entry.first..entry.first + entry.count).map(move |slot| (slot, entry.ty)));
    for ((slot, ty), &offset) in slots.zip(dynamic) {
        check_alignment(at, ty, offset)?;
        if let Some(Written::Buffer(written)) = &contents.slots[slot] {
            written.check_dynamic(at, offset)?;
        }
        offsets[slot] = offset;
    }
    Ok(offsets.into())
}

fn check_alignment(at: &str, ty: vk::DescriptorType, offset: u32) -> Result<(), Misuse> {
    let limits = Limits::DEVICE;
    let (alignment, vuid) = if is_uniform(ty) {
        (limits.min_uniform_buffer_offset_alignment, "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01971")
    } else {
        (limits.min_storage_buffer_offset_alignment, "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01972")
    };
    let aligned = u64::from(offset).is_multiple_of(alignment);
    require(aligned, at, vuid, || format!("dynamic offset {offset} is not a multiple of {alignment}"))
}

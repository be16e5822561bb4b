//! Descriptor set layouts, flattened: a set is one array of slots, and each binding is a range of it.

use std::sync::Arc;

use ash::vk;

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::host_memory;
use crate::limits::Limits;
use crate::resource::Sampler;

/// One binding of a layout (`VkDescriptorSetLayoutBinding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The number that shaders use.
    pub binding: u32,
    /// Type of the descriptors.
    pub ty: vk::DescriptorType,
    /// Array elements; 0 only reserves the number.
    pub count: u32,
}

/// Immutable samplers of a binding, the same in every set (`pImmutableSamplers`).
#[derive(Clone, Copy, Debug)]
pub struct ImmutableSamplers<'a> {
    /// The binding, whose type is sampler or combined image sampler.
    pub binding: u32,
    /// One sampler per element.
    pub samplers: &'a [Sampler],
}

/// Parameters of a layout (`VkDescriptorSetLayoutCreateInfo`).
#[derive(Clone, Copy, Debug, Default)]
pub struct DescriptorSetLayoutInfo<'a> {
    /// The bindings, all visible to the compute stage.
    pub bindings: &'a [Binding],
    /// Immutable samplers.
    pub samplers: &'a [ImmutableSamplers<'a>],
    /// `VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT`: command buffers use the contents that sets of this
    /// layout have at submission, not at binding.
    pub update_after_bind: bool,
    /// `VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT` for the binding with the greatest number: a set may have
    /// fewer of its elements.
    pub variable_count: bool,
    /// Bindings with `VK_DESCRIPTOR_BINDING_UPDATE_UNUSED_WHILE_PENDING_BIT`: writing descriptors there leaves command
    /// buffers valid if they do not use those descriptors.
    pub unused_while_pending: &'a [u32],
}

/// The layout of a descriptor set (`VkDescriptorSetLayout`). A handle; equal if identically defined.
#[derive(Clone, Debug)]
pub struct DescriptorSetLayout {
    inner: Arc<DescriptorSetLayoutInner>,
}

#[derive(Debug)]
struct DescriptorSetLayoutInner {
    device: Device,
    /// By binding number, without bindings that have no elements.
    entries: Vec<LayoutEntry>,
    slots: usize,
    dynamic: usize,
    /// By slot, in ascending order.
    immutable: Vec<(usize, Sampler)>,
    update_after_bind: bool,
    variable_count: bool,
    /// Binding numbers, in ascending order.
    unused_while_pending: Vec<u32>,
}

/// A binding, with its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutEntry {
    pub(crate) binding: u32,
    pub(crate) ty: vk::DescriptorType,
    pub(crate) count: usize,
    /// The slot of element 0.
    pub(crate) first: usize,
}

impl Device {
    /// `vkCreateDescriptorSetLayout`; every binding is visible to the compute stage.
    pub fn create_descriptor_set_layout(&self, bindings: &[Binding]) -> Result<DescriptorSetLayout, Error> {
        self.create_descriptor_set_layout_from(&DescriptorSetLayoutInfo { bindings, ..Default::default() })
    }

    /// `vkCreateDescriptorSetLayout`, with immutable samplers or for sets that are updated after binding.
    pub fn create_descriptor_set_layout_from(
        &self,
        info: &DescriptorSetLayoutInfo<'_>,
    ) -> Result<DescriptorSetLayout, Error> {
        DescriptorSetLayout::new(self, info)
    }
}

impl DescriptorSetLayout {
    fn new(device: &Device, info: &DescriptorSetLayoutInfo<'_>) -> Result<Self, Error> {
        let DescriptorSetLayoutInfo { bindings, samplers, update_after_bind, variable_count, .. } = *info;
        check(bindings)?;
        let dynamics = bindings.iter().any(|binding| is_dynamic(binding.ty));
        let vuid = "VUID-VkDescriptorSetLayoutCreateInfo-descriptorType-03001";
        require(!(update_after_bind && dynamics), "vkCreateDescriptorSetLayout", vuid, || {
            "a layout for updates after binding has dynamic buffers".into()
        })?;
        let last = bindings.iter().max_by_key(|binding| binding.binding);
        let varies = !variable_count || last.is_none_or(|last| !is_dynamic(last.ty));
        let vuid = "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-03015";
        require(varies, "vkCreateDescriptorSetLayout", vuid, || "a dynamic buffer with a variable count".into())?;
        // A binding without elements has no variable count.
        let variable_count = variable_count && last.is_some_and(|last| last.count > 0);
        let mut sorted = host_memory::collect(bindings.iter().copied().filter(|b| b.count > 0))?;
        sorted.sort_by_key(|b| b.binding);
        let (mut slots, mut dynamic) = (0, 0);
        let mut entries = host_memory::list(sorted.len())?;
        for Binding { binding, ty, count } in sorted {
            let count = count as usize;
            entries.push(LayoutEntry { binding, ty, count, first: slots });
            slots += count;
            dynamic += if is_dynamic(ty) { count } else { 0 };
        }
        let immutable = immutable(device, &entries, samplers)?;
        let mut unused_while_pending = host_memory::copied(info.unused_while_pending)?;
        unused_while_pending.sort_unstable();
        Ok(Self {
            inner: Arc::new(DescriptorSetLayoutInner {
                device: device.clone(),
                entries,
                slots,
                dynamic,
                immutable,
                update_after_bind,
                variable_count,
                unused_while_pending,
            }),
        })
    }

    /// Slots with an immutable sampler, in ascending order.
    pub(super) fn immutable(&self) -> &[(usize, Sampler)] {
        &self.inner.immutable
    }

    /// The immutable sampler of a slot.
    pub(super) fn immutable_at(&self, slot: usize) -> Option<&Sampler> {
        let list = self.immutable();
        list.binary_search_by_key(&slot, |(at, _)| *at).ok().map(|at| &list[at].1)
    }

    /// Whether sets may be updated between bind and submission.
    pub(crate) fn updates_after_bind(&self) -> bool {
        self.inner.update_after_bind
    }

    /// Whether command buffers stay valid when these slots are written, provided that they do not use them.
    pub(super) fn unused_while_pending(&self, slots: std::ops::Range<usize>) -> bool {
        let flagged = |entry: &LayoutEntry| self.inner.unused_while_pending.binary_search(&entry.binding).is_ok();
        let touched = |entry: &&LayoutEntry| entry.first < slots.end && slots.start < entry.first + entry.count;
        !self.inner.unused_while_pending.is_empty() && self.entries().iter().filter(touched).all(flagged)
    }

    /// The binding with a variable count.
    pub(crate) fn variable(&self) -> Option<&LayoutEntry> {
        self.inner.entries.last().filter(|_| self.inner.variable_count)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Bindings with elements, by number.
    pub(crate) fn entries(&self) -> &[LayoutEntry] {
        &self.inner.entries
    }

    pub(crate) fn entry(&self, binding: u32) -> Option<&LayoutEntry> {
        let entries = self.entries();
        entries.binary_search_by_key(&binding, |entry| entry.binding).ok().map(|at| &entries[at])
    }

    /// Number of descriptors of a set.
    pub(crate) fn slots(&self) -> usize {
        self.inner.slots
    }

    /// Number of dynamic descriptors of a set, each of which needs an offset at binding.
    pub(crate) fn dynamic(&self) -> usize {
        self.inner.dynamic
    }
}

impl PartialEq for DescriptorSetLayout {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &DescriptorSetLayoutInner, b: &DescriptorSetLayoutInner| {
            a.entries == b.entries
                && a.immutable == b.immutable
                && (a.update_after_bind, a.variable_count) == (b.update_after_bind, b.variable_count)
                && a.unused_while_pending == b.unused_while_pending
        };
        Arc::ptr_eq(&self.inner, &other.inner) || same(&self.inner, &other.inner)
    }
}

impl Eq for DescriptorSetLayout {}

fn check(bindings: &[Binding]) -> Result<(), Error> {
    let at = "vkCreateDescriptorSetLayout";
    let mut numbers = host_memory::collect(bindings.iter().map(|binding| binding.binding))?;
    numbers.sort_unstable();
    let twice = numbers.windows(2).find(|pair| pair[0] == pair[1]);
    if let Some(&[binding, ..]) = twice {
        let vuid = "VUID-VkDescriptorSetLayoutCreateInfo-binding-00279";
        return Err(Misuse::new(at, format!("binding {binding} appears twice"), vuid).into());
    }
    let mut total = 0u64;
    for &Binding { ty, count, .. } in bindings {
        check_type(at, "VUID-VkDescriptorSetLayoutBinding-descriptorType-parameter", ty)?;
        total += u64::from(count);
    }
    let max = Limits::DEVICE.max_per_set_descriptors;
    require(total <= u64::from(max), at, "VUID-vkCreateDescriptorSetLayout-support-09582", || {
        format!("{total} descriptors above maxPerSetDescriptors {max}")
    })?;
    Ok(())
}

/// The supported descriptor types.
pub(super) fn check_type(at: &str, vuid: &'static str, ty: vk::DescriptorType) -> Result<(), Misuse> {
    require(is_buffer(ty) || is_image(ty) || is_texel_buffer(ty), at, vuid, || {
        format!("descriptors of type {ty:?}: this device has buffers, texel buffers, images and samplers")
    })
}

/// A uniform or storage buffer.
pub(super) fn is_buffer(ty: vk::DescriptorType) -> bool {
    is_uniform(ty) || is_storage(ty)
}

/// An image, a sampler, or both.
pub(super) fn is_image(ty: vk::DescriptorType) -> bool {
    use vk::DescriptorType as D;
    matches!(ty, D::SAMPLER | D::COMBINED_IMAGE_SAMPLER | D::SAMPLED_IMAGE | D::STORAGE_IMAGE)
}

/// A buffer of texels.
pub(super) fn is_texel_buffer(ty: vk::DescriptorType) -> bool {
    matches!(ty, vk::DescriptorType::UNIFORM_TEXEL_BUFFER | vk::DescriptorType::STORAGE_TEXEL_BUFFER)
}

/// The immutable samplers by slot.
fn immutable(
    device: &Device,
    entries: &[LayoutEntry],
    samplers: &[ImmutableSamplers<'_>],
) -> Result<Vec<(usize, Sampler)>, Error> {
    let at = "vkCreateDescriptorSetLayout";
    let mut all = Vec::new();
    for ImmutableSamplers { binding, samplers } in samplers {
        let entry = entries.iter().find(|entry| entry.binding == *binding);
        let fits = entry.filter(|entry| {
            matches!(entry.ty, vk::DescriptorType::SAMPLER | vk::DescriptorType::COMBINED_IMAGE_SAMPLER)
                && entry.count == samplers.len()
                && samplers.iter().all(|sampler| sampler.device().is(device))
        });
        let Some(entry) = fits else {
            let problem = format!("{} immutable samplers do not fit binding {binding}", samplers.len());
            return Err(Misuse::new(at, problem, "VUID-VkDescriptorSetLayoutBinding-descriptorType-00282").into());
        };
        host_memory::reserve(&mut all, samplers.len())?;
        all.extend(samplers.iter().enumerate().map(|(number, sampler)| (entry.first + number, sampler.clone())));
    }
    all.sort_by_key(|(slot, _)| *slot);
    all.dedup_by_key(|(slot, _)| *slot);
    Ok(all)
}

/// A uniform buffer, dynamic or not.
pub(crate) fn is_uniform(ty: vk::DescriptorType) -> bool {
    matches!(ty, vk::DescriptorType::UNIFORM_BUFFER | vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC)
}

fn is_storage(ty: vk::DescriptorType) -> bool {
    matches!(ty, vk::DescriptorType::STORAGE_BUFFER | vk::DescriptorType::STORAGE_BUFFER_DYNAMIC)
}

/// A type whose offset is completed when the set is bound.
pub(super) fn is_dynamic(ty: vk::DescriptorType) -> bool {
    matches!(ty, vk::DescriptorType::STORAGE_BUFFER_DYNAMIC | vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC)
}

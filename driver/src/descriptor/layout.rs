//! Descriptor set layouts, flattened: a set is one row of slots, each binding a run of them.

use std::sync::Arc;

use ash::vk;

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;

/// One binding of a layout (`VkDescriptorSetLayoutBinding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The number that shaders name it by.
    pub binding: u32,
    /// A storage or uniform buffer, or the dynamic form of one.
    pub ty: vk::DescriptorType,
    /// Array elements; 0 reserves the number only.
    pub count: u32,
}

/// The shape of a descriptor set (`VkDescriptorSetLayout`). A handle; equal if identically defined.
#[derive(Clone, Debug)]
pub struct DescriptorSetLayout {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    /// By binding number, those without elements left out.
    entries: Vec<Entry>,
    slots: usize,
    dynamic: usize,
}

/// A binding in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) binding: u32,
    pub(crate) ty: vk::DescriptorType,
    pub(crate) count: usize,
    /// The slot of element 0.
    pub(crate) first: usize,
}

impl DescriptorSetLayout {
    pub(crate) fn new(device: &Device, bindings: &[Binding]) -> Result<Self, Error> {
        check(bindings)?;
        let mut sorted: Vec<Binding> = bindings.iter().copied().filter(|b| b.count > 0).collect();
        sorted.sort_by_key(|b| b.binding);
        let (mut slots, mut dynamic) = (0, 0);
        let mut entries = Vec::with_capacity(sorted.len());
        for Binding { binding, ty, count } in sorted {
            let count = count as usize;
            entries.push(Entry { binding, ty, count, first: slots });
            slots += count;
            dynamic += if is_dynamic(ty) { count } else { 0 };
        }
        Ok(Self { inner: Arc::new(Inner { device: device.clone(), entries, slots, dynamic }) })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Bindings with elements, by number.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.inner.entries
    }

    pub(crate) fn entry(&self, binding: u32) -> Option<&Entry> {
        let entries = self.entries();
        entries.binary_search_by_key(&binding, |entry| entry.binding).ok().map(|at| &entries[at])
    }

    /// Descriptors of a set.
    pub(crate) fn slots(&self) -> usize {
        self.inner.slots
    }

    /// Dynamic descriptors of a set: so many offsets each bind takes.
    pub(crate) fn dynamic(&self) -> usize {
        self.inner.dynamic
    }
}

impl PartialEq for DescriptorSetLayout {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.entries == other.inner.entries
    }
}

impl Eq for DescriptorSetLayout {}

fn check(bindings: &[Binding]) -> Result<(), Misuse> {
    let at = "vkCreateDescriptorSetLayout";
    let mut seen = std::collections::HashSet::new();
    let mut total = 0u64;
    for &Binding { binding, ty, count } in bindings {
        require(seen.insert(binding), at, "VUID-VkDescriptorSetLayoutCreateInfo-binding-00279", || {
            format!("binding {binding} is there twice")
        })?;
        check_type(at, "VUID-VkDescriptorSetLayoutBinding-descriptorType-parameter", ty)?;
        total += u64::from(count);
    }
    let most = Limits::DEVICE.max_per_set_descriptors;
    require(total <= u64::from(most), at, "VUID-vkCreateDescriptorSetLayout-support-09582", || {
        format!("{total} descriptors above maxPerSetDescriptors {most}")
    })
}

/// The types that there are.
pub(super) fn check_type(at: &str, vuid: &'static str, ty: vk::DescriptorType) -> Result<(), Misuse> {
    require(is_uniform(ty) || is_storage(ty), at, vuid, || {
        format!("descriptors of type {ty:?}: this device has storage and uniform buffers and their dynamic forms")
    })
}

/// A uniform buffer, dynamic or not.
pub(crate) fn is_uniform(ty: vk::DescriptorType) -> bool {
    matches!(ty, vk::DescriptorType::UNIFORM_BUFFER | vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC)
}

fn is_storage(ty: vk::DescriptorType) -> bool {
    matches!(ty, vk::DescriptorType::STORAGE_BUFFER | vk::DescriptorType::STORAGE_BUFFER_DYNAMIC)
}

/// One whose offset is completed when the set is bound.
pub(super) fn is_dynamic(ty: vk::DescriptorType) -> bool {
    matches!(ty, vk::DescriptorType::STORAGE_BUFFER_DYNAMIC | vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC)
}

//! Descriptor pools: only the numbers of sets and descriptors that are not allocated.

use std::collections::HashMap;
use std::sync::Arc;

use ash::vk;
use spelter_locks::Mutex;

use super::layout::check_type;
use super::{DescriptorSet, DescriptorSetLayout};
use crate::device::Device;
use crate::error::{Error, Misuse, require};

/// A pool of descriptor sets (`VkDescriptorPool` with `FREE_DESCRIPTOR_SET`). A handle.
#[derive(Clone, Debug)]
pub struct DescriptorPool {
    inner: Arc<DescriptorPoolInner>,
}

#[derive(Debug)]
struct DescriptorPoolInner {
    device: Device,
    available: Mutex<Available>,
}

/// Numbers of sets and descriptors that are not allocated.
#[derive(Debug)]
struct Available {
    sets: u32,
    descriptors: HashMap<vk::DescriptorType, u64>,
}

/// Maximum number of sets of a pool.
const MAX_SETS: u32 = 1 << 22;

/// Maximum number of descriptors of a pool: each takes some 50 bytes once it is allocated.
const MAX_DESCRIPTORS: u64 = 1 << 24;

impl Device {
    /// `vkCreateDescriptorPool`: for `max_sets` sets and this many descriptors of each type.
    pub fn create_descriptor_pool(
        &self,
        max_sets: u32,
        sizes: &[(vk::DescriptorType, u32)],
    ) -> Result<DescriptorPool, Error> {
        DescriptorPool::new(self, max_sets, sizes)
    }
}

impl DescriptorPool {
    /// [`Error::OutOfMemory`] for a pool that is too large for any machine.
    fn new(device: &Device, max_sets: u32, sizes: &[(vk::DescriptorType, u32)]) -> Result<Self, Error> {
        let at = "vkCreateDescriptorPool";
        require(max_sets > 0, at, "VUID-VkDescriptorPoolCreateInfo-descriptorPoolOverallocation-09227", || {
            "maxSets is 0".into()
        })?;
        let mut descriptors = HashMap::new();
        for &(ty, count) in sizes {
            check_type(at, "VUID-VkDescriptorPoolSize-type-parameter", ty)?;
            require(count > 0, at, "VUID-VkDescriptorPoolSize-descriptorCount-00302", || {
                format!("descriptorCount of {ty:?} is 0")
            })?;
            *descriptors.entry(ty).or_insert(0) += u64::from(count);
        }
        if max_sets > MAX_SETS || descriptors.values().sum::<u64>() > MAX_DESCRIPTORS {
            return Err(Error::OutOfMemory);
        }
        let available = Mutex::new(Available { sets: max_sets, descriptors });
        Ok(Self { inner: Arc::new(DescriptorPoolInner { device: device.clone(), available }) })
    }

    /// `vkAllocateDescriptorSets`: one set with empty descriptors. [`Error::OutOfPoolMemory`] if too little is left in
    /// the pool; the set returns its share when its last handle drops.
    pub fn allocate(&self, layout: &DescriptorSetLayout) -> Result<DescriptorSet, Error> {
        self.allocate_with_count(layout, 0)
    }

    /// As [`DescriptorPool::allocate`], with `count` elements of the binding that has a variable count
    /// (`VkDescriptorSetVariableDescriptorCountAllocateInfo`).
    pub fn allocate_with_count(&self, layout: &DescriptorSetLayout, count: u32) -> Result<DescriptorSet, Error> {
        let same = layout.device().is(&self.inner.device);
        require(same, "vkAllocateDescriptorSets", "VUID-VkDescriptorSetAllocateInfo-commonparent", || {
            "a layout of another device".into()
        })?;
        let max = layout.variable().map_or(0, |entry| entry.count);
        let missing = max.checked_sub(count as usize).filter(|_| layout.variable().is_some() || count == 0);
        let missing = missing.ok_or_else(|| {
            let vuid = "VUID-VkDescriptorSetAllocateInfo-pSetLayouts-09380";
            Misuse::new("vkAllocateDescriptorSets", format!("{count} elements of a binding with {max}"), vuid)
        })?;
        self.inner.available.lock().take(layout, missing)?;
        DescriptorSet::new(self, layout, missing).map_err(|error| {
            self.give_back(layout, missing);
            error.into()
        })
    }

    pub(super) fn give_back(&self, layout: &DescriptorSetLayout, missing: usize) {
        // In a forked process, a thread that does not exist may hold the lock, and nothing is allocated any more.
        if self.inner.device.loss().is_forked() {
            return;
        }
        let mut available = self.inner.available.lock();
        available.sets += 1;
        for (ty, count) in wanted(layout, missing) {
            *available.descriptors.entry(ty).or_insert(0) += count;
        }
    }
}

/// Number of descriptors of each type in a set whose last binding lacks `missing` elements.
fn wanted(layout: &DescriptorSetLayout, missing: usize) -> HashMap<vk::DescriptorType, u64> {
    let mut wanted = HashMap::new();
    for entry in layout.entries() {
        *wanted.entry(entry.ty).or_insert(0) += entry.count as u64;
    }
    if let Some(count) = layout.variable().and_then(|entry| wanted.get_mut(&entry.ty)) {
        *count -= missing as u64;
    }
    wanted
}

impl Available {
    /// Takes a set and its descriptors, all or nothing.
    fn take(&mut self, layout: &DescriptorSetLayout, missing: usize) -> Result<(), Error> {
        if self.sets == 0 {
            return Err(Error::OutOfPoolMemory("all its sets are allocated".into()));
        }
        let wanted = wanted(layout, missing);
        for (ty, count) in &wanted {
            let left = self.descriptors.get(ty).copied().unwrap_or(0);
            if left < *count {
                return Err(Error::OutOfPoolMemory(format!("{count} of {ty:?} wanted, {left} left")));
            }
        }
        self.sets -= 1;
        for (ty, count) in wanted {
            self.descriptors.entry(ty).and_modify(|left| *left -= count);
        }
        Ok(())
    }
}

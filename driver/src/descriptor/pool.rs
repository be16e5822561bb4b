//! Descriptor pools: they own nothing but the count of what is left.

use std::collections::HashMap;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::layout::check_type;
use super::{DescriptorSet, DescriptorSetLayout};
use crate::device::Device;
use crate::error::{Error, require};

/// Where descriptor sets come from (`VkDescriptorPool` with `FREE_DESCRIPTOR_SET`). A handle.
#[derive(Clone, Debug)]
pub struct DescriptorPool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    left: Mutex<Left>,
}

/// What has not been handed out.
#[derive(Debug)]
struct Left {
    sets: u32,
    descriptors: HashMap<vk::DescriptorType, u64>,
}

impl DescriptorPool {
    pub(crate) fn new(device: &Device, max_sets: u32, sizes: &[(vk::DescriptorType, u32)]) -> Result<Self, Error> {
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
        let left = Mutex::new(Left { sets: max_sets, descriptors });
        Ok(Self { inner: Arc::new(Inner { device: device.clone(), left }) })
    }

    /// `vkAllocateDescriptorSets`: one set, all of whose descriptors are empty until they are written.
    /// [`Error::OutOfPoolMemory`] if the pool has no such set left; it gets one back when the set's last handle drops.
    pub fn allocate(&self, layout: &DescriptorSetLayout) -> Result<DescriptorSet, Error> {
        let same = layout.device().is(&self.inner.device);
        require(same, "vkAllocateDescriptorSets", "VUID-VkDescriptorSetAllocateInfo-commonparent", || {
            "a layout of another device".into()
        })?;
        self.inner.left.lock().take(layout)?;
        Ok(DescriptorSet::new(self, layout))
    }

    pub(super) fn give_back(&self, layout: &DescriptorSetLayout) {
        let mut left = self.inner.left.lock();
        left.sets += 1;
        for entry in layout.entries() {
            *left.descriptors.entry(entry.ty).or_insert(0) += entry.count as u64;
        }
    }

    pub(super) fn device(&self) -> &Device {
        &self.inner.device
    }
}

impl Left {
    /// All or nothing.
    fn take(&mut self, layout: &DescriptorSetLayout) -> Result<(), Error> {
        if self.sets == 0 {
            return Err(Error::OutOfPoolMemory("all its sets are allocated".into()));
        }
        let mut wanted: HashMap<vk::DescriptorType, u64> = HashMap::new();
        for entry in layout.entries() {
            *wanted.entry(entry.ty).or_insert(0) += entry.count as u64;
        }
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

//! Copies of descriptors between sets, and null descriptors.

use ash::vk::DescriptorType;

use super::set::DescriptorSet;
use crate::error::{Error, Misuse, require};
use crate::host_memory;

impl DescriptorSet {
    /// `vkUpdateDescriptorSets` with a `VkCopyDescriptorSet`: copies `count` descriptors of `from`, starting at `of`
    /// (`[binding, element]`), into this set, starting at `to`. Both continue in the following bindings of the same
    /// type.
    pub fn copy(&self, to: [u32; 2], from: &Self, of: [u32; 2], count: usize) -> Result<(), Error> {
        let at = "pDescriptorCopies";
        require(from.device().is(self.device()), at, "VUID-VkCopyDescriptorSet-commonparent", || {
            "sets of different devices".into()
        })?;
        let ty = from.layout().entry(of[0]).map(|entry| entry.ty).ok_or_else(|| {
            let problem = format!("the source has no binding {}", of[0]);
            Misuse::new(at, problem, "VUID-VkCopyDescriptorSet-srcBinding-00345")
        })?;
        let source = from.place(at, of[0], of[1], ty, count)?;
        let target = self.place(at, to[0], to[1], ty, count)?;
        let copied = host_memory::copied(&from.snapshot().slots[source..source + count])?;
        Ok(self.put_slots(target, copied)?)
    }

    /// `vkUpdateDescriptorSets` with `VK_NULL_HANDLE` (`nullDescriptor`): reads return 0, writes are discarded.
    pub fn write_null(&self, binding: u32, element: u32, ty: DescriptorType, count: usize) -> Result<(), Error> {
        let at = format!("pDescriptorWrites: binding {binding}");
        let first = self.place(&at, binding, element, ty, count)?;
        Ok(self.put_slots(first, std::iter::repeat_n(None, count))?)
    }
}

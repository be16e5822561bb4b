//! Binding flags of descriptor set layouts (`VkDescriptorSetLayoutBindingFlagsCreateInfo`).

use ash::vk::{self, DescriptorBindingFlags as F};
use spelter_driver::host_memory;

use crate::c::In;
use crate::error::{Error, require};

/// The flags with an effect. `PARTIALLY_BOUND` holds for every binding, and `UPDATE_AFTER_BIND` for every binding of a
/// layout that permits it.
#[derive(Default)]
pub(super) struct Flags {
    /// The binding with a variable count.
    pub(super) variable: Option<u32>,
    /// Bindings that may be written while other bindings of the set are in use.
    pub(super) unused_while_pending: Vec<u32>,
}

const AT: &str = "vkCreateDescriptorSetLayout";

pub(super) fn of(info: In<'_, vk::DescriptorSetLayoutCreateInfo<'_>>) -> Result<Flags, Error> {
    let Some(chained) = info.next::<vk::DescriptorSetLayoutBindingFlagsCreateInfo<'_>>() else {
        return Ok(Flags::default());
    };
    let (list, bindings) = (chained.flags_of_bindings(), info.all());
    let vuid = "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-bindingCount-03002";
    require(list.is_empty() || list.len() == bindings.len(), AT, vuid, || {
        format!("flags for {} bindings of {}", list.len(), bindings.len())
    })?;
    let late = info.flags.contains(vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL);
    let greatest = bindings.iter().map(|binding| binding.binding).max();
    let mut flags = Flags::default();
    for (binding, &of) in bindings.iter().zip(list.get()) {
        let number = binding.binding;
        let vuid = "VUID-VkDescriptorSetLayoutCreateInfo-flags-03000";
        require(late || !of.contains(F::UPDATE_AFTER_BIND), AT, vuid, || {
            format!("binding {number} has UPDATE_AFTER_BIND, the layout does not have UPDATE_AFTER_BIND_POOL")
        })?;
        if of.contains(F::VARIABLE_DESCRIPTOR_COUNT) {
            let vuid = "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-03004";
            require(Some(number) == greatest, AT, vuid, || {
                format!("binding {number} has a variable count and is not the last")
            })?;
            flags.variable = Some(number);
        }
        if of.contains(F::UPDATE_UNUSED_WHILE_PENDING) {
            host_memory::reserve(&mut flags.unused_while_pending, 1)?;
            flags.unused_while_pending.push(number);
        }
    }
    Ok(flags)
}

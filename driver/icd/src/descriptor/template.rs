//! Descriptor update templates: writes whose contents are at given offsets of the program's data.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;
use spelter_driver::{self as driver, host_memory};

use super::write::{Kind, is_immutable};
use super::{Content, DescriptorSet, DescriptorSetLayout, Write};
use crate::c::arrays::TemplateData;
use crate::c::entry::entry_points;
use crate::c::{In, Out};
use crate::device::Device;
use crate::error::{Error, require};
use crate::pipeline::PipelineLayout;
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreateDescriptorUpdateTemplate(
        device: vk::Device, p_create_info: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>,
        p_descriptor_update_template: *mut vk::DescriptorUpdateTemplate,
    ) -> vk::Result => create;
    PFN_vkDestroyDescriptorUpdateTemplate(
        device: vk::Device, descriptor_update_template: vk::DescriptorUpdateTemplate,
        p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkUpdateDescriptorSetWithTemplate(
        device: vk::Device, descriptor_set: vk::DescriptorSet,
        descriptor_update_template: vk::DescriptorUpdateTemplate, p_data: *const c_void,
    ) => update;
}

/// `VkDescriptorUpdateTemplate`.
pub(crate) struct Template {
    entries: Vec<(Kind, vk::DescriptorUpdateTemplateEntry)>,
}

object!(Template: vk::DescriptorUpdateTemplate);

fn create(
    _: Ref<Device>,
    info: In<'_, vk::DescriptorUpdateTemplateCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DescriptorUpdateTemplate>,
) -> Result<(), Error> {
    let at = "vkCreateDescriptorUpdateTemplate";
    let layout = layout_of(info)?;
    // The layout's descriptor count bounds what an update reads of the program's data.
    for (index, entry) in info.entries().get().iter().enumerate() {
        let left = layout.descriptors_from(entry.dst_binding, entry.dst_array_element);
        let count = entry.descriptor_count;
        let vuid = "VUID-VkDescriptorUpdateTemplateEntry-dstArrayElement-00355";
        require(u64::from(count) <= left, at, vuid, || {
            let (binding, element) = (entry.dst_binding, entry.dst_array_element);
            format!(
                "entry {index}: {count} descriptors from element {element} of binding {binding} on, but only {left} follow"
            )
        })?;
        // The start of the last descriptor; bytes of an inline block have no stride.
        let stride = if entry.descriptor_type == vk::DescriptorType::INLINE_UNIFORM_BLOCK { 1 } else { entry.stride };
        let last = (count as usize).saturating_sub(1).checked_mul(stride).and_then(|at| at.checked_add(entry.offset));
        let vuid = "VUID-VkDescriptorUpdateTemplateCreateInfo-pDescriptorUpdateEntries-parameter";
        require(last.is_some(), at, vuid, || {
            format!("entry {index}: offset {} and stride {stride} exceed the address space", entry.offset)
        })?;
    }
    let entries = info.entries().get().iter().map(|entry| Ok((Kind::of(entry.descriptor_type)?, *entry)));
    out.put(Template { entries: host_memory::try_collect::<_, Error>(entries)? }.insert()?);
    Ok(())
}

/// The layout of the template's sets.
fn layout_of(info: In<'_, vk::DescriptorUpdateTemplateCreateInfo<'_>>) -> Result<Arc<DescriptorSetLayout>, Error> {
    if info.template_type != vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR {
        let at = "VkDescriptorUpdateTemplateCreateInfo-templateType-00350";
        return Ok(DescriptorSetLayout::get(info.descriptor_set_layout, at)?.share());
    }
    let layout = PipelineLayout::get(info.pipeline_layout, "VkDescriptorUpdateTemplateCreateInfo-templateType-00352")?;
    let set = layout.sets.get(info.set as usize).filter(|set| set.pushed).map(Arc::clone);
    set.ok_or_else(|| {
        let problem = format!("set {} of the layout has no push descriptors", info.set);
        let vuid = "VUID-VkDescriptorUpdateTemplateCreateInfo-templateType-00353";
        Error::misuse("vkCreateDescriptorUpdateTemplate", problem, vuid)
    })
}

fn destroy(
    _: Ref<Device>,
    template: vk::DescriptorUpdateTemplate,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    Template::remove(template, "vkDestroyDescriptorUpdateTemplate-descriptorUpdateTemplate").map(|_| ())
}

impl Template {
    /// The writes to a set that the data describe.
    pub(crate) fn writes<'a>(
        &'a self,
        data: &'a TemplateData<'a>,
        set: &'a driver::DescriptorSet,
    ) -> impl Iterator<Item = Result<Write<'a>, Error>> {
        self.entries.iter().map(|(kind, entry)| {
            let count = entry.descriptor_count as usize;
            let offsets = (0..count).map(|index| entry.offset + index * entry.stride);
            let content = match kind {
                Kind::Images if is_immutable(set, entry.descriptor_type, entry.dst_binding) => {
                    Content::ImmutableSamplers(count)
                }
                Kind::Images => Content::Images(host_memory::collect(offsets.map(|offset| data.read(offset)))?.into()),
                Kind::Buffers => {
                    Content::Buffers(host_memory::collect(offsets.map(|offset| data.read(offset)))?.into())
                }
                Kind::Texels => Content::Texels(host_memory::collect(offsets.map(|offset| data.read(offset)))?.into()),
                Kind::Inline => Content::Inline(data.bytes(entry.offset, count).into()),
            };
            let ty = entry.descriptor_type;
            Ok(Write { binding: entry.dst_binding, element: entry.dst_array_element, ty, content })
        })
    }
}

fn update(
    _: Ref<Device>,
    set: Ref<DescriptorSet>,
    template: Ref<Template>,
    data: TemplateData<'_>,
) -> Result<(), Error> {
    template.writes(&data, &set.driver).try_for_each(|write| set.write(&write?))
}

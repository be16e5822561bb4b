//! Update templates: writes whose contents are found in a structure of the program's.

use std::ffi::c_void;

use ash::vk;

use super::write::Kind;
use super::{Content, DescriptorSet, Write};
use crate::c::arrays::TemplateData;
use crate::c::entry::entry_points;
use crate::c::{In, Out};
use crate::device::Device;
use crate::error::Error;
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
    let entries = info.entries().get().iter().map(|entry| Ok((Kind::of(entry.descriptor_type)?, *entry)));
    out.put(Template { entries: entries.collect::<Result<_, Error>>()? }.insert());
    Ok(())
}

fn destroy(
    _: Ref<Device>,
    template: vk::DescriptorUpdateTemplate,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    Template::remove(template, "vkDestroyDescriptorUpdateTemplate-descriptorUpdateTemplate").map(|_| ())
}

impl Template {
    /// The writes that the data stand for.
    pub(crate) fn writes<'a>(&'a self, data: &'a TemplateData<'a>) -> impl Iterator<Item = Write<'a>> {
        self.entries.iter().map(|(kind, entry)| {
            let offsets = (0..entry.descriptor_count as usize).map(|index| entry.offset + index * entry.stride);
            let content = match kind {
                Kind::Images => Content::Images(offsets.map(|offset| data.read(offset)).collect()),
                Kind::Buffers => Content::Buffers(offsets.map(|offset| data.read(offset)).collect()),
                Kind::Texels => Content::Texels(offsets.map(|offset| data.read(offset)).collect()),
                Kind::Inline => Content::Inline(data.bytes(entry.offset, entry.descriptor_count as usize).into()),
            };
            let ty = entry.descriptor_type;
            Write { binding: entry.dst_binding, element: entry.dst_array_element, ty, content }
        })
    }
}

fn update(
    _: Ref<Device>,
    set: Ref<DescriptorSet>,
    template: Ref<Template>,
    data: TemplateData<'_>,
) -> Result<(), Error> {
    template.writes(&data).try_for_each(|write| set.write(&write))
}

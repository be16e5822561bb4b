//! Push descriptors: sets that belong to a command buffer and to no pool. Each push updates the descriptors of the
//! previous one.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;
use spelter_driver as driver;

use super::{Template, Write};
use crate::c::arrays::TemplateData;
use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::command::CommandBuffer;
use crate::error::{Error, require};
use crate::physical_device::limits::MAX_PUSH_DESCRIPTORS;
use crate::pipeline::PipelineLayout;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdPushDescriptorSetKHR(
        command_buffer: vk::CommandBuffer, pipeline_bind_point: vk::PipelineBindPoint, layout: vk::PipelineLayout,
        set: u32, descriptor_write_count: u32, p_descriptor_writes: *const vk::WriteDescriptorSet<'_>,
    ) => push;
    PFN_vkCmdPushDescriptorSetWithTemplateKHR(
        command_buffer: vk::CommandBuffer, descriptor_update_template: vk::DescriptorUpdateTemplate,
        layout: vk::PipelineLayout, set: u32, p_data: *const c_void,
    ) => push_with_template;
    PFN_vkCmdPushDescriptorSet2KHR(
        command_buffer: vk::CommandBuffer, p_push_descriptor_set_info: *const vk::PushDescriptorSetInfoKHR<'_>,
    ) => push2;
    PFN_vkCmdPushDescriptorSetWithTemplate2KHR(
        command_buffer: vk::CommandBuffer,
        p_push_descriptor_set_with_template_info: *const vk::PushDescriptorSetWithTemplateInfoKHR<'_>,
    ) => push_with_template2;
}

const AT: &str = "vkCmdPushDescriptorSetKHR";

/// Checks the valid usage of a push descriptor layout.
pub(super) fn check_layout(info: In<'_, vk::DescriptorSetLayoutCreateInfo<'_>>) -> Result<(), Error> {
    use vk::DescriptorType as D;
    let at = "vkCreateDescriptorSetLayout";
    let has = |types: &[D]| info.all().iter().any(|binding| types.contains(&binding.descriptor_type));
    let vuid = "VUID-VkDescriptorSetLayoutCreateInfo-flags-00280";
    require(!has(&[D::UNIFORM_BUFFER_DYNAMIC, D::STORAGE_BUFFER_DYNAMIC]), at, vuid, || {
        "dynamic buffers cannot be pushed".into()
    })?;
    let vuid = "VUID-VkDescriptorSetLayoutCreateInfo-flags-02208";
    require(!has(&[D::INLINE_UNIFORM_BLOCK]), at, vuid, || "inline uniform blocks cannot be pushed".into())?;
    let all: u64 = info.all().iter().map(|binding| u64::from(binding.descriptor_count)).sum();
    let vuid = "VUID-VkDescriptorSetLayoutCreateInfo-flags-00281";
    require(all <= MAX_PUSH_DESCRIPTORS.into(), at, vuid, || {
        format!("{all} push descriptors, above maxPushDescriptors {MAX_PUSH_DESCRIPTORS}")
    })
}

/// The push descriptors of a set number, with their layout.
pub(crate) struct Pushed {
    layout: Arc<PipelineLayout>,
    set: u32,
    /// The current descriptors. Recorded commands keep those of their time.
    now: driver::DescriptorSet,
}

fn push(
    commands: Ref<CommandBuffer>,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    set: u32,
    count: u32,
    writes: Many<'_, vk::WriteDescriptorSet<'_>>,
) -> Result<(), Error> {
    commands.add(|into| {
        let writes = writes.of(count as usize);
        let apply = |to: &driver::DescriptorSet| writes.each().try_for_each(|write| Write::new(write, to)?.apply(to));
        if point == vk::PipelineBindPoint::COMPUTE { bind(&commands, into, layout, set, apply) } else { Ok(()) }
    })
}

fn push_with_template(
    commands: Ref<CommandBuffer>,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    set: u32,
    data: TemplateData<'_>,
) -> Result<(), Error> {
    commands.add(|into| {
        let template = Template::get(template, "vkCmdPushDescriptorSetWithTemplate-descriptorUpdateTemplate")?;
        let apply = |to: &driver::DescriptorSet| template.writes(&data, to).try_for_each(|write| write?.apply(to));
        bind(&commands, into, layout, set, apply)
    })
}

fn push2(commands: Ref<CommandBuffer>, info: In<'_, vk::PushDescriptorSetInfoKHR<'_>>) -> Result<(), Error> {
    commands.add(|into| {
        let writes = info.writes();
        let apply = |to: &driver::DescriptorSet| writes.each().try_for_each(|write| Write::new(write, to)?.apply(to));
        let compute = info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE);
        if compute { bind(&commands, into, info.layout, info.set, apply) } else { Ok(()) }
    })
}

fn push_with_template2(
    commands: Ref<CommandBuffer>,
    info: In<'_, vk::PushDescriptorSetWithTemplateInfoKHR<'_>>,
) -> Result<(), Error> {
    let data = info.data().ok_or_else(|| {
        let vuid = "VUID-VkPushDescriptorSetWithTemplateInfo-pData-01686";
        Error::misuse("vkCmdPushDescriptorSetWithTemplate2KHR", "pData is null", vuid)
    })?;
    push_with_template(commands, info.descriptor_update_template, info.layout, info.set, data)
}

fn bind(
    commands: &CommandBuffer,
    into: &driver::CommandBuffer,
    handle: vk::PipelineLayout,
    set: u32,
    apply: impl FnOnce(&driver::DescriptorSet) -> Result<(), Error>,
) -> Result<(), Error> {
    let layout = PipelineLayout::get(handle, "vkCmdPushDescriptorSet-layout")?;
    let of_set = layout.sets.get(set as usize).ok_or_else(|| {
        let problem = format!("set {set}, the layout has {}", layout.sets.len());
        Error::misuse(AT, problem, "VUID-vkCmdPushDescriptorSet-set-00364")
    })?;
    require(of_set.pushed, AT, "VUID-vkCmdPushDescriptorSet-set-00365", || {
        format!("set {set} has a layout without PUSH_DESCRIPTOR")
    })?;
    let mut before = commands.pushed();
    // Descriptors that were pushed with a compatible layout stay.
    let fits = |pushed: &Pushed| pushed.set == set && pushed.layout.driver.is_compatible(&layout.driver, set);
    let same = before.take().filter(fits);
    let now = match same {
        Some(pushed) => pushed.now.pushed_after(),
        None => driver::DescriptorSet::pushed(&of_set.driver)?,
    };
    apply(&now)?;
    into.bind_descriptor_sets(&layout.driver, set, &[&now], &[])?;
    *before = Some(Pushed { layout: layout.share(), set, now });
    Ok(())
}

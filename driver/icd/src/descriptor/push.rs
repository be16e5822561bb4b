//! Push descriptors: sets of no pool that live in a command buffer. Each push writes into what the last one left.

use std::ffi::c_void;

use ash::vk;
use spelter_driver as driver;

use super::{Template, Write};
use crate::c::Many;
use crate::c::arrays::TemplateData;
use crate::c::entry::entry_points;
use crate::command::CommandBuffer;
use crate::error::Error;
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
}

/// `maxPushDescriptors`.
pub(crate) const MOST_PUSHED: u32 = 256;

const AT: &str = "vkCmdPushDescriptorSetKHR";

/// What was pushed for a set number, with which layout.
pub(crate) struct Pushed {
    layout: vk::PipelineLayout,
    set: u32,
    /// What it holds now. Commands that were recorded have what it held then.
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
        let writes = writes.of(count as usize).each().map(Write::new).collect::<Result<Vec<_>, _>>()?;
        if point == vk::PipelineBindPoint::COMPUTE { bind(&commands, into, layout, set, writes) } else { Ok(()) }
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
        let template = Template::get(template, "vkCmdPushDescriptorSetWithTemplateKHR-descriptorUpdateTemplate")?;
        bind(&commands, into, layout, set, template.writes(&data).collect())
    })
}

fn bind(
    commands: &CommandBuffer,
    into: &driver::CommandBuffer,
    handle: vk::PipelineLayout,
    set: u32,
    writes: Vec<Write<'_>>,
) -> Result<(), Error> {
    let layout = PipelineLayout::get(handle, "vkCmdPushDescriptorSetKHR-layout")?;
    let of_set = layout.sets.get(set as usize).ok_or_else(|| {
        let problem = format!("set {set}, the layout has {}", layout.sets.len());
        Error::misuse(AT, problem, "VUID-vkCmdPushDescriptorSet-set-00364")
    })?;
    let mut before = commands.pushed();
    let same = before.take().filter(|pushed| pushed.layout == handle && pushed.set == set);
    let now = same.map_or_else(|| driver::DescriptorSet::pushed(&of_set.driver), |pushed| pushed.now.pushed_after());
    writes.iter().try_for_each(|write| write.apply(&now))?;
    into.bind_descriptor_sets(&layout.driver, set, &[&now], &[])?;
    *before = Some(Pushed { layout: handle, set, now });
    Ok(())
}

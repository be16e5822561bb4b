//! Binding of pipelines, descriptor sets and push constants.

use std::ffi::c_void;

use ash::vk::{self, Handle};
use spelter_driver::host_memory;

use super::CommandBuffer;
use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::descriptor::DescriptorSet;
use crate::error::Error;
use crate::names;
use crate::pipeline::{Pipeline, PipelineLayout};
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdBindPipeline(
        command_buffer: vk::CommandBuffer, pipeline_bind_point: vk::PipelineBindPoint, pipeline: vk::Pipeline,
    ) => bind_pipeline;
    PFN_vkCmdBindDescriptorSets(
        command_buffer: vk::CommandBuffer, pipeline_bind_point: vk::PipelineBindPoint, layout: vk::PipelineLayout,
        first_set: u32, descriptor_set_count: u32, p_descriptor_sets: *const vk::DescriptorSet,
        dynamic_offset_count: u32, p_dynamic_offsets: *const u32,
    ) => sets;
    PFN_vkCmdBindDescriptorSets2KHR(
        command_buffer: vk::CommandBuffer, p_bind_descriptor_sets_info: *const vk::BindDescriptorSetsInfoKHR<'_>,
    ) => sets2;
    PFN_vkCmdPushConstants2KHR(
        command_buffer: vk::CommandBuffer, p_push_constants_info: *const vk::PushConstantsInfoKHR<'_>,
    ) => push_constants2;
    PFN_vkCmdPushConstants(
        command_buffer: vk::CommandBuffer, layout: vk::PipelineLayout, stage_flags: vk::ShaderStageFlags, offset: u32,
        size: u32, p_values: *const c_void,
    ) => push_constants;
}

fn bind_pipeline(
    commands: Ref<CommandBuffer>,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) -> Result<(), Error> {
    commands.add(|into| {
        if point != vk::PipelineBindPoint::COMPUTE {
            return Err(Error::graphics("vkCmdBindPipeline"));
        }
        into.bind_pipeline(&Pipeline::get(pipeline, "vkCmdBindPipeline-pipeline")?.driver)?;
        match names::get(vk::ObjectType::PIPELINE, pipeline.as_raw()) {
            Some(name) => Ok(into.set_kernel_name(Some(&name))?),
            None => Ok(()),
        }
    })
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn sets(
    commands: Ref<CommandBuffer>,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    sets: Many<'_, vk::DescriptorSet>,
    offset_count: u32,
    offsets: Many<'_, u32>,
) -> Result<(), Error> {
    // Bindings for graphics are never used.
    if point != vk::PipelineBindPoint::COMPUTE {
        return Ok(());
    }
    record_sets(&commands, (layout, first), &sets.of(count as usize), &offsets.of(offset_count as usize))
}

fn sets2(commands: Ref<CommandBuffer>, info: In<'_, vk::BindDescriptorSetsInfoKHR<'_>>) -> Result<(), Error> {
    if !info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
        return Ok(());
    }
    record_sets(&commands, (info.layout, info.first_set), &info.sets(), &info.offsets())
}

fn record_sets(
    commands: &CommandBuffer,
    (layout, first): (vk::PipelineLayout, u32),
    sets: &[vk::DescriptorSet],
    offsets: &[u32],
) -> Result<(), Error> {
    commands.add(|into| {
        let layout = PipelineLayout::get(layout, "vkCmdBindDescriptorSets-layout")?;
        let at = "vkCmdBindDescriptorSets-pDescriptorSets";
        let find = |&set: &vk::DescriptorSet| DescriptorSet::get(set, at);
        let sets = host_memory::try_collect(sets.iter().map(find))?;
        let sets = host_memory::collect(sets.iter().map(|set| &set.driver))?;
        Ok(into.bind_descriptor_sets(&layout.driver, first, &sets, offsets)?)
    })
}

fn push_constants(
    commands: Ref<CommandBuffer>,
    layout: vk::PipelineLayout,
    stages: vk::ShaderStageFlags,
    offset: u32,
    size: u32,
    values: Many<'_, c_void>,
) -> Result<(), Error> {
    record_constants(&commands, layout, stages, offset, values.bytes(size as usize))
}

fn push_constants2(commands: Ref<CommandBuffer>, info: In<'_, vk::PushConstantsInfoKHR<'_>>) -> Result<(), Error> {
    record_constants(&commands, info.layout, info.stage_flags, info.offset, info.values().get())
}

fn record_constants(
    commands: &CommandBuffer,
    layout: vk::PipelineLayout,
    stages: vk::ShaderStageFlags,
    offset: u32,
    bytes: &[u8],
) -> Result<(), Error> {
    commands.add(|into| {
        if !stages.contains(vk::ShaderStageFlags::COMPUTE) {
            return Ok(());
        }
        let layout = PipelineLayout::get(layout, "vkCmdPushConstants-layout")?;
        Ok(into.push_constants(&layout.driver, offset, bytes)?)
    })
}
